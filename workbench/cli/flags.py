"""Command-line flags made from frozen dataclasses, so that a default and its help are written once."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer


def flag_parameters(config: type, without: tuple[str, ...] = ()) -> list[inspect.Parameter]:
    """One keyword parameter a field of `config` that carries help, as Typer reads them."""
    hints = get_type_hints(config)
    parameters = []
    for field in dataclasses.fields(config):
        if "help" not in field.metadata or field.name in without:
            continue
        kind: Any = Annotated[hints[field.name], typer.Option(help=field.metadata["help"])]
        parameters.append(
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind)
        )
    return parameters


def with_flags(function: Callable[..., None], *configs: type, without: tuple[str, ...] = ()) -> Callable[..., None]:
    """`function(..., **flags)` with its `**` replaced by the flags of `configs`, for `app.command`."""

    def command(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)

    own = [p for p in inspect.signature(function).parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    made = [parameter for config in configs for parameter in flag_parameters(config, without)]
    signature = inspect.Signature([*own, *made])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    command.__doc__ = function.__doc__
    command.__name__ = function.__name__
    return command


def build(config: type, flags: dict[str, Any], **rest: Any) -> Any:
    """The dataclass made of the flags that belong to it; raises BadInput when its own checks refuse them."""
    names = {field.name for field in dataclasses.fields(config)}
    return config(**{name: value for name, value in flags.items() if name in names}, **rest)
