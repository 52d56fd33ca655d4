"""What is done to images, as small immutable objects. Names, arguments and pixels are torchvision's (on PIL images)."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Union

from . import _args
from ._errors import ArgumentError

_BILINEAR = ("bilinear", "bicubic", "nearest")  # as spk_interpolation
_RANDOM_CROP, _CENTER_CROP, _EXACT = 0, 1, 2  # as spk_transform


def _word(value: Any) -> Any:
    """Also torchvision's InterpolationMode."""
    return getattr(value, "value", value)


@dataclass(frozen=True)
class RandomResizedCrop:
    """A random part of the image, resized to ``size``: the usual choice for training.

    Args:
        size: of the result in pixels, an int for a square or (height, width)
        scale: share of the image's area, lower and upper bound
        ratio: width / height of the part, lower and upper bound
        interpolation: ``"bilinear"`` or ``"bicubic"``, both with antialiasing; ``"nearest"``
    """

    size: Union[int, tuple[int, int]]
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    interpolation: str = "bilinear"

    def __post_init__(self) -> None:
        _args.size("size", self.size)
        low, _ = _args.pair("scale", self.scale, 0, 1)
        if low == 0:
            raise ArgumentError(f"scale={self.scale!r}: must be more than 0")
        low, _ = _args.pair("ratio", self.ratio, 0)
        if low == 0:
            raise ArgumentError(f"ratio={self.ratio!r}: must be more than 0")
        object.__setattr__(self, "interpolation", _word(self.interpolation))
        _args.choice("interpolation", self.interpolation, *_BILINEAR)


@dataclass(frozen=True)
class Resize:
    """An int: the shorter side gets that length (a `CenterCrop` must follow). (height, width): the whole image gets
    that size, whatever its shape was. Pixels; ``interpolation`` as for `RandomResizedCrop`."""

    size: Union[int, tuple[int, int]]
    interpolation: str = "bilinear"

    def __post_init__(self) -> None:
        _args.size("size", self.size)
        object.__setattr__(self, "interpolation", _word(self.interpolation))
        _args.choice("interpolation", self.interpolation, *_BILINEAR)


@dataclass(frozen=True)
class CenterCrop:
    """The centre of the image, ``size`` pixels: an int for a square or (height, width). It follows a `Resize`."""

    size: Union[int, tuple[int, int]]

    def __post_init__(self) -> None:
        _args.size("size", self.size)


@dataclass(frozen=True)
class RandomHorizontalFlip:
    """A left-right mirror with probability ``p``."""

    p: float = 0.5

    def __post_init__(self) -> None:
        _args.real("p", self.p, 0, 1)


@dataclass(frozen=True)
class RandomVerticalFlip:
    """An upside-down mirror with probability ``p``."""

    p: float = 0.5

    def __post_init__(self) -> None:
        _args.real("p", self.p, 0, 1)


Transform = Union[RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, RandomVerticalFlip]
_KINDS = (RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, RandomVerticalFlip)


def _steps(name: str, transform: Any) -> list[Transform]:
    steps = list(transform) if isinstance(transform, Iterable) else [transform]
    for step in steps:
        if not isinstance(step, _KINDS):
            hint = ""
            if type(step).__module__.startswith("torchvision"):
                hint = "; torchvision's own transforms run in ShardDataset"
            raise TypeError(
                f"{name}={step!r}: must be of RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, "
                f"RandomVerticalFlip, or a list of them{hint}"
            )
    return steps


def _geometry(name: str, steps: list[Transform]) -> dict[str, Any]:
    """Options of what is neither flip: one random crop, or a resize with or without a centre crop."""
    kinds = [type(step) for step in steps]
    if kinds == [RandomResizedCrop]:
        crop: Any = steps[0]
        height, width = _args.size("size", crop.size)
        return {"transform": _RANDOM_CROP, "height": height, "width": width, "scale": tuple(crop.scale),
                "ratio": tuple(crop.ratio), "interpolation": _BILINEAR.index(crop.interpolation)}
    if kinds == [Resize, CenterCrop] and not isinstance(steps[0].size, (tuple, list)):  # type: ignore[union-attr]
        resize: Any = steps[0]
        height, width = _args.size("size", steps[1].size)  # type: ignore[union-attr]
        return {"transform": _CENTER_CROP, "height": height, "width": width, "resize": resize.size,
                "interpolation": _BILINEAR.index(resize.interpolation)}
    if kinds == [Resize] and isinstance(steps[0].size, (tuple, list)):  # type: ignore[union-attr]
        resize = steps[0]
        height, width = _args.size("size", resize.size)
        return {"transform": _EXACT, "height": height, "width": width,
                "interpolation": _BILINEAR.index(resize.interpolation)}
    raise ArgumentError(
        f"{name}={steps!r}: images of a batch have one size, so it must be RandomResizedCrop(size), "
        "[Resize(side), CenterCrop(size)] or Resize((height, width)), and flips; other transforms run in ShardDataset"
    )


def options_of(name: str, transform: Any) -> dict[str, Any]:
    """Image options of the extension for a transform or a list of them."""
    steps = _steps(name, transform)
    options: dict[str, Any] = {}
    rest = []
    for step in steps:
        flip = {RandomHorizontalFlip: "hflip", RandomVerticalFlip: "vflip"}.get(type(step))
        if flip and flip in options:
            raise ArgumentError(f"{name}={steps!r}: two flips of one kind")
        if flip:
            options[flip] = float(step.p)  # type: ignore[union-attr]
        else:
            rest.append(step)
    return {**options, **_geometry(name, rest)}
