"""Predicted answer digits from the kernels: sixteen first operands at a time, or any problems in double precision."""

import ctypes
from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32, UInt8

from workbench.native.library import TILE, library
from workbench.recipe import Architecture

OPERANDS = 10_000  # second operands

Weights = Mapping[str, Float32[np.ndarray, "..."] | Float64[np.ndarray, "..."]]


def _pointers(weights: Weights, architecture: Architecture, dtype: type) -> tuple[list[np.ndarray], ctypes.Array]:
    """The tensors in the kernels' order and dtype, and where each begins; the first must outlive the second."""
    arrays = [np.ascontiguousarray(weights[name], dtype) for name in architecture.shapes]
    return arrays, (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])


def _flags(near: UInt8[np.ndarray, " problem"]) -> Bool[np.ndarray, "problem 5"]:
    return (near[:, None] >> np.arange(5, dtype=np.uint8) & 1).astype(bool)


def block_digits(
    weights: Weights,
    architecture: Architecture,
    operands: Int32[np.ndarray, "16"],
    *,
    subtract: bool,
    hide_sign: bool,
    nearness: float,
) -> tuple[UInt8[np.ndarray, "problem 5"], Bool[np.ndarray, "problem 5"]]:
    """Tokens predicted at positions 10..14 of all 160,000 problems with sixteen first operands, in float32.

    The second array says where the runner-up comes within `nearness` times the largest |logit|. Problems are in the
    order of the operands, then of the second operand.
    """
    arrays, pointers = _pointers(weights, architecture, np.float32)
    operands = np.ascontiguousarray(operands, np.int32)
    digits, near = np.empty((TILE * OPERANDS, 5), np.uint8), np.empty(TILE * OPERANDS, np.uint8)
    library().workbench_domain(
        pointers, architecture.n_layers, int(architecture.mlp == "bilinear"), ctypes.c_void_p(operands.ctypes.data),
        int(subtract), int(hide_sign), ctypes.c_float(nearness), ctypes.c_void_p(digits.ctypes.data),
        ctypes.c_void_p(near.ctypes.data),
    )  # fmt: skip
    del arrays
    return digits, _flags(near)


def digits_of_any(
    weights: Weights, architecture: Architecture, tokens: UInt8[np.ndarray, "problem 16"], nearness: float
) -> tuple[UInt8[np.ndarray, "problem 5"], Bool[np.ndarray, "problem 5"]]:
    """Tokens predicted at positions 10..14 of any problems, in float64, and where the runner-up is near."""
    arrays, pointers = _pointers(weights, architecture, np.float64)
    tokens = np.ascontiguousarray(tokens, np.uint8)
    digits, near = np.empty((len(tokens), 5), np.uint8), np.empty(len(tokens), np.uint8)
    library().workbench_answers(
        pointers, architecture.n_layers, int(architecture.mlp == "bilinear"), ctypes.c_void_p(tokens.ctypes.data),
        len(tokens), ctypes.c_double(nearness), ctypes.c_void_p(digits.ctypes.data), ctypes.c_void_p(near.ctypes.data),
    )  # fmt: skip
    del arrays
    return digits, _flags(near)
