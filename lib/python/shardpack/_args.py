"""Checks of arguments. A bad one is named, with the value and what it may be."""
from __future__ import annotations

import math
import operator
import os
from typing import Any

import numpy as np

from ._errors import ArgumentError

_UNITS = {"": 1, "b": 1, "k": 1000, "kb": 1000, "m": 1000**2, "mb": 1000**2, "g": 1000**3, "gb": 1000**3,
          "kib": 1024, "mib": 1024**2, "gib": 1024**3}


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """An int in [low, high]; NumPy's integers count, bool and float do not."""
    if isinstance(value, bool):
        raise TypeError(f"{name}={value!r}: must be an integer")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: must be an integer, not {type(value).__name__}") from None
    if number < low or (high is not None and number > high):
        span = f"at least {low}" if high is None else f"{low} to {high}"
        raise ArgumentError(f"{name}={value!r}: must be {span}")
    return number


def real(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """A finite number in [low, high]."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}={value!r}: must be a number, not {type(value).__name__}") from None
    if isinstance(value, str):
        raise TypeError(f"{name}={value!r}: must be a number, not str")
    if not low <= number <= high or math.isinf(number):
        span = f"at least {low:g}" if high == math.inf else f"{low:g} to {high:g}"
        raise ArgumentError(f"{name}={value!r}: must be {span}")
    return number


def chosen(indices: Any) -> dict[str, bytes]:
    """``indices`` as the library's option: ascending, 8 bytes each. Nothing if it is None."""
    if indices is None:
        return {}
    plain = hasattr(indices, "__array__") or not hasattr(indices, "__iter__") or isinstance(indices, str)
    numbers = np.asarray(indices if plain else list(indices))
    if numbers.dtype == bool:
        raise TypeError("indices: a mask was given; numpy.flatnonzero(mask) has the indices")
    if numbers.ndim != 1 or (numbers.size > 0 and numbers.dtype.kind not in "iu"):
        raise TypeError(f"indices={indices!r:.60}: must be integers, in one dimension")
    if numbers.size == 0:
        raise ArgumentError("indices: there are none; at least one sample must be chosen")
    numbers = np.sort(numbers)
    if numbers[0] < 0:
        raise ArgumentError(f"indices: {numbers[0]}: must be at least 0")
    twice = numbers[1:][numbers[1:] == numbers[:-1]]
    if twice.size > 0:
        raise ArgumentError(f"indices: {twice[0]} is there more than once")
    return {"indices": numbers.astype(np.uint64).tobytes()}


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):
        raise TypeError(f"{name}={value!r}: must be True or False")
    return bool(value)


def choice(name: str, value: Any, *words: str) -> int:
    """The place of the value among the words."""
    if value in words and isinstance(value, str):
        return words.index(value)
    kind = ArgumentError if isinstance(value, str) else TypeError
    raise kind(f"{name}={value!r}: must be one of " + ", ".join(map(repr, words)))


def pair(name: str, value: Any, low: float, high: float = math.inf) -> tuple[float, float]:
    """Two numbers in ascending order."""
    try:
        first, second = value
    except (TypeError, ValueError):
        raise TypeError(f"{name}={value!r}: must be two numbers, the smaller one first") from None
    first, second = real(name, first, low, high), real(name, second, low, high)
    if first > second:
        raise ArgumentError(f"{name}={value!r}: must be two numbers, the smaller one first")
    return first, second


def per_channel(name: str, value: Any) -> tuple[float, float, float]:
    """One number for all channels, or one for each."""
    if isinstance(value, (int, float)):
        value = (value,) * 3
    try:
        numbers = tuple(real(name, v, -math.inf) for v in value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: must be a number or three numbers, on the scale 0 to 1") from None
    if len(numbers) not in (1, 3):
        raise ArgumentError(f"{name}={value!r}: must be a number or three numbers, on the scale 0 to 1")
    return numbers if len(numbers) == 3 else numbers * 3  # type: ignore[return-value]


def size(name: str, value: Any) -> tuple[int, int]:
    """(height, width) of an int or two of them, in pixels."""
    if isinstance(value, (tuple, list)):
        if len(value) == 1:
            value = (value[0], value[0])
        if len(value) != 2:
            raise ArgumentError(f"{name}={value!r}: must be an integer or (height, width)")
        return integer(name, value[0], 1, 16384), integer(name, value[1], 1, 16384)
    side = integer(name, value, 1, 16384)
    return side, side


def byte_count(name: str, value: Any) -> int:
    """Bytes: an integer, or text such as "256MiB" or "1GB"."""
    if not isinstance(value, str):
        return integer(name, value, 0)
    text = value.strip().lower()
    digits = text.rstrip("kmgib ")
    unit = text[len(digits):].strip()
    try:
        return int(float(digits) * _UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise ArgumentError(f'{name}={value!r}: must be bytes, or text such as "64MB" or "1GiB"') from None


def paths(name: str, value: Any) -> list[str]:
    """One path or URL, or a list of them."""
    if not isinstance(value, (list, tuple)):
        return [path(name, value)]
    if not value:
        raise ArgumentError(f"{name}={value!r}: must not be empty")
    return [path(name, one) for one in value]


def path(name: str, value: Any) -> str:
    """A path or URL as text."""
    if hasattr(value, "__getitem__") and hasattr(value, "__len__") and not isinstance(value, (str, bytes)):
        raise TypeError(
            f"{name}: a {type(value).__name__} was given, the path of a packed dataset is needed; "
            f"shardpack.pack(folder, target) makes one of an image folder"
        )
    try:
        text = os.fsdecode(value)
    except TypeError:
        raise TypeError(f"{name}={value!r}: must be a path or URL, not {type(value).__name__}") from None
    if not text:
        raise ArgumentError(f"{name}={value!r}: must not be empty")
    return text


def dtype(name: str, value: Any) -> str:
    """Name of a dtype given as text, or as NumPy's or PyTorch's object."""
    text = value if isinstance(value, str) else str(getattr(value, "__name__", None) or value).rsplit(".", 1)[-1]
    choice(name, text, "uint8", "float16", "float32")
    return text
