"""Columns of batches: which ones a loader asks the library for, and how a batch is handed to the user."""
from __future__ import annotations

import collections
import functools
import json
import keyword
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

import numpy as np

from . import _args, transforms
from ._errors import ArgumentError, FormatError

_IMAGE, _LABEL, _INDEX, _VALID, _KEY, _BYTES, _STORED, _ORIGINAL = range(1, 9)  # as spk_column_kind
_DTYPES = ("uint8", "float16", "float32")  # as spk_dtype
_LAYOUTS = {"NHWC": 0, "NCHW": 1, "channels_last": 0}  # as spk_layout
_SPECIAL = {"label": _LABEL, "index": _INDEX, "valid": _VALID, "key": _KEY}


@dataclass(frozen=True)
class Image:
    """A column of images, where a dict of ``fields`` needs more than one kind. What is None is as given to the loader.

    A mask beside its image (``1.jpg`` and ``1.png`` are one sample), cut and mirrored alike::

        fields={"image": RandomResizedCrop(224), "label": "label",
                "mask": Image(RandomResizedCrop(224, interpolation="nearest"), field="png", paired=True,
                              dtype="uint8", channels=1)}

    Args:
        transform: as `Loader`'s ``image``
        field: the field with the image; None: the first of jpg, png that a sample has
        dtype, layout, mean, std: as for `Loader`
        channels: 3, or 1 for gray (luma as Pillow's ``"L"``)
        exif: turn the image as its Exif tag says
        fast: decode large photographs at a fraction of their size; pixels then differ a little from Pillow's
        paired: take crop and flips of the first image column; for masks, with a transform that has
            ``interpolation="nearest"``
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
        decode: ``"bytes"``, ``"text"`` (UTF-8, str) or ``"json"`` (what it parses to); what is no text or no JSON is a
            FormatError
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
    """What the loader's own arguments say of images; None: not given."""

    image: Any = None
    dtype: Any = None
    layout: Optional[str] = None
    mean: Any = None
    std: Any = None
    hflip: Optional[float] = None
    vflip: Optional[float] = None

    def refuse_all(self) -> None:
        """Where there are no images, one that was given would be passed over."""
        for name, value in vars(self).items():
            if value is not None:
                raise ArgumentError(f"{name}={value!r}: is about images, and fields names no column of images")

    def filled(self, usual: Any) -> "Defaults":
        """With what holds where nothing was given; usual: the transform."""
        filled = replace(
            self,
            image=usual if self.image is None else self.image,
            dtype="float32" if self.dtype is None else self.dtype,
            layout="NCHW" if self.layout is None else self.layout,
            hflip=_args.real("hflip", 0.0 if self.hflip is None else self.hflip, 0, 1),
            vflip=_args.real("vflip", 0.0 if self.vflip is None else self.vflip, 0, 1),
        )
        for name in ("hflip", "vflip"):
            if getattr(self, name) is not None and name in filled.geometry:
                raise ArgumentError(f"{name}={getattr(self, name)!r}: image={self.image!r} has that flip; give one of them")
        return filled

    @functools.cached_property
    def geometry(self) -> dict[str, Any]:
        """Options of the extension for the transform."""
        return transforms.options_of("image", self.image)


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
        options.update(given.geometry)
    else:
        options.update(transforms.options_of(f"fields[{name!r}]", image.transform))
    own = image.mean is not None or image.std is not None
    if own or image.dtype is None or dtype != "uint8":  # else integers by its own dtype, beside columns of floats
        mean = given.mean if image.mean is None else image.mean
        std = given.std if image.std is None else image.std
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

    def __init__(self, fields: Fields, given: Defaults, usual: Any, output: str) -> None:
        rows, as_dict = ([("image", "image"), ("label", "label")], False) if fields is None else _named(fields)
        if not rows:
            raise ArgumentError("fields: must name at least one column")
        filled = given.filled(usual)
        pairs = [_one(name, what, filled) for name, what in rows]
        if not any(options["kind"] == _IMAGE for options, _ in pairs):
            given.refuse_all()
        self.names = tuple(name for name, _ in rows)
        self.options = [options for options, _ in pairs]
        self.hows = [how for _, how in pairs]
        self.makers = [_maker(how, output) for how in self.hows]
        self.capsules = output == "torch"  # what the makers take
        self.make: Callable[[Iterable[Any]], Any]
        if fields is None:
            self.make = tuple
        elif as_dict:
            self.make = lambda values: dict(zip(self.names, values))
        else:
            self.make = batch_type(self.names)._make

    def assemble(self, columns: tuple[Any, ...]) -> Any:
        return self.make(map(operator.call, self.makers, columns))

    def on_device(self) -> list[tuple[int, Any, Callable[[Any], Any]]]:
        """(number, its type's name or None for lists, what turns its tensor or list into what the user gets)."""
        rows: list[tuple[int, Any, Callable[[Any], Any]]] = []
        for i, (options, how) in enumerate(zip(self.options, self.hows)):
            if how == "key" or isinstance(how, Raw):
                rows.append((i, None, self.makers[i]))
            elif how == "channels_last":
                rows.append((i, _DTYPES[options["dtype"]], lambda tensor: tensor.permute(0, 3, 1, 2)))
            elif options["kind"] == _IMAGE:
                rows.append((i, _DTYPES[options["dtype"]], lambda tensor: tensor))
            elif how == "valid":
                rows.append((i, "bool", lambda tensor: tensor))
            else:
                rows.append((i, "int64", lambda tensor: tensor))
        return rows

    def guarded(self, batch: Any, lease: Any) -> Any:
        """The same batch with the method release_after."""
        if isinstance(batch, dict):
            kept: Any = GuardedDict(batch)
        elif type(batch) is tuple:
            kept = GuardedTuple(batch)
        else:
            kept = guarded_type(self.names)(*batch)
        kept._lease = lease
        return kept


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
    if output == "torch":
        return _torch_maker(how)
    asarray: Callable[[Any], Any] = np.asarray
    if how == "valid":
        asarray = lambda column: np.asarray(column).view(np.bool_)  # noqa: E731
    if how == "channels_last":
        return lambda column: asarray(column).transpose(0, 3, 1, 2)
    return asarray


def _torch_maker(how: Any) -> Callable[[Any], Any]:
    """Of a DLPack capsule: a tensor made of an array would cost the array, too."""
    import torch

    from_dlpack: Callable[[Any], Any] = torch.utils.dlpack.from_dlpack
    if how == "valid":  # PyTorch 1.13 knows no capsules of bool
        return lambda capsule: from_dlpack(capsule).view(torch.bool)
    if how == "channels_last":
        return lambda capsule: from_dlpack(capsule).permute(0, 3, 1, 2)
    return from_dlpack


_DECODERS: dict[str, Callable[[bytes], Any]] = {"bytes": bytes, "text": bytes.decode, "json": json.loads}
_NOTHING = {"bytes": b"", "text": "", "json": None}


def _raw_maker(raw: Raw) -> Callable[[Any], Any]:
    """Of a list with None where there is no value: the sample lacks an optional field, or the row was substituted."""
    decode, nothing = _DECODERS[raw.decode], None if raw.optional else _NOTHING[raw.decode]

    def make(values: list[Any]) -> list[Any]:
        made: list[Any] = []
        try:
            for value in values:
                made.append(nothing if value is None else decode(value))
        except ValueError as problem:  # not UTF-8, or no JSON
            raise FormatError(f'field "{raw.field}" of row {len(made)} of the batch: no {raw.decode}: {problem}') from problem
        return made

    return make


class _Guarded:
    """Batches of page-locked memory, with pin_memory and without device."""

    _lease: Any = None

    def release_after(self, stream: Any) -> None:
        """Call it when copies from this batch are queued on a stream that is not the current one: the memory is not
        used again before they have ended. A torch.cuda.Stream, or a number (cudaStream_t)."""
        handle = stream_handle(stream)
        if self._lease is not None:  # else it is pageable memory: a copy from it has ended when its call returns
            self._lease.release_after(handle, stream)


def stream_handle(stream: Any) -> int:
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise TypeError(f"stream={stream!r}: must be a torch.cuda.Stream or the number of a cudaStream_t")
    return stream


class GuardedTuple(tuple[Any, ...], _Guarded):
    """(images, labels) with release_after."""

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)


class GuardedDict(dict[str, Any], _Guarded):
    """A dict of columns with release_after."""

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


@functools.lru_cache(maxsize=64)
def guarded_type(names: tuple[str, ...]) -> Any:
    return type("Batch", (batch_type(names), _Guarded), {})


@functools.lru_cache(maxsize=64)
def batch_type(names: tuple[str, ...]) -> Any:
    """A named tuple that can be pickled, although its type is made here."""
    base: Any = collections.namedtuple("Batch", names)  # type: ignore[misc]
    return type("Batch", (base,), {"__slots__": (), "__reduce__": lambda self: (_unpickle, (names, tuple(self)))})


def _unpickle(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return batch_type(names)(*values)
