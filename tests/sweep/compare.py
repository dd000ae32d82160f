"""How far results are from what is wanted, in units in the last place of their type: of what is wanted, or, where a rule has
a scale, of that scale if it is larger."""

import ml_dtypes
import numpy as np

import oracle
from draw import is_float


def spacing(values, dtype):
    """The distance of neighbours of `dtype` around f64 values, denormals included."""
    limits = ml_dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(np.abs(values))
    exponent = np.clip(exponent - 1, int(limits.minexp), int(limits.maxexp) - 1)
    return np.exp2((exponent - int(limits.nmant)).astype(np.float64))


def _scale(case, want, index):
    kind = case.rule.scale
    if not kind:
        return 0.0
    if callable(kind):
        return kind(*case.inputs)
    if kind == "output":
        finite = np.abs(want[np.isfinite(want)])
        return float(finite.max()) if finite.size else 0.0
    found = oracle.magnitude(case)
    return 0.0 if found is None else np.abs(np.nan_to_num(found[index].astype(np.float64), nan=0.0, posinf=0.0))


def _floats(case, got, wanted, index):
    dtype, rule = got.dtype, case.rule
    with np.errstate(all="ignore"):
        rounded = wanted.astype(dtype)
    got64, want = got.astype(np.float64), wanted.astype(np.float64)
    unit = spacing(want, dtype)
    with np.errstate(all="ignore"):
        error = np.abs(got64 - want)
        step = float(ml_dtypes.finfo(dtype).eps) * (_scale(case, want, index) if rule.slack else 0.0)
        allowed = rule.ulp * unit + rule.slack * step
        if rule.wide:
            allowed = allowed + unit / 2  # the rounding of the exact result
        largest = float(ml_dtypes.finfo(dtype).max)
        bounded = np.abs(np.clip(got64, -largest, largest) - np.clip(want, -largest, largest)) <= allowed
    same = (got == rounded) | (np.isnan(got64) & np.isnan(want))
    is_close = np.isfinite(got64) & np.isfinite(want) & (error <= allowed)
    overflow = np.isinf(got64) != np.isinf(want)  # one is infinite, the other within reach of it
    is_close |= overflow & ~np.isnan(got64) & ~np.isnan(want) & bounded & (np.sign(got64) == np.sign(want))
    right = same | is_close
    if rule.zero:
        right &= ~((got64 == 0) & (want == 0) & (np.signbit(got64) != np.signbit(want)))
    finite = np.isfinite(got64) & np.isfinite(want)
    worst = float((error / np.maximum(unit, step))[finite].max()) if np.any(finite) else 0.0
    return right, worst


def difference(case, got, want, index):
    """'' or how one output differs, and the worst error in ulp (0 for exact types)."""
    if got.shape != want.shape:
        return f"shape {list(got.shape)} instead of {list(want.shape)}", 0.0
    if is_float(got.dtype):
        if not is_float(want.dtype):
            return f"type {got.dtype} instead of {want.dtype}", 0.0
        right, worst = _floats(case, got, want, index)
    elif got.dtype.kind == "O":
        if want.dtype.kind not in "OU":
            return f"strings instead of {want.dtype}", 0.0
        right, worst = np.asarray(got == want.astype(object)), 0.0
    elif got.dtype.kind == "c":
        right, worst = (got == want) | (np.isnan(got) & np.isnan(want)), 0.0
    else:
        if got.dtype != want.dtype:
            return f"type {got.dtype} instead of {want.dtype}", 0.0
        right, worst = np.asarray(got == want), 0.0
        if case.rule.steps:
            right |= np.abs(got.astype(np.float64) - want.astype(np.float64)) <= case.rule.steps
    if np.all(right):
        return "", worst
    first = tuple(int(i) for i in np.argwhere(~right)[0])
    return (f"{int((~right).sum())} of {right.size} elements differ, first {got[first]!r} instead of {want[first]!r} "
            f"at {list(first)}"), worst
