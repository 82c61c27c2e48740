"""The built kernels, loaded once. Nothing here imports torch."""

import ctypes
import functools
import importlib.machinery
import os
from pathlib import Path

from workbench.recipe import Architecture

# The widths the kernels are written for: those of the published decoders. Any number of layers.
WIDTHS = {"d_model": 32, "n_heads": 4, "d_head": 8, "d_mlp": 64}
SWITCH = "WORKBENCH_NO_KERNELS"  # environment variable; anything in it switches the kernels off
TILE = 16  # problems the kernels take together


@functools.cache
def _found() -> tuple[ctypes.CDLL | None, str]:
    """The library, or why there is none."""
    if os.environ.get(SWITCH):
        return None, f"the kernels are switched off by {SWITCH}"
    folder = Path(__file__).parent
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        if (path := folder / f"_kernel{suffix}").exists():
            try:
                library = ctypes.CDLL(str(path))
            except OSError as error:
                return None, f"the kernels do not load ({str(error)[:100]}); install again on this machine"
            if not library.workbench_runs_here():
                return None, "the kernels were built for another processor; install again on this machine"
            library.workbench_step.restype = ctypes.c_double
            library.workbench_compiler.restype = ctypes.c_char_p
            return library, ""
    return None, "the kernels are not built: no C++ compiler at installation, or it failed"


def library() -> ctypes.CDLL:
    """The loaded kernels; RuntimeError when `missing` has something to say."""
    found, reason = _found()
    if found is None:
        raise RuntimeError(reason)
    return found


def compiler() -> str:
    """The compiler that built the kernels, e.g. `GCC 12.2.0`."""
    return library().workbench_compiler().decode()


def missing(architecture: Architecture | None = None) -> str:
    """Why the kernels cannot be used here, for this architecture; empty when they can."""
    if architecture is not None:
        for name, width in WIDTHS.items():
            if getattr(architecture, name) != width:
                return f"the kernels are written for {name} {width}, not {getattr(architecture, name)}"
    return _found()[1]
