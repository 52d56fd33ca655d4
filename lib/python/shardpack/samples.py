"""Single samples, and how their images are decoded."""
from __future__ import annotations

import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Callable, Optional

import numpy as np

from . import _args, _core
from ._errors import ArgumentError, Error, FormatError

IMAGE_FIELDS = ("jpg", "png")  # those that the loader decodes, in the order in which it looks for them
NO_LABEL = -100


def decode_array(data: bytes, channels: int = 3) -> np.ndarray[Any, Any]:
    """The pixels of a JPEG or PNG as uint8 ``[height, width, channels]``, unscaled and as stored (no Exif turn).
    ``channels``: 3, or 1 for gray. FormatError (a ValueError) for damage."""
    if channels not in (1, 3):
        raise ArgumentError(f"channels={channels!r}: must be 1 or 3")
    width, height = _core.image_size(data)
    pixels = np.empty((height, width, channels), np.uint8)
    _core.decode_image(data, pixels, channels)
    return pixels


def decode_pil(data: bytes) -> Any:
    """A PIL image in mode RGB, as torchvision's ImageFolder gives it."""
    import PIL.Image

    try:
        with PIL.Image.open(io.BytesIO(data)) as image:
            return image.convert("RGB")
    except (OSError, SyntaxError, ValueError) as problem:
        raise FormatError(str(problem)) from problem


def decoder(decode: Optional[str]) -> Callable[[bytes], Any]:
    """The function for a word, checked here and not with the first sample."""
    if decode == "pil":
        try:
            import PIL.Image  # noqa: F401
        except ImportError:
            raise ImportError('decode="pil" needs Pillow (pip install pillow); decode="array" needs nothing') from None
    return (decode_array, decode_pil, bytes)[_args.choice("decode", decode, "array", "pil", "bytes")]


class Sample:
    """One sample of a dataset.

    Attributes:
        key: its key, such as ``"cat/001"``
        index: its number in the dataset
        label: int, from the field ``cls``; -100 if it has none
        fields: bytes of each field by name
        shard: file name of its shard
        valid: False for a row that only fills up a batch (`ShardDataset`)
    """

    __slots__ = ("key", "index", "fields", "shard", "valid", "_paths", "_image_field")

    def __init__(
        self,
        key: str,
        index: int,
        fields: Mapping[str, bytes],
        shard: str = "",
        valid: bool = True,
        paths: Optional[Mapping[str, Optional[str]]] = None,
        image_field: Optional[str] = None,
    ) -> None:
        self.key, self.index, self.shard, self.valid = key, index, shard, valid
        self.fields = MappingProxyType(dict(fields))
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
        """The image as stored: the field given to the dataset, else the first of jpg, png."""
        names = (self._image_field,) if self._image_field else IMAGE_FIELDS
        for name in names:
            if name in self.fields:
                return self.fields[name]
        raise FormatError(f'sample "{self.key}": no field of {", ".join(names)}; it has {", ".join(self.fields)}')

    def image(self, decode: str = "pil") -> Any:
        """The image as ``"pil"`` (RGB), ``"array"`` (uint8 ``[height, width, 3]``) or ``"bytes"``."""
        return decoded(self, decoder(decode))

    def path(self, field: Optional[str] = None) -> Optional[str]:
        """Path of the file that a field was packed from (the image if None), relative to the packed folder; None for
        what the packer made, and for samples of `ShardDataset`."""
        if field is None:
            field = next((name for name in self.fields if self.fields[name] is self.image_bytes), None)
        return self._paths.get(field or "")

    def __reduce__(self) -> Any:
        return Sample, (self.key, self.index, dict(self.fields), self.shard, self.valid, dict(self._paths),
                        self._image_field)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {len(data):,} bytes" for name, data in self.fields.items())
        return f"Sample({self.key!r}, index={self.index}, label={self.label}, {sizes})"


def decoded(sample: Sample, decode: Callable[[bytes], Any]) -> Any:
    """The sample's image; an error names the sample."""
    data = sample.image_bytes
    try:
        return decode(data)
    except Error as problem:
        where = f'{sample.shard}: sample "{sample.key}"' if sample.shard else f'sample "{sample.key}"'
        problem.args = (f"{where}: {problem}",)
        problem.sample, problem.shard = sample.key, sample.shard or None
        raise


def transformed(sample: Sample, image: Any, transform: Optional[Callable[..., Any]], with_sample: bool) -> Any:
    """What the user's transform makes of it; its exception gets a line that names the sample."""
    if transform is None:
        return image
    try:
        return transform(image, sample) if with_sample else transform(image)
    except Exception as problem:
        problem.add_note(f'raised by the transform of sample "{sample.key}" (index {sample.index})')
        raise
