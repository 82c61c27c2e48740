"""A row of the ledger of claims: a sentence, its test, what was measured, and the verdict."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from analyses.learned._claims_rules import Verdict
from workbench.result import Finding


@dataclass(frozen=True)
class Entry:
    """A sentence, its test and its verdict.

    `found` holds the number that decides, with its interval over problems or runs, and in words what was measured.
    """

    sentence: str
    source: str
    verdict: Verdict
    test: str
    found: Finding

    def row(self) -> dict[str, Any]:
        """A row of the table; NaN for a number that is not there."""
        numbers = {name: float("nan") if value is None else value for name, value in asdict(self.found).items()}
        text = numbers.pop("text")
        said = {"sentence": self.sentence, "source": self.source, "verdict": self.verdict, "test": self.test}
        return said | {"measured": text, **numbers, "n": self.found.n or 0, "control": self.found.control or ""}

    def finding(self) -> Finding:
        """The same as a sentence."""
        return replace(self.found, text=f'{self.verdict.upper()}: "{self.sentence}" {self.found.text}')
