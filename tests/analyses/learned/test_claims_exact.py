import dataclasses
from pathlib import Path

import pandas as pd
import pytest
import torch

from analyses.kernel import _ntk_sbn_runs
from analyses.learned import _claims_exact_runs as exact_runs
from analyses.learned import _claims_hill as hill
from analyses.learned import _claims_kernel as kernel
from analyses.learned import claims as module
from analyses.published import load
from workbench import analysis, checkpoint

ROOT = Path(__file__).parents[3]


def threshold(published, found, rounded, agrees="yes", exceptions=0):
    return {"published": published, "from": found, "rounded": rounded, "agrees": agrees, "exceptions": exceptions,
            "tried": 100}  # fmt: skip


def momentum(with_momentum, alone):
    """The grid's cells that are asked, eight runs each; epsilon of 1e-30 is another cell, not to be counted."""
    cells = {(0.9, 0.5): with_momentum, (0.9, 0.999): 0, (0.0, 0.5): alone}
    rows = [{"epsilon": 1e-8, "beta1": a, "beta2": b, "n": 8, "exact": k} for (a, b), k in cells.items()]
    return rows + [{**row, "epsilon": 1e-30, "exact": 8} for row in rows]


def optimizers(snapped):
    return [
        {"snapping": at, "plain_share_reached": share, "plain_seeds": 100}
        for at, share in ((0.01, snapped), (0.0, 0.4))
    ]


def units(on_root):
    """Twenty units of a root with exact answers, `on_root` of them on it; noisy ones and a selection, which is not."""
    return [
        *({"target": "square root", "noise": 0.0, "away": 0.0 if i < on_root else 1e-3} for i in range(20)),
        {"target": "square root", "noise": 0.01, "away": 1e-3},
        {"target": "multiply", "noise": 0.0, "away": 0.0},
    ]


def bits(share):
    names = [("add", "Real"), ("subtract", "Real"), ("multiply", "Real"), ("multiply", "Sign-exact"),
             ("divide", "Sign-exact"), ("multiply", "Complex128"), ("divide", "Complex128")]  # fmt: skip
    shares = {"Real": share, "Sign-exact": 1.0, "Complex128": 0.5}
    return [{"operation": name, "method": method, "share": shares[method], "n": 100_000} for name, method in names]


def circuits(apart):
    """Twenty solved circuits, `apart` of them locked piece by piece; of ten with one unit trained none."""
    row = {"solved": True, "all_trained": True, "units_trained": 2}
    single = {"solved": True, "all_trained": False, "units_trained": 1, "spread": 0.0}
    return [{**row, "spread": 0.5 if i < apart else 0.05} for i in range(20)] + [single] * 10


def inalu(failed_elsewhere, won):
    row = {"training": "matched", "distribution": "E(0.8,0.5)", "right": True}
    rows = [row] * 7 + [{**row, "right": not failed_elsewhere}, {**row, "distribution": "U(-5,5)", "right": False}]
    lotteries = [{"distribution": name, "n": 10, "won": k} for name, k in (("U(-5,5)", won), ("N(-3,3)", 9))]
    return [*rows, {**row, "training": "universal"}], lotteries


def initialisation(near, one):
    """72 runs at near-neutral scales and 24 at scale 1, so many of them failed; plain ones do not count."""
    rows = [{"protocol": "report", "scale": 0.1, "learned": i >= near} for i in range(72)]
    rows += [{"protocol": "report", "scale": 1.0, "learned": i >= one} for i in range(24)]
    return [*rows, {"protocol": "plain", "scale": 0.1, "learned": False}]


def plateaus(wrong, right):
    """Failures of 100 starts each; cos fails from right signs too and is not counted."""
    names = (("add", 1, wrong), ("add", 0, right), ("cos", 0, 100))
    return [{"operation": name, "wrong": signs, "n": 100, "failed": k} for name, signs, k in names]


def hill_tables(**changes):
    runs, lotteries = changes.get("inalu", inalu(failed_elsewhere=False, won=1))
    twenty = {"format": "float64", "tanh(20)": 1.0, "sigmoid(20)": 1 - 2e-9, "W": 1 - 2e-9, "ulps_below_1": 9,
              "snapped": 1.0}  # fmt: skip
    division = [{"exact": share, "n": 100} for share in (changes.get("division", 1.0), 0.4)]
    scores = [{"rule": "beta2 < beta1^2", "right_share": 0.95}, {"rule": "beta1 alone", "right_share": 0.75}]
    tables = {
        "hill-saturation": {
            "thresholds": changes.get("thresholds", [threshold(4.51, 4.5078, 4.5078), threshold(36.74, 36.737, 37.43)]),
            "inalu": [twenty | changes.get("twenty", {})],
        },
        "hill-momentum": {"grid": changes.get("momentum", momentum(8, 0)), "summary": scores},
        "hill-optimizers": {"cells": optimizers(changes.get("optimizers", 0.7))},
        "hill-fractional": {"units": units(changes.get("on_root", 10))},
        "hill-precision": {"bits": bits(changes.get("bits", 1.0))},
        "hill-composition": {"runs": circuits(changes.get("circuits", 19))},
        "hill-division": {"summary": division},
        "hill-inalu": {"runs": runs, "lotteries": lotteries},
        "hill-initialisation": {"runs": changes.get("initialisation", initialisation(0, 6))},
        "hill-plateaus": {"operations": changes.get("plateaus", plateaus(40, 0))},
    }
    return {name: {table: pd.DataFrame(rows) for table, rows in found.items()} for name, found in tables.items()}


def verdict(entries, words):
    (entry,) = [entry for entry in entries if words in entry.sentence]
    return entry.verdict


@pytest.mark.parametrize(
    ("words", "changes", "wanted"),
    [
        ("smallest value", {}, "supported"),
        ("smallest value", {"thresholds": [threshold(4.51, 4.6, 4.6, agrees="no")]}, "refuted"),
        ("smallest value", {"thresholds": [threshold(4.51, 4.5, 4.5, exceptions=1)]}, "refuted"),
        ("At 20", {}, "supported"),
        ("At 20", {"twenty": {"sigmoid(20)": 1.0}}, "refuted"),
        ("stay in the Adam", {}, "supported"),
        ("stay in the Adam", {"momentum": momentum(3, 0)}, "open"),
        ("tracks the shrinking", {}, "refuted"),
        ("tracks the shrinking", {"momentum": momentum(8, 8)}, "supported"),
        ("almost all", {}, "open"),
        ("almost all", {"optimizers": 0.99}, "supported"),
        ("rarely land", {}, "refuted"),
        ("rarely land", {"on_root": 0}, "open"),
        ("calculated rather", {}, "supported"),
        ("calculated rather", {"bits": 0.9999}, "refuted"),
        ("identical results", {}, "supported"),
        ("identical results", {"bits": 0.9999}, "refuted"),
        ("lock in piecewise", {}, "supported"),
        ("lock in piecewise", {"circuits": 2}, "refuted"),
        ("finds division", {}, "supported"),
        ("finds division", {"division": 0.98}, "open"),
        ("cross zero", {}, "supported"),
        ("cross zero", {"inalu": inalu(failed_elsewhere=True, won=1)}, "open"),
        ("Near-neutral", {}, "supported"),
        ("Near-neutral", {"initialisation": initialisation(1, 6)}, "refuted"),
        ("randomly chosen plateau", {}, "supported"),
        ("randomly chosen plateau", {"plateaus": plateaus(0, 40)}, "refuted"),
    ],
)
def test_each_sentence_of_the_report_follows_its_table(words, changes, wanted):
    assert verdict(hill.entries(hill_tables(**changes)), words) == wanted


def test_open_rows_name_the_command_that_decides_and_no_others_do():
    for entry in hill.entries(hill_tables()):
        assert ("--full` decides" in entry.found.text) == (entry.verdict == "open")
    (row,) = [entry.row() for entry in hill.entries(hill_tables()) if "almost all" in entry.sentence]
    assert "`workbench analyze hill-optimizers --full`" in row["measured"]
    assert (row["value"], row["n"], row["control_value"]) == (0.7, 100, 0.4)
    assert (round(row["low"], 3), round(row["high"], 3)) == (0.604, 0.781)  # Wilson's interval of 70 of 100


def test_the_experiment_files_rates_are_not_torchs_defaults():
    rates = load("hill")["optimizer_matrix"]["protocol"]["lr"]
    entry = hill.default_rates(rates)
    assert (entry.verdict, entry.found.value, entry.found.n) == ("refuted", 2, 10)  # Adadelta 1.0 and Rprop 0.01
    assert hill.default_rates({"Adam(def)": 0.001, "SGD+mom": "0.001 momentum 0.9"}).verdict == "supported"


def kernel_tables(**changes):
    doubling = {"permute": 1.0, "add": 2.0, "multiply": changes.get("per_doubling", 10.5)}
    sizes = [
        {"operation": name, "bits": bits, "templates": 10, "inputs": 2.0**bits, "templates_per_doubling": value}
        for name, last in doubling.items()
        for bits, value in ((1, doubling[name] if name != "multiply" else 11.5), (2, last), (31, last))
    ]
    wrong = changes.get("wrong", 0)
    exhaustive = [{"operation": name, "bits": 3, "inputs": 64, "wrong": wrong} for name in kernel.NAMES]
    controls = [
        {"operation": name, "bits": 3, "h_times": 20.0, "wrong": changes.get("beyond", 5), "inputs": 64}
        for name in kernel.NAMES
    ]
    cases = [{"case": "random programs", "runs": 50, "instructions": 500, "wrong_states": changes.get("states", 0)}]
    bare = {"padding": 0, "runs": 10, "flips": 7, "predicted": 7, "missed": changes.get("missed", 0),
            "false_alarms": 0, "wrong_words": 3, "products_right": 6}  # fmt: skip
    orders = [
        {"operation": name, "threshold": "zero", "of": of, "source": "last doubling", "from": 4, "to": 8,
         "exponent": power, "low": power - 0.1, "high": power + 0.1}
        for name in kernel.NAMES
        for of, power in (("networks", changes.get("power", 1.1)), ("bound", 2.0))
    ]  # fmt: skip
    bands = {"nngp": (40, 60), "ntk": changes.get("ntk_band", (200, 300))}
    counts = [
        {"k": k, "kind": "law", "threshold": "zero", "form": form, "error": 0.1, "band_low": low, "band_high": high,
         "trials": 20, "unreached": changes.get("unreached", 0), "least": 9, "median": 50.0}
        for form, (low, high) in bands.items()
        for k in range(5, 13)
    ]  # fmt: skip
    published = [{"k": k, "published": "50"} for k in range(5, 13)]
    tables = {
        "ntk-exhaustive": {"sizes": sizes, "exhaustive": exhaustive, "controls": controls},
        "ntk-sbn": {"cases": cases, "paddings": [bare, {**bare, "padding": 302, "flips": 0, "wrong_words": 0}]},
        "ntk-ensembles": {"orders": orders, "counts": counts, "published": published},
    }
    return {name: {table: pd.DataFrame(rows) for table, rows in found.items()} for name, found in tables.items()}


@pytest.mark.parametrize(
    ("words", "changes", "wanted"),
    [
        ("logarithmically", {}, "supported"),
        ("logarithmically", {"per_doubling": 30.0}, "refuted"),
        ("binary permutation", {}, "supported"),
        ("addition", {"wrong": 1}, "refuted"),
        ("binary multiplication", {"beyond": 0}, "open"),
        ("SBN", {}, "supported"),
        ("SBN", {"states": 1}, "refuted"),
        ("unwanted-correlation", {}, "supported"),
        ("unwanted-correlation", {"missed": 1}, "refuted"),
        ("O(l^2)", {}, "supported"),
        ("O(l^2)", {"power": 2.2}, "refuted"),
        ("high probability", {}, "supported"),
        ("high probability", {"unreached": 1}, "refuted"),
        ("NTK regime", {}, "refuted"),
        ("NTK regime", {"ntk_band": (40, 60)}, "open"),
    ],
)
def test_each_sentence_of_the_paper_follows_its_table(words, changes, wanted):
    found = kernel.entries(kernel_tables(**changes))
    if words == "addition":
        words = "binary addition"
    assert verdict(found, words) == wanted


def test_short_runs_of_the_analyses_give_the_tables_that_are_read(monkeypatch):
    """Real ones, cut down: addition and permutation up to 4 bits, and enumerated units on 50,000 inputs."""
    one = exact_runs.asked("ntk-exhaustive")
    tables = one.function([], one.options(bits=4)).tables
    rows = {name: table.to_dict("records") for name, table in tables.items()}
    assert kernel.templates(rows["sizes"]).verdict == "supported"
    for name in kernel.NAMES:
        assert kernel.executed(name, rows["exhaustive"], rows["controls"]).verdict == "supported"
    assert kernel.executed("add", rows["exhaustive"], rows["controls"]).found.n == 4 + 16 + 64 + 256
    one = exact_runs.asked("hill-precision")
    rows = one.function([], one.options(samples=50_000, checked=100)).tables["bits"].to_dict("records")
    assert [entry.verdict for entry in hill.bits(rows)] == ["supported", "supported"]
    assert hill.bits(rows)[1].found.n == 4 * 50_000
    monkeypatch.setattr(_ntk_sbn_runs, "SINGLES", ((2, 3, 2),))
    few = {"x": torch.tensor([5, 31, 4]), "y": torch.tensor([6, 1, 7])}
    monkeypatch.setattr(_ntk_sbn_runs, "factors", lambda: few)
    rows = {name: table.to_dict("records") for name, table in exact_runs.sbn_tables(10).items()}
    assert kernel.sbn(rows["cases"], rows["paddings"]).verdict == "supported"
    assert kernel.correlations(rows["paddings"]).verdict == "supported"


def test_ensembles_are_counted_without_training(monkeypatch):
    monkeypatch.setattr(exact_runs, "KS", (5, 10))
    monkeypatch.setattr(exact_runs, "TRIALS", {"nngp": 4, "ntk": 2})
    monkeypatch.setattr(exact_runs, "ADD", (2, 3, 4))
    monkeypatch.setattr(exact_runs, "MULTIPLY", (2, 3, 4))
    rows = {name: table.to_dict("records") for name, table in exact_runs.ensemble_tables().items()}
    bound = kernel.growth(rows["orders"])
    assert bound.verdict == "supported" and 1.0 < bound.found.value < 1.5
    probability, _ = kernel.counts(rows["counts"], rows["published"])
    assert probability.verdict == "supported" and probability.found.n == 8


def test_every_short_run_is_one_the_analysis_accepts():
    for name, sizes in exact_runs.SIZES.items():
        options = exact_runs.asked(name).options
        assert not dataclasses.asdict(options(**sizes))["full"]


def test_one_thread_for_small_tensors_and_the_old_number_afterwards():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with pytest.raises(KeyError), exact_runs.one_thread():
        assert torch.get_num_threads() == 1
        raise KeyError
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_the_ledger_has_them_and_reads_back(monkeypatch, tmp_path):
    monkeypatch.setattr(exact_runs, "run", lambda: hill_tables() | kernel_tables())
    model = checkpoint.read(ROOT / "checkpoints" / "arithmetic-relu-1layer-seed0")
    options = module.Options(problems=1000)
    result = module.claims.function([model], options)
    sources = list(result.tables["ledger"]["source"])
    assert sum(source.startswith("Hill Space report") for source in sources) == 14
    assert sources.count("summary of the kernel paper") == 9
    analysis.save(result, tmp_path / "claims", analysis_name="claims", options=options)
    assert analysis.load(tmp_path / "claims") == result
