"""Single samples, and how their images are decoded."""
from __future__ import annotations

import io
import threading
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Callable, Optional, Union

import numpy as np

from . import _args, _core
from ._errors import ArgumentError, Error, FormatError

IMAGE_FIELDS = ("jpg", "png")  # those that the loader decodes, in the order in which it looks for them
NO_LABEL = -100
_ANY_SIZE = 2**64 - 1
_KEPT_PIXELS = 1 << 24


class Stored:
    """A JPEG in the form that shards hold after ``pack(jpeg="fast")``. It is decoded as it is."""

    __slots__ = ("data", "size")

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size = data, size  # size: bytes of the file

    def file(self) -> bytes:
        """The file, made anew."""
        made = _core.restore(self.data)
        if len(made) != self.size:
            raise FormatError(f"the file made anew has {len(made)} bytes, the index says {self.size}")
        return made


Image = Union[bytes, Stored]


class _Decoders(threading.local):
    """A decoder for each thread, which keeps its buffers. It is taken away while it is used, since what runs in between
    (a signal's handler) may decode, too; one that met a large image or an error is not given back."""

    free: Optional[_core.Decoder] = None

    def take(self) -> _core.Decoder:
        taken, self.free = self.free, None
        return _core.Decoder() if taken is None else taken

    def give(self, decoder: _core.Decoder, pixels: int) -> None:
        if pixels <= _KEPT_PIXELS:
            self.free = decoder


_decoders = _Decoders()


def _decoded(
    data: bytes, channels: int, max_pixels: int, look: Callable[[bytes], Any] = len
) -> tuple[np.ndarray[Any, Any], Any]:
    """Pixels, and what `look` makes of that which the file of a stored form has before them."""
    decoder = _decoders.take()
    width, height, header = decoder.open(data, channels, max_pixels)
    seen = None if header is None else look(header)
    pixels = np.empty((height, width, channels), np.uint8)
    decoder.read(pixels)
    _decoders.give(decoder, width * height)
    return pixels, seen


def decode_array(data: bytes, channels: int = 3) -> np.ndarray[Any, Any]:
    """The pixels of a JPEG or PNG as uint8 ``[height, width, channels]``, unscaled and as stored (no Exif turn).
    ``channels``: 3, or 1 for gray. FormatError (a ValueError) for damage."""
    if channels not in (1, 3):
        raise ArgumentError(f"channels={channels!r}: must be 1 or 3")
    return _decoded(data, channels, 0)[0]


def _array(image: Image) -> np.ndarray[Any, Any]:
    return decode_array(image.data if isinstance(image, Stored) else image)


def _pil(image: Image) -> Any:
    """A PIL image in mode RGB, as torchvision's ImageFolder gives it."""
    import PIL.Image

    try:
        if isinstance(image, Stored):
            return _stored_pil(image.data)
        with PIL.Image.open(io.BytesIO(image)) as opened:
            return opened.convert("RGB")
    except Error:
        raise
    except (OSError, SyntaxError, ValueError) as problem:
        raise FormatError(str(problem)) from problem


def _metadata(header: bytes) -> dict[str, Any]:
    """Pillow's, whose limits hold here, too."""
    import PIL.Image

    with PIL.Image.open(io.BytesIO(header)) as opened:
        return dict(opened.info)


def _stored_pil(data: bytes) -> Any:
    import PIL.Image

    pixels, info = _decoded(data, 3, _ANY_SIZE, _metadata)
    height, width, _ = pixels.shape
    image = PIL.Image.frombuffer("RGB", (width, height), pixels, "raw", "RGB", 0, 1)
    image.info = info
    return image


def decoder(decode: Optional[str]) -> Callable[[Any], Any]:
    """The function for a word, checked here and not with the first sample."""
    if decode == "pil":
        try:
            import PIL.Image  # noqa: F401
        except ImportError:
            raise ImportError('decode="pil" needs Pillow (pip install pillow); decode="array" needs nothing') from None
    return (_array, _pil, bytes)[_args.choice("decode", decode, "array", "pil", "bytes")]


def _named(problem: Error, key: str, shard: str, field: str = "") -> Error:
    """An error that names the sample."""
    where = f'{shard}: sample "{key}"' if shard else f'sample "{key}"'
    problem.args = (f"{where}: {field}{problem}",)
    problem.sample, problem.shard = key, shard or None
    return problem


class _Fields(Mapping[str, bytes]):
    """Fields, some of them `Stored`: such a one becomes a file when it is first looked at."""

    __slots__ = ("_have", "_key", "_shard")

    def __init__(self, have: dict[str, Image], key: str, shard: str) -> None:
        self._have, self._key, self._shard = have, key, shard

    def __getitem__(self, name: str) -> bytes:
        value = self._have[name]
        if isinstance(value, Stored):
            try:
                self._have[name] = value = value.file()
            except Error as problem:
                raise _named(problem, self._key, self._shard, f'field "{name}": ')
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._have)

    def __len__(self) -> int:
        return len(self._have)

    def __contains__(self, name: object) -> bool:
        return name in self._have

    def copy(self) -> dict[str, bytes]:
        return dict(self)

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    def __repr__(self) -> str:
        return repr(dict(self))


class Sample:
    """One sample of a dataset.

    Attributes:
        key: its key, such as ``"cat/001"``
        index: its number in the dataset
        label: int, from the field ``cls``; -100 if it has none
        fields: bytes of each field by name. A JPEG that the shard holds as coefficients is made a file, byte for byte, when
            it is first looked at here; `image` does without that
        shard: file name of its shard
        valid: False for a row that only fills up a batch (`ShardDataset`)
    """

    __slots__ = ("key", "index", "fields", "shard", "valid", "_have", "_paths", "_image_field")

    def __init__(
        self,
        key: str,
        index: int,
        fields: Mapping[str, Image],
        shard: str = "",
        valid: bool = True,
        paths: Optional[Mapping[str, Optional[str]]] = None,
        image_field: Optional[str] = None,
    ) -> None:
        self.key, self.index, self.shard, self.valid = key, index, shard, valid
        self._have = dict(fields)
        self.fields: Mapping[str, bytes] = MappingProxyType(_Fields(self._have, key, shard))
        self._paths = paths or {}
        self._image_field = image_field

    @property
    def label(self) -> int:
        text = self.fields.get("cls")
        if not self.valid or text is None:
            return NO_LABEL
        try:
            return int(text)
        except ValueError:
            raise FormatError(f'sample "{self.key}": cls: {text[:40]!r} is no number') from None

    @property
    def image_bytes(self) -> bytes:
        """The image's file: the field given to the dataset, else the first of jpg, png."""
        return self.fields[self._image_name()]

    def _image_name(self) -> str:
        names = (self._image_field,) if self._image_field else IMAGE_FIELDS
        for name in names:
            if name in self._have:
                return name
        raise FormatError(f'sample "{self.key}": no field of {", ".join(names)}; it has {", ".join(self._have)}')

    def image(self, decode: str = "pil") -> Any:
        """The image as ``"pil"`` (RGB), ``"array"`` (uint8 ``[height, width, 3]``) or ``"bytes"``."""
        return decoded(self, decoder(decode))

    def path(self, field: Optional[str] = None) -> Optional[str]:
        """Path of the file that a field was packed from (the image if None), relative to the packed folder; None for
        what the packer made, and for samples of `ShardDataset`."""
        if field is None:
            field = self._image_name()
        return self._paths.get(field)

    def __reduce__(self) -> Any:
        return Sample, (self.key, self.index, dict(self._have), self.shard, self.valid, dict(self._paths),
                        self._image_field)

    def __repr__(self) -> str:
        lengths = {name: data.size if isinstance(data, Stored) else len(data) for name, data in self._have.items()}
        sizes = ", ".join(f"{name}: {length:,} bytes" for name, length in lengths.items())
        return f"Sample({self.key!r}, index={self.index}, label={self.label}, {sizes})"


def decoded(sample: Sample, decode: Callable[[Any], Any]) -> Any:
    """The sample's image; an error names the sample."""
    if decode is bytes:
        return sample.image_bytes
    image = sample._have[sample._image_name()]
    try:
        return decode(image)
    except Error as problem:
        raise _named(problem, sample.key, sample.shard)


def transformed(sample: Sample, image: Any, transform: Optional[Callable[..., Any]], with_sample: bool) -> Any:
    """What the user's transform makes of it; its exception gets a line that names the sample."""
    if transform is None:
        return image
    try:
        return transform(image, sample) if with_sample else transform(image)
    except Exception as problem:
        problem.add_note(f'raised by the transform of sample "{sample.key}" (index {sample.index})')
        raise
