"""Whether the values of two tensors are the same: bit for bit, or as near as a tolerance says."""

from __future__ import annotations

from typing import Any

import torch

#: Relative and absolute tolerance by dtype, those that `torch.testing.assert_close` documents.
_CLOSE: dict[torch.dtype, tuple[float, float]] = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}

#: Numbers that are stored in a byte and know no arithmetic.
_SMALL = {torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz}


def value_difference(expected: Any, actual: Any, tolerance: float | None) -> tuple[str, str] | None:
    """Where and how the values of two tensors of one shape and dtype differ.

    Arguments:
        tolerance: relative and absolute; 0 demands equality, also of the sign of zeros (nan = nan); None
            means the tolerances of `torch.testing` for the dtype.

    Returns:
        the first differing element as ``[i][j]`` (empty for a whole tensor) and a sentence, or None.
    """
    expected, actual = expected.detach(), actual.detach()
    if expected.layout is not torch.strided or expected.is_quantized or expected.is_nested:
        return _by_torch(expected, actual, tolerance)
    same = _same(_plain(expected), _plain(actual), tolerance)
    if bool(same.all()):
        return None
    wrong = (~same).nonzero()
    index = tuple(int(number) for number in wrong[0])
    text = f"tensor's values differ: expected {expected[index].item()!r}, got {actual[index].item()!r}"
    if same.numel() > 1:
        text += f" ({len(wrong)} of {same.numel()} elements)"
    return "".join(f"[{number}]" for number in index), text


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype in _SMALL:
        return tensor.to(torch.float32)
    return tensor.resolve_conj().resolve_neg()


def _same(expected: torch.Tensor, actual: torch.Tensor, tolerance: float | None) -> torch.Tensor:
    """Element by element, whether two tensors agree."""
    if expected.is_complex() and tolerance == 0:
        parts = _same(torch.view_as_real(expected), torch.view_as_real(actual), tolerance)
        return parts.all(-1)
    if not (expected.is_floating_point() or expected.is_complex()):
        return expected == actual
    if tolerance != 0:
        rtol, atol = (tolerance, tolerance) if tolerance is not None else _CLOSE[expected.dtype]
        return torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True)
    alike = (expected == actual) & (expected.signbit() == actual.signbit())
    return alike | (expected.isnan() & actual.isnan())


def _by_torch(expected: Any, actual: Any, tolerance: float | None) -> tuple[str, str] | None:
    try:
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    except AssertionError as error:
        return "", f"tensor's values differ\n{error}"
    return None
