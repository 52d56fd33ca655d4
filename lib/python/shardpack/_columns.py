"""Columns of batches: which ones a loader asks the library for, and how a batch is handed to the user."""
from __future__ import annotations

import collections
import functools
import json
import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from . import _args, transforms
from ._errors import ArgumentError

_IMAGE, _LABEL, _INDEX, _VALID, _KEY, _BYTES = 1, 2, 3, 4, 5, 6  # as spk_column_kind
_DTYPES = ("uint8", "float16", "float32")  # as spk_dtype
_LAYOUTS = {"NHWC": 0, "NCHW": 1, "channels_last": 0}  # as spk_layout
_SPECIAL = {"label": _LABEL, "index": _INDEX, "valid": _VALID, "key": _KEY}


@dataclass(frozen=True)
class Image:
    """A column of images, where a dict of ``fields`` needs more than one kind. What is None is as given to the loader.

    Args:
        transform: as `Loader`'s ``image``
        field: the field with the image; None: the first of jpg, png that a sample has
        dtype, layout, mean, std: as for `Loader`
        channels: 3, or 1 for gray (luma as Pillow's ``"L"``)
        exif: turn the image as its Exif tag says
        fast: decode large photographs at a fraction of their size; pixels then differ a little from Pillow's
        paired: take crop and flips of the first image column; for masks, with ``interpolation="nearest"``
        max_pixels: refuse larger images; None: 178,956,970
    """

    transform: Any = None
    field: Optional[str] = None
    dtype: Any = None
    layout: Optional[str] = None
    mean: Any = None
    std: Any = None
    channels: int = 3
    exif: bool = False
    fast: bool = False
    paired: bool = False
    max_pixels: Optional[int] = None


@dataclass(frozen=True)
class Raw:
    """A column of a field as it was packed: a list with one value per row.

    Args:
        field: name of the field, such as ``"json"``
        decode: ``"bytes"``, ``"text"`` (UTF-8, str) or ``"json"`` (what it parses to)
        optional: samples without the field give None instead of an error
    """

    field: str
    decode: str = "bytes"
    optional: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.field, str):
            raise TypeError(f"field={self.field!r}: must be the name of a field")
        _args.choice("decode", self.decode, "bytes", "text", "json")


Fields = Union[Sequence[str], Mapping[str, Any], None]


@dataclass(frozen=True)
class Defaults:
    """What the loader's own arguments say of images."""

    transform: Any
    dtype: Any
    layout: str
    mean: Any
    std: Any
    hflip: float
    vflip: float


def _normalisation(dtype: str, mean: Any, std: Any) -> dict[str, Any]:
    if mean is None and std is None:
        return {}
    if dtype == "uint8":
        raise ArgumentError('mean and std: need dtype="float32" or "float16"')
    mean = _args.per_channel("mean", 0.0 if mean is None else mean)
    std = _args.per_channel("std", 1.0 if std is None else std)
    if 0 in std:
        raise ArgumentError(f"std={std!r}: must not be 0")
    return {"normalize": 1, "mean": mean, "std": std}


def _image_options(name: str, image: Image, given: Defaults) -> tuple[dict[str, Any], str]:
    """Options of the extension, and the layout as the user named it."""
    dtype = _args.dtype("dtype", given.dtype if image.dtype is None else image.dtype)
    layout = given.layout if image.layout is None else image.layout
    _args.choice("layout", layout, *_LAYOUTS)
    options: dict[str, Any] = {"kind": _IMAGE, "dtype": _DTYPES.index(dtype), "layout": _LAYOUTS[layout]}
    if not image.paired:
        options.update(hflip=given.hflip, vflip=given.vflip)
    if image.transform is None:
        options.update(transforms.options_of("image", given.transform))
    else:
        options.update(transforms.options_of(f"fields[{name!r}]", image.transform))
    mean, std = (given.mean, given.std) if image.mean is None and image.std is None else (image.mean, image.std)
    if image.dtype is None or image.mean is not None or image.std is not None:
        options.update(_normalisation(dtype, mean, std))
    options["channels"] = _args.integer("channels", image.channels, 1, 3)
    if options["channels"] == 2:
        raise ArgumentError("channels=2: must be 1 or 3")
    options["exif_orientation"] = int(_args.flag("exif", image.exif))
    options["fast"] = int(_args.flag("fast", image.fast))
    options["paired"] = int(_args.flag("paired", image.paired))
    if image.max_pixels is not None:
        options["max_pixels"] = _args.integer("max_pixels", image.max_pixels, 1)
    if image.field is not None:
        options["field"] = image.field.encode()
    return options, layout


def _named(fields: Fields) -> tuple[list[tuple[str, Any]], bool]:
    """(name, what it is) of each column, and whether batches are dicts."""
    if isinstance(fields, Mapping):
        return list(fields.items()), True
    if isinstance(fields, (str, bytes)) or not isinstance(fields, Sequence):
        raise TypeError(f"fields={fields!r}: must be a list of names, or a dict of names and what they are")
    for name in fields:
        if not isinstance(name, str):
            raise TypeError(f"fields: {name!r}: must be a name; a dict can say more of a column")
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ArgumentError(f"fields: {name!r} cannot be an attribute; use a dict: {{'a_name': {name!r}}}")
    if len(set(fields)) != len(fields):
        raise ArgumentError(f"fields={fields!r}: a name comes twice")
    return [(name, name) for name in fields], False


def _one(name: str, what: Any, given: Defaults) -> tuple[dict[str, Any], Any]:
    """Options of a column, and how it is handed out: layout of images, "label", "index", "valid", "key", or a Raw."""
    if what == "image":
        what = Image()
    if isinstance(what, Image):
        return _image_options(name, what, given)
    if isinstance(what, str) and what in _SPECIAL:
        return {"kind": _SPECIAL[what]}, what
    if isinstance(what, str):
        what = Raw(what)
    if isinstance(what, Raw):
        return {"kind": _BYTES, "field": what.field.encode(), "optional": int(what.optional)}, what
    return _image_options(name, Image(what), given)


class Plan:
    """The columns of a loader. `options` goes to the extension; `assemble` makes a batch of what comes back."""

    def __init__(self, fields: Fields, given: Defaults, output: str) -> None:
        rows, as_dict = ([("image", "image"), ("label", "label")], False) if fields is None else _named(fields)
        if not rows:
            raise ArgumentError("fields: must name at least one column")
        pairs = [_one(name, what, given) for name, what in rows]
        self.names = tuple(name for name, _ in rows)
        self.options = [options for options, _ in pairs]
        self.makers = [_maker(how, output) for _, how in pairs]
        self.make: Callable[[list[Any]], Any]
        if fields is None:
            self.make = tuple
        elif as_dict:
            self.make = lambda values: dict(zip(self.names, values))
        else:
            self.make = batch_type(self.names)._make

    def assemble(self, columns: tuple[Any, ...]) -> Any:
        return self.make([maker(column) for maker, column in zip(self.makers, columns)])


def _maker(how: Any, output: str) -> Callable[[Any], Any]:
    """What turns a column of the extension into what the user gets."""
    if how == "key":
        return lambda values: [value.decode() for value in values]
    if isinstance(how, Raw):
        return _raw_maker(how)
    if output == "dlpack":
        if how == "channels_last":
            raise ArgumentError('layout="channels_last": needs output="torch" or "numpy"')
        return lambda column: column
    asarray: Callable[[Any], Any] = np.asarray
    if how == "valid":
        asarray = lambda column: np.asarray(column).view(np.bool_)  # noqa: E731
    if output == "torch":
        import torch

        from_numpy = torch.from_numpy
        if how == "channels_last":
            return lambda column: from_numpy(asarray(column)).permute(0, 3, 1, 2)
        return lambda column: from_numpy(asarray(column))
    if how == "channels_last":
        return lambda column: asarray(column).transpose(0, 3, 1, 2)
    return asarray


def _raw_maker(raw: Raw) -> Callable[[Any], Any]:
    """Values of optional fields that a sample lacks come as empty bytes."""
    decoders: dict[str, Callable[[bytes], Any]] = {"bytes": bytes, "text": bytes.decode, "json": json.loads}
    decode = decoders[raw.decode]
    if raw.optional:
        return lambda values: [decode(value) if value else None for value in values]
    if raw.decode == "json":  # rows that were substituted have no text
        return lambda values: [decode(value) if value else None for value in values]
    if raw.decode == "bytes":
        return lambda values: values
    return lambda values: [decode(value) for value in values]


@functools.lru_cache(maxsize=64)
def batch_type(names: tuple[str, ...]) -> Any:
    """A named tuple that can be pickled, although its type is made here."""
    base: Any = collections.namedtuple("Batch", names)  # type: ignore[misc]
    return type("Batch", (base,), {"__slots__": (), "__reduce__": lambda self: (_unpickle, (names, tuple(self)))})


def _unpickle(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return batch_type(names)(*values)
