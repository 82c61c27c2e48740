"""The commands, thin, one file a group. Nothing here imports torch until a command needs it.

Further commands join through the entry-point group `workbench.commands`: each entry is a function `add_to(app)`.
"""

import importlib
import importlib.metadata
import os
import sys
from typing import Annotated

import typer

from workbench import __version__
from workbench.cli import analyze
from workbench.errors import BadInput, RunFailed

GROUPS = ("train", "grid", "auxiliary", "models", "export", "demo", "hill", "ntk")
ENTRY_POINTS = "workbench.commands"


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"workbench {__version__}\n")
        raise typer.Exit


def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train small arithmetic transformers, load and probe them, export their activations."""


def make_app(words: list[str]) -> typer.Typer:
    """The whole command line; an analysis is looked up only where `words` name it."""
    app = typer.Typer(
        pretty_exceptions_enable=False, no_args_is_help=True, add_completion=False, rich_markup_mode=None, callback=_top
    )
    for group in GROUPS:
        importlib.import_module(f"workbench.cli.{group}").add_to(app)
    analyze.add_to(app, words)
    for entry in importlib.metadata.entry_points(group=ENTRY_POINTS):
        entry.load()(app)
    return app


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"Error: {' '.join(message.split())}\n")
    return code


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code: 2 for bad input or a full disk, 1 for a run that failed."""
    try:
        make_app(arguments)(args=arguments, prog_name="workbench", standalone_mode=True)
    except BadInput as error:
        return _fail(str(error), 2)
    except RunFailed as error:
        return _fail(str(error), 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(
            f"{error.strerror or error}: {error.filename or 'while writing'}; what was saved before is kept", 2
        )
    except MemoryError:
        return _fail("out of memory; ask for fewer problems or hooks at a time", 2)
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    return 0


def main() -> None:
    """Entry point of the `workbench` command."""
    sys.exit(run(sys.argv[1:]))
