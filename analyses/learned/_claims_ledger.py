"""The ledger of claims: each sentence with what was measured, the rule that decides, and the verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from analyses.learned import _claims_rules as rules
from analyses.learned._claims_entry import Entry
from analyses.learned._claims_evidence import WIDE, Row, kind_of, shares
from workbench.recipe import RunConfig
from workbench.result import Finding

CARDS = "model cards"
KINDS = ("relu", "bilinear")
SEEDS = 3  # of every kind of model, as published
MODELS = len(KINDS) * 2 * SEEDS  # the twelve

# Of the borrow sentence: test, group, what the 1-layer models were trained on, the rule, what the sentence predicts.
Rule = Callable[[Sequence[float]], rules.Test]
BORROW_TESTS: tuple[tuple[str, str, str, Rule, str], ...] = (
    ("no-borrow", "no borrow", "all", rules.predicted_high, f"{rules.SOLVED} or more, against it below {rules.FAILED}"),
    (
        "units", "units", "all", lambda found: rules.predicted_high(found, rules.RIGHT, rules.WRONG),
        f"{rules.RIGHT} or more, against it below {rules.WRONG}",
    ),
    ("ordered", "borrow", "ordered", rules.predicted_low, f"{rules.FAILED} or less, against it from {rules.SOLVED}"),
    (
        "subtraction", "borrow", "subtraction", rules.predicted_low,
        f"{rules.FAILED} or less, against it from {rules.SOLVED}",
    ),
)  # fmt: skip
TEST_COLUMNS = ("mlp", "test", "group", "trained_on", "seeds", "n", "lowest", "highest", "two_layers_seeds",
                "two_layers_lowest", "two_layers_highest", "predicted", "result")  # fmt: skip


@dataclass(frozen=True)
class BorrowTest:
    """One test of the borrow sentence on the 1-layer models of one MLP kind; beside it the same in 2 layers."""

    mlp: str
    test: str
    group: str
    trained_on: str
    found: tuple[Row, ...]
    two_layers: tuple[Row, ...]
    predicted: str
    result: rules.Test

    def row(self) -> Row:
        """A row of the table."""
        said = (
            self.mlp,
            self.test,
            self.group,
            self.trained_on,
            len(self.found),
            min((r["n"] for r in self.found), default=0),
        )
        two = (len(self.two_layers), *_ends(self.two_layers))
        columns = (*said, *_ends(self.found), *two, self.predicted, self.result)
        return dict(zip(TEST_COLUMNS, columns, strict=True))

    @property
    def words(self) -> str:
        """What was measured: 1 layer, and 2 layers where any were given."""
        two = f" (2 layers {_span(self.two_layers)})" if self.two_layers else ""
        return f"{self.test} {_span(self.found)}{two}: {self.result}"


def _ends(found: Sequence[Row]) -> tuple[float, float]:
    """Lowest and highest share of the seeds, NaN without any."""
    values = _values(found)
    return min(values, default=float("nan")), max(values, default=float("nan"))


def _values(found: Sequence[Row]) -> list[float]:
    return [row["share"] for row in found]


def _span(found: Sequence[Row]) -> str:
    values = _values(found)
    return f"{min(values):.3f} to {max(values):.3f}" if values else "not given"


def borrow_tests(rows: list[Row]) -> list[BorrowTest]:
    """The four tests of either MLP kind; open where not all three seeds were given."""
    tests = []
    for mlp in KINDS:
        for name, group, trained_on, rule, predicted in BORROW_TESTS:
            found, two = (tuple(shares(rows, group, mlp, layers, trained_on)) for layers in (1, 2))
            result = rule(_values(found)) if len(found) == SEEDS else "open"
            tests.append(BorrowTest(mlp, name, group, trained_on, found, two, predicted, result))
    return tests


def entries(rows: list[Row], tests: Sequence[BorrowTest], configs: Sequence[RunConfig]) -> list[Entry]:
    """Every sentence that the given models can speak to, in reading order."""
    found = [
        *_accuracy_entries(rows),
        *(_borrow_entry(mlp, [test for test in tests if test.mlp == mlp]) for mlp in KINDS),
        _sign_entry(rows),
        *_recipe_entries(rows, [config for config in configs if (kind_of(config) or ("", 0, ""))[2] == "all"]),
        _direction_entry(rows),
    ]
    return [entry for entry in found if entry is not None]


def _accuracy(
    rows: list[Row], sentence: str, groups: Sequence[str], layers: int, rule: Callable[[list[float]], rules.Verdict]
) -> Entry | None:
    found = [row for group in groups for mlp in KINDS for row in shares(rows, group, mlp, layers)]
    if not found:
        return None
    low, high = min(found, key=lambda row: row["share"]), max(found, key=lambda row: row["share"])
    decides = high if rule is rules.not_solved else low
    spans = "; ".join(f"{group}: {mlp} {_span(shares(rows, group, mlp, layers))}" for group in groups for mlp in KINDS)
    verdict = rules.complete(rule(_values(found)), len(found), len(groups) * len(KINDS) * SEEDS)
    return Entry(
        sentence, CARDS, verdict, f"all {len(KINDS) * SEEDS}: solved from {rules.SOLVED}, not up to {rules.FAILED}",
        Finding(f"({spans}; {layers} layer{'s' * (layers > 1)})", decides["share"], decides["low"], decides["high"],
                decides["n"], "the other end of the seeds", (low if decides is high else high)["share"]),
    )  # fmt: skip


def _accuracy_entries(rows: list[Row]) -> list[Entry | None]:
    return [
        _accuracy(rows, "The 1-layer models have solved addition", ["addition"], 1, rules.solved),
        _accuracy(rows, "and not subtraction", ["subtraction"], 1, rules.not_solved),
        _accuracy(rows, "the 2-layer models solve both", ["addition", "subtraction"], 2, rules.solved),
    ]


def _borrow_entry(mlp: str, tests: Sequence[BorrowTest]) -> Entry | None:
    if not any(test.found for test in tests):
        return None
    verdict = rules.borrow_sentence([test.result for test in tests])
    parts = "; ".join(test.words for test in tests)
    first = min((row for test in tests if test.test == "ordered" for row in test.found), key=lambda r: r["share"],
                default=min((row for test in tests for row in test.found), key=lambda r: r["share"]))  # fmt: skip
    two = [row for test in tests if test.test == "ordered" for row in test.two_layers]
    return Entry(
        "The second layer is buying borrow propagation specifically", CARDS, verdict,
        "two of four tests against it refute it, all must hold to support it",
        Finding(f"({mlp}, 1 layer; {parts})", first["share"], first["low"], first["high"], first["n"],
                "2 layers, the same" if two else None, min(_values(two)) if two else None),
    )  # fmt: skip


def _sign_entry(rows: list[Row]) -> Entry | None:
    found = [row for mlp in KINDS for layers in (1, 2) for row in shares(rows, "sign", mlp, layers)]
    if not found:
        return None
    most = max(found, key=lambda row: row["share"])
    verdict = "supported" if most["share"] <= rules.ALWAYS_ZERO else "refuted"
    return Entry(
        "sign acc is ~0 by construction", CARDS, rules.complete(verdict, len(found), MODELS),
        f"at most {rules.ALWAYS_ZERO} in every model",
        Finding(f"(at most {most['share']:.4f} in {len(found)} models; the loss has no gradient there)",
                most["share"], most["low"], most["high"], most["n"]),
    )  # fmt: skip


def _recipe_entries(rows: list[Row], configs: Sequence[RunConfig]) -> list[Entry | None]:
    """That the recipe is one for all, and that the MLP kind is the only structural difference."""
    if not configs:
        return []
    same = len({(c.recipe, c.data_seed, c.problems, c.engine) for c in configs}) == 1
    recipe = Entry(
        "trained under an identical recipe", CARDS,
        rules.complete("supported" if same else "refuted", len(configs), MODELS),
        "one recipe, data seed and task in every config",
        Finding(f"({len(configs)} configurations compared, ours)", len({c.recipe for c in configs}), n=len(configs)),
    )  # fmt: skip
    return [recipe, _structure_entry(rows, configs)]


def _structure_entry(rows: list[Row], configs: Sequence[RunConfig]) -> Entry | None:
    sizes = {(c.architecture.mlp, c.architecture.n_layers): c.architecture.n_params for c in configs}
    if not {("relu", 1), ("bilinear", 1)} <= set(sizes):
        return None
    extra = sizes["bilinear", 1] - sizes["relu", 1]
    models = (("relu", "all"), ("relu", WIDE), ("bilinear", "all"))
    kinds = [_values(shares(rows, "subtraction", mlp, 1, trained_on)) for mlp, trained_on in models]
    text = f"(bilinear has {extra:,} more parameters a layer"
    control, value = None, None
    if all(kinds):
        value = rules.size_explains(*kinds)
        spans = ", ".join(f"{min(kind):.3f} to {max(kind):.3f}" for kind in kinds)
        text += f"; subtraction of relu, relu with as many parameters, bilinear: {spans}"
        control = "share of the kinds' difference that a ReLU of the same size makes up"
    return Entry(
        "MLP type is the only structural difference", CARDS, "refuted" if extra else "supported",
        "equal numbers of parameters",
        Finding(text + ")", extra, n=len(configs), control=control, control_value=value),
    )  # fmt: skip


def _direction_entry(rows: list[Row]) -> Entry | None:
    found = [row for mlp in KINDS for row in shares(rows, "subtraction", mlp, 2, "sign-hidden")]
    if not found:
        return None
    low = min(found, key=lambda row: row["share"])
    given = [row for mlp in KINDS for row in shares(rows, "subtraction", mlp, 2)]
    return Entry(
        "the given sign spares the models a comparison that they need", "ours, of the sign-hidden control",
        rules.sign_needed(_values(found)) if len(found) == 2 * SEEDS else "open",
        f"refuted if 2-layer models without the sign solve subtraction, {rules.SOLVED} or more",
        Finding(f"(2 layers trained without it, subtraction: {_span(found)})", low["share"], low["low"], low["high"],
                low["n"], "with the sign" if given else None, min(_values(given)) if given else None),
    )  # fmt: skip


def verdict_counts(found: Sequence[Entry]) -> dict[Any, int]:
    """How many sentences each verdict has."""
    return {verdict: sum(entry.verdict == verdict for entry in found) for verdict in ("supported", "refuted", "open")}
