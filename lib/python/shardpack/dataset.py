"""Random access to a packed dataset."""
from __future__ import annotations

import json
import operator
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, Union, overload

import numpy as np

from . import _args, _columns, _core, _programs, samples
from ._remote import Paths, Place, StrPath
from .samples import Sample


class Dataset(Sequence[Any]):
    """A packed dataset as a sequence: ``ds[17]``, ``ds["cat/001"]``, ``len(ds)``, ``ds[10:20]``.

    Without ``decode`` and ``transform``, elements are `Sample` objects. With one of them, they are ``(image, label)``,
    as those of torchvision's ImageFolder, so that it can take its place in a map-style `DataLoader`.

    Reading one sample costs a frame (about 1 MiB) unless it is the one read last; for whole epochs use `Loader`. JPEG
    that was packed with ``jpeg="fast"`` is decoded as it is stored; only where its file is asked for is that made anew.

    Args:
        path_or_urls: as for `Loader`
        decode: ``"pil"`` (RGB), ``"array"`` (uint8 ``[height, width, 3]``) or ``"bytes"``; None: ``"pil"`` with a
            transform, else samples come as they are
        transform: called with the image; the result takes its place
        target_transform: called with the label
        image_field: field with the image; None: the first of jpg, png that a sample has
        with_sample: ``transform`` is called with ``(image, sample)``
        verify: check every frame's SHA-256 digest before it is decompressed; always done for URLs
        cache_dir, cache_limit, deadline, plain_credentials: of datasets by URL, as for `Loader`

    Raises FileNotFoundError, shardpack.FormatError and others as `Loader` does; IndexError and KeyError for samples
    that are not there.

    Picklable, safe after fork and with spawn (each process opens the files anew), usable from several threads at once.
    """

    def __init__(
        self,
        path_or_urls: Paths,
        *,
        decode: Optional[str] = None,
        transform: Optional[Callable[..., Any]] = None,
        target_transform: Optional[Callable[[int], Any]] = None,
        image_field: Optional[str] = None,
        with_sample: bool = False,
        verify: bool = False,
        cache_dir: Optional[StrPath] = None,
        cache_limit: Union[int, str, None] = None,
        deadline: Optional[float] = None,
        plain_credentials: bool = False,
    ) -> None:
        self._where = Place(path_or_urls, cache_dir, cache_limit, deadline, plain_credentials)
        self.path = self._where.urls[0]
        for name, function in (("transform", transform), ("target_transform", target_transform)):
            if function is not None and not callable(function):
                raise TypeError(f"{name}={function!r}: must be callable")
        self._verify = _args.flag("verify", verify)
        self._with_sample = _args.flag("with_sample", with_sample)
        self._decode = "pil" if decode is None and (transform or target_transform) else decode
        if self._decode is not None:
            samples.decoder(self._decode)
        self.transform, self.target_transform = transform, target_transform
        self._image_field = image_field
        self._opened: Any = None
        self._owner = 0
        self._lock = threading.Lock()
        stat = self._core().stat()
        self._length: int = stat["samples"]
        self._targets: Optional[np.ndarray[Any, Any]] = None

    def _core(self) -> Any:
        """The open dataset of this process."""
        if self._opened is None or self._owner != os.getpid():
            if self._owner != os.getpid():
                self._lock = threading.Lock()  # a thread of the parent may have held it
            with self._lock:
                if self._opened is None or self._owner != os.getpid():
                    self._opened = self._where.open(self._verify)
                    self._owner = os.getpid()
        return self._opened

    def __len__(self) -> int:
        """Samples in the dataset."""
        return self._length

    def sample(self, index: Union[int, str]) -> Sample:
        """The sample with that number or key as it is, whatever ``decode`` and ``transform``."""
        core = self._core()
        if isinstance(index, str):
            number = core.find(index)
            if number is None:
                raise KeyError(index)
        else:
            number = operator.index(index)
            if not -self._length <= number < self._length:
                raise IndexError(f"sample {number}: the dataset has {self._length}")
            number %= self._length
        key, number, shard, fields = core.read(number)
        have = {name: data if size < 0 else samples.Stored(data, size) for name, data, _, size in fields}
        return Sample(key, number, have, shard, paths={name: path for name, _, path, _ in fields},
                      image_field=self._image_field)

    @overload
    def __getitem__(self, index: Union[int, str]) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> "View": ...
    def __getitem__(self, index: Union[int, str, slice]) -> Any:
        """A sample by number (negative ones count from the end) or key; a slice gives a `View`, which reads nothing."""
        if isinstance(index, slice):
            return View(self, range(*index.indices(self._length)))
        sample = self.sample(index)
        if self._decode is None:
            return sample
        image = samples.decoded(sample, samples.decoder(self._decode))
        image = samples.transformed(sample, image, self.transform, self._with_sample)
        label = sample.label
        return image, label if self.target_transform is None else self.target_transform(label)

    def __iter__(self) -> Iterator[Any]:
        for i in range(self._length):
            yield self[i]

    def __contains__(self, key: object) -> bool:
        """Whether there is a sample with that key."""
        return isinstance(key, str) and self._core().find(key) is not None

    def index(self, key: Any, *_: Any) -> int:
        """Number of the sample with that key; KeyError if there is none."""
        number = self._core().find(key)
        if number is None:
            raise KeyError(key)
        return int(number)

    def keys(self) -> list[str]:
        """Keys of all samples, in order: ``keys()[i]`` is that of sample i. It reads the shards' indexes and no sample,
        so that a choice by class folder costs little::

            cats = [i for i, key in enumerate(dataset.keys()) if key.startswith("cat/")]
            loader = shardpack.Loader(path, indices=cats, batch_size=64)
        """
        core = self._core()
        return [key for shard in range(core.stat()["shards"]) for key in core.keys(shard)]

    @property
    def classes(self) -> list[str]:
        """Names of the classes; the label of a sample is the place of its class in it."""
        names: list[str] = self._core().classes()
        return names

    @property
    def class_to_idx(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.classes)}

    @property
    def targets(self) -> np.ndarray[Any, Any]:
        """Label of each sample, int64 (-100: none), as torchvision's ``targets``: for weights of classes, samplers and
        subsets. The first use reads the whole dataset, by worker processes, without decoding an image."""
        if self._targets is None:
            self._targets = self._read_targets()
        return self._targets

    def _read_targets(self) -> np.ndarray[Any, Any]:
        targets = np.full(self._length, samples.NO_LABEL, np.int64)
        options = {"batch_size": min(max(self._length, 1), 8192), "worker_program": _programs.worker(),
                   "verify_full": int(self._verify)}
        loader = _core.Loader(self._core(), options, [{"kind": _columns._LABEL}, {"kind": _columns._INDEX}])
        try:
            while (taken := loader.next()) is not None:
                labels, index = map(np.asarray, taken[0])
                targets[index] = labels
        finally:
            loader.close()
        return targets

    @property
    def fields(self) -> dict[str, str]:
        """Kind ("image", "label", "text", "json", "bytes") of each field that samples have, by name."""
        return {name: kind for name, kind, _ in self._core().fields()}

    @property
    def fingerprint(self) -> str:
        """64 hex digits that identify the content."""
        return str(self._core().fingerprint())

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, parsed."""
        parsed: dict[str, Any] = json.loads(self._core().manifest())
        return parsed

    def stat(self) -> dict[str, Any]:
        """samples, shards, frames, bytes (of all shards), tar_bytes (decompressed), payload_bytes (of the files
        packed), shuffled."""
        figures: dict[str, Any] = self._core().stat()
        return figures

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None, "_owner": 0, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"shardpack.Dataset({self._where!r}; {self._length:,} samples, {len(self.classes)} classes)"


class View(Sequence[Any]):
    """A slice of a `Dataset`. It reads when it is indexed."""

    def __init__(self, dataset: Dataset, indices: range) -> None:
        self._dataset, self._indices = dataset, indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return View(self._dataset, self._indices[index])
        return self._dataset[self._indices[index]]

    def __repr__(self) -> str:
        return f"<{len(self)} samples of {self._dataset!r}>"
