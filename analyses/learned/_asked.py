"""What analyses of checkpoints refuse alike: options out of their range, no checkpoint, two of one name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from workbench.errors import BadInput
from workbench.recipe import check_types

if TYPE_CHECKING:
    from workbench.checkpoint import Checkpoint


def check_options(options: Any, **ranges: tuple[int, int]) -> None:
    """Raise BadInput for a field of another type, one outside its (fewest, most), or a negative `seed`."""
    check_types(options)
    for name, (fewest, most) in ranges.items():
        if not fewest <= getattr(options, name) <= most:
            raise BadInput(f"{name} is {getattr(options, name):,}, expected {fewest:,} to {most:,}")
    if options.seed < 0:
        raise BadInput(f"seed is {options.seed}, expected 0 or more")


def check_checkpoints(checkpoints: "Sequence[Checkpoint]", analysis: str) -> None:
    """Raise BadInput when there is none, or when two have one name, by which tables tell them apart."""
    from workbench.checkpoint import refuse_namesakes

    if not checkpoints:
        raise BadInput(f"{analysis} needs at least one checkpoint; give the folder of one, or a folder that holds some")
    refuse_namesakes(checkpoints)
