"""Batches for PyTorch's own DataLoader: samples read by the C engine, transformed by Python code in its processes."""
from __future__ import annotations

import copy
import hashlib
import json
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, Union

import numpy as np
import torch
from torch.utils.data import IterableDataset, get_worker_info

from . import _args, _columns, _core, _programs, _ranks, samples
from ._errors import ArgumentError, ChangedError, ShardpackWarning, StateError
from ._loader_args import TAILS, tail as _tail
from ._remote import Paths, Place, StrPath
from .loader import _EPOCH_MAX
from .samples import Sample

_SPECIAL = ("image", "label", "index", "valid", "key", "sample")
_WORKER = "dataloader_worker"  # in states: (number, of how many)


class ShardDataset(IterableDataset[Any]):  # type: ignore[misc,unused-ignore]
    """Whole batches for ``DataLoader(dataset, batch_size=None)``, for transforms written in Python::

        dataset = shardpack.ShardDataset("imagenet/train", batch_size=64, shuffle=True, transform=my_transform)
        for epoch in range(90):
            dataset.set_epoch(epoch)
            for images, labels in DataLoader(dataset, batch_size=None, num_workers=8):
                ...

    Batches and their order are those of ``Loader(..., chunk=batch_size)`` for any number of DataLoader workers, started
    by fork or spawn. Each worker reads its own part of the dataset; if ``num_workers`` does not divide the number of
    lane groups (48 / world_size, rounded; a warning says so), some parts are read by several.

    As with PyTorch's DistributedSampler, `set_epoch` says which epoch comes; without it each pass repeats the same one.
    It also works with ``persistent_workers=True``.

    Args:
        path_or_urls: as for `Loader`
        batch_size: rows per batch and rank
        shuffle, seed, lane_buffer, lane_groups, limit, indices, drop_last, tail, rank, world_size, echo: as for `Loader`
        chunk: None: ``batch_size``, which lets each worker read its own part
        decode: ``"pil"`` (RGB), ``"array"`` (uint8 ``[height, width, 3]``, needs no Pillow) or ``"bytes"``
        transform: called with each image; the results of a batch are stacked if they are tensors, arrays or numbers.
            Without one, images come as a list, since their sizes differ
        with_sample: call it with ``(image, sample)``, where `Sample` has key, index, label, fields and valid
        collate_fn: called with the list of a batch's ``(image, label)``, instead of stacking
        image_field: field with the image; None: the first of jpg, png that a sample has
        fields: names of columns, for batches as named tuples: ``image``, ``label``, ``index``, ``valid``, ``key``,
            ``sample`` (`Sample` objects) or any field (bytes, None where a sample has none). None: ``(image, label)``.
            Without ``image`` and ``transform`` no image is read
        reseed: make the random numbers of Python, NumPy and PyTorch's CPU generator a function of (seed, epoch,
            position) before each transform, so that random transforms give the same for any number of workers and
            after a resume
        verify, cache_dir, cache_limit, deadline, plain_credentials: as for `Loader`

    JPEG that was packed with ``jpeg="fast"`` is decoded as it is stored; its file is made anew only where it is asked for:
    by ``decode="bytes"``, in ``fields``, in `Sample.fields`.

    Images of rows that are padded are repeated samples with label -100 and ``valid`` False. A bad image is an error
    that names the sample; an exception of ``transform`` is raised as it is, with a note that names the sample.

    States: with torchdata's StatefulDataLoader nothing is to be done. With DataLoader, ``state_dict(batches=n)`` is the
    state after the first n batches of the epoch. Workers may be others on resume; with StatefulDataLoader their number
    must be the same, which it checks itself.

    Lazy (the dataset is opened by the process that reads it) and picklable, if the transform is.
    """

    def __init__(
        self,
        path_or_urls: Paths,
        *,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        decode: str = "pil",
        transform: Optional[Callable[..., Any]] = None,
        with_sample: bool = False,
        collate_fn: Optional[Callable[[list[Any]], Any]] = None,
        image_field: Optional[str] = None,
        fields: Optional[Sequence[str]] = None,
        chunk: Optional[int] = None,
        lane_buffer: Optional[int] = None,
        lane_groups: Optional[int] = None,
        limit: Optional[int] = None,
        indices: Any = None,
        drop_last: bool = False,
        tail: Optional[str] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        echo: int = 1,
        reseed: bool = True,
        verify: bool = False,
        cache_dir: Optional[StrPath] = None,
        cache_limit: Union[int, str, None] = None,
        deadline: Optional[float] = None,
        plain_credentials: bool = False,
    ) -> None:
        super().__init__()
        for name, function in (("transform", transform), ("collate_fn", collate_fn)):
            if function is not None and not callable(function):
                raise TypeError(f"{name}={function!r}: must be callable")
        self._where = Place(path_or_urls, cache_dir, cache_limit, deadline, plain_credentials)
        self.path = self._where.urls[0]
        self.batch_size = _args.integer("batch_size", batch_size, 1, 1 << 20)
        self.transform, self.collate_fn = transform, collate_fn
        self._with_sample = _args.flag("with_sample", with_sample)
        self._reseed = _args.flag("reseed", reseed)
        self._decode, self._image_field = decode, image_field
        samples.decoder(decode)
        self._names = _check_fields(fields)
        if collate_fn is not None and fields is not None:
            raise ArgumentError("collate_fn and fields: give one of them")
        self._ranks = _ranks.find(rank, world_size) if rank is not None or world_size is not None else None
        world = 1 if self._ranks is None else self._ranks.world_size
        self._tail_arguments = tail, drop_last
        _tail(tail, drop_last, world)
        self._options: dict[str, Any] = {
            "batch_size": self.batch_size,
            "shuffle": int(_args.flag("shuffle", shuffle)),
            "seed": _args.integer("seed", seed, 0, 2**64 - 1),
            "echo": _args.integer("echo", echo, 1, 65536),
            "verify_full": int(_args.flag("verify", verify)),
            "has_workers": 1,
            "workers": 0,
            "chunk": self.batch_size,
        }
        for name, value, most in (("chunk", chunk, 1 << 24), ("lane_buffer", lane_buffer, 1 << 24),
                                  ("lane_groups", lane_groups, 1 << 24), ("limit", limit, 2**64 - 1)):
            if value is not None:
                self._options[name] = _args.integer(name, value, 1, most)
        self._options.update(_args.chosen(indices))
        # Of all processes: epoch; who used the state; whether a process of a DataLoader has begun a pass of the epoch
        self._shared = torch.zeros(3, dtype=torch.int64).share_memory_()
        self._state: Optional[dict[str, Any]] = None  # where the next pass goes on
        self._state_used = False  # by this copy
        self._running: Optional[_Batches] = None  # the last pass of this process
        self._began: Optional[dict[str, Any]] = None  # what it began with
        self._samples: Optional[int] = None

    # ---- where it stands ----

    @property
    def ranks(self) -> _ranks.Ranks:
        """As given; else that of torch.distributed or of the environment, settled at the first use."""
        if self._ranks is None:
            self._ranks = _ranks.find(None, None)
        return self._ranks

    @property
    def epoch(self) -> int:
        """The epoch that the next pass gives."""
        return int(self._shared[0])

    def set_epoch(self, epoch: int) -> None:
        """The next pass is that of ``epoch``, in all workers. After `load_state_dict` with a state of the same epoch
        the next pass is the rest of it."""
        epoch = _args.integer("epoch", epoch, 0, _EPOCH_MAX)
        if self._state is not None and self._state["epoch"] != epoch:
            self._state = None
        if epoch != self.epoch:
            self._running = None
            self._shared[2] = 0
        self._shared[0] = epoch

    def state_dict(self, batches: Optional[int] = None) -> dict[str, Any]:
        """Where the pass stands; a small dict, fit for JSON.

        Args:
            batches: the state after so many batches of the pass, as counted by the training loop. None: after the last
                batch that this process read, which is what you want with ``num_workers=0`` and in StatefulDataLoader;
                a StateError where processes of a DataLoader read
        """
        if batches is None:
            if self._running is not None:
                return self._running.state_dict()
            if self._shared[2]:
                raise StateError("state_dict(): processes of a DataLoader read this dataset, and only the training loop "
                                 "knows how many batches came: state_dict(batches=n)")
            batches = 0
        core, _ = self._open()
        self._place(core, self._state if self._running is None else self._began)
        core.skip(_args.integer("batches", batches, 0))
        state: dict[str, Any] = json.loads(core.save())
        core.close()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next pass gives the rest of the epoch that the state is of. One pass: the next ones are whole."""
        if not isinstance(state_dict, dict) or "epoch" not in state_dict:
            raise TypeError("state_dict: must be a dict as state_dict() gives it")
        self._state, self._state_used = copy.deepcopy(state_dict), False
        self._running = None
        self._shared[0] = int(state_dict["epoch"])
        self._shared[1] = self._shared[2] = 0

    # ---- reading ----

    def _open(self) -> tuple[Any, list[str]]:
        """A loader of the extension, and the fields that its columns have from the third on."""
        options = {**self._options, "rank": self.ranks.rank, "world_size": self.ranks.world_size,
                   "tail": _tail(*self._tail_arguments, self.ranks.world_size),
                   "worker_program": _programs.worker()}
        dataset = self._where.open()
        names = self._read([name for name, _, _ in dataset.fields()])
        columns: list[dict[str, Any]] = [{"kind": kind} for kind in (_columns._KEY, _columns._INDEX, _columns._VALID)]
        for name in names:
            kinds = (_columns._STORED, _columns._ORIGINAL) if self._is_image(name) else (_columns._BYTES,)
            columns += [{"kind": kind, "field": name.encode(), "optional": 1} for kind in kinds]
        return _core.Loader(dataset, options, columns), names

    @property
    def _decodes(self) -> bool:
        """Whether images are looked into: batches have them, or a transform is to be called."""
        return self._names is None or "image" in self._names or self.transform is not None

    def _is_image(self, name: str) -> bool:
        """Whether it may be decoded: then it is read as the shards hold it."""
        return name == self._image_field if self._image_field else name in samples.IMAGE_FIELDS

    def _read(self, have: Sequence[str]) -> list[str]:
        """Fields to be read: the image's, the label, and what else was asked for."""
        images = [self._image_field] if self._image_field else [n for n in samples.IMAGE_FIELDS if n in have]
        if not self._decodes and "sample" not in (self._names or ()):
            images = []
        elif not images and self._decodes:
            raise ArgumentError("no sample of the dataset has an image (fields jpg, png); name it with image_field=")
        wanted = [name for name in self._names or () if name not in _SPECIAL]
        for name in (*images, *wanted):
            if name not in have:
                raise ArgumentError(f"field {name!r}: no sample of the dataset has it; there are {', '.join(have)}")
        return list(dict.fromkeys([*images, *(["cls"] if "cls" in have else []), *wanted]))

    def _place(self, core: Any, state: Optional[dict[str, Any]]) -> None:
        if state is None:
            core.set_epoch(self.epoch)
        else:
            core.restore(json.dumps({name: value for name, value in state.items() if name != _WORKER}))

    def _use_state(self, iteration: int) -> Optional[dict[str, Any]]:
        """The state if this pass is the first since it was loaded. Copies of this object in other processes agree on
        that by a number that a DataLoader draws for each pass of new workers."""
        if self._state is None or self._state_used:
            return None
        used = int(self._shared[1])
        if used not in (0, iteration):
            return None
        self._shared[1] = iteration
        self._state_used = True
        return self._state

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        if info is not None:
            self._shared[2] = 1
        changed = _ranks.changed(self.ranks)
        if changed and worker == 0:
            warnings.warn(f"{changed}; use the ShardDataset after it, or give rank= and world_size=", ShardpackWarning, 2)
        iteration = 1 if info is None else (info.seed - info.id) & 0x7FFFFFFFFFFFFFFF or 1
        self._began = self._use_state(iteration)
        self._running = _Batches(self, worker, workers, self._began)
        return self._running

    def __len__(self) -> int:
        """Batches per epoch of this rank, exact."""
        if "indices" in self._options:
            self._samples = len(self._options["indices"]) // 8
        if self._samples is None:
            self._samples = self._where.open().stat()["samples"]
        total = self._samples * self._options["echo"]
        total = min(total, self._options.get("limit", total))
        rows = self.batch_size * self.ranks.world_size
        drop = _tail(*self._tail_arguments, self.ranks.world_size) == TAILS.index("drop")
        return int(total // rows + (not drop and total % rows > 0))

    def __getstate__(self) -> dict[str, Any]:
        self.ranks  # noqa: B018  a process that is spawned cannot find out
        return {**self.__dict__, "_running": None, "_began": None}

    def __repr__(self) -> str:
        ranks = self._ranks or "ranks not settled yet"
        return f"shardpack.ShardDataset({self._where!r}, batch_size={self.batch_size}; {ranks}; epoch {self.epoch})"


def _check_fields(fields: Optional[Sequence[str]]) -> Optional[tuple[str, ...]]:
    if fields is None:
        return None
    rows, as_dict = _columns._named(fields)
    if as_dict or not rows:
        raise TypeError(f"fields={fields!r}: must be a list of names")
    return tuple(name for name, _ in rows)


class _Batches(Iterator[Any]):
    """One worker's share of a pass: of the batches that follow, every ``workers``-th from number ``worker`` on."""

    def __init__(self, owner: ShardDataset, worker: int, workers: int, state: Optional[dict[str, Any]]) -> None:
        self.owner, self.worker, self.workers = owner, worker, workers
        self.core, self.names = owner._open()
        self.decode = samples.decoder(owner._decode)
        self.first = True
        self.end: Optional[dict[str, Any]] = None  # the state behind the last batch
        owner._place(self.core, state)
        self._start(state)
        groups = json.loads(self.core.save())["plan"]["lane_groups"]
        if owner._options["shuffle"] and groups % workers and worker == 0:
            warnings.warn(f"{workers} workers do not divide {groups} lane groups: parts of the dataset are read by "
                          f"several of them; num_workers or lane_groups can be changed", ShardpackWarning, stacklevel=3)

    def _start(self, state: Optional[dict[str, Any]]) -> None:
        """A worker's own state goes on with its own next batch, which is `workers` behind its last."""
        of = None if state is None else state.get(_WORKER)
        if of is None:
            self.skip = self.worker
        elif tuple(of) == (self.worker, self.workers):
            self.skip = self.workers - 1
        else:
            raise ChangedError(f"the state is of DataLoader worker {of[0]} of {of[1]}, this is worker {self.worker} of "
                               f"{self.workers}")

    def state_dict(self) -> dict[str, Any]:
        if self.end is not None:
            return self.end
        state: dict[str, Any] = json.loads(self.core.save())
        if self.workers > 1 and not self.first:
            state[_WORKER] = [self.worker, self.workers]
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self.end is not None:
            self.end = None
            self.core, _ = self.owner._open()
        self.owner._place(self.core, state)
        self._start(state)
        self.first = _WORKER not in state

    def stats(self) -> dict[str, Any]:
        figures: dict[str, Any] = self.core.stats()
        return figures

    def __next__(self) -> Any:
        if self.skip and not self.end:
            self.core.skip(self.skip)
            self.skip = 0
        taken = None if self.end else self.core.next()
        if taken is None:
            self._finish()
            raise StopIteration
        self.first = False
        self.skip = self.workers - 1
        return self._batch(taken[0])

    def _finish(self) -> None:
        """The library stands at the next epoch; the state is of this one, with nothing left."""
        if self.end is None:
            end = json.loads(self.core.save())
            self.end = {**end, "epoch": end["epoch"] - 1, "position": end["total"]}
            self.core.close()

    def _rows(self, columns: tuple[Any, ...]) -> list[Sample]:
        keys, index, valid = columns[0], np.asarray(columns[1]), np.asarray(columns[2])
        values: dict[str, list[Any]] = {}
        left = iter(columns[3:])
        for name in self.names:
            values[name] = next(left)
            if self.owner._is_image(name):
                sizes = np.asarray(next(left)).tolist()
                values[name] = [data if data is None or size < 0 else samples.Stored(data, size)
                                for data, size in zip(values[name], sizes)]
        made = []
        for i, key in enumerate(keys):
            fields = {name: column[i] for name, column in values.items() if column[i] is not None}
            made.append(Sample(key.decode(), int(index[i]), fields, "", bool(valid[i]), None, self.owner._image_field))
        return made

    def _batch(self, columns: tuple[Any, ...]) -> Any:
        owner = self.owner
        rows = self._rows(columns)
        images = self._images(rows) if owner._decodes else []
        labels = [row.label for row in rows]
        if owner.collate_fn is not None:
            return owner.collate_fn(list(zip(images, labels)))
        made = {"image": images if owner.transform is None else _stack(images),
                "label": torch.tensor(labels, dtype=torch.int64)}
        if owner._names is None:
            return made["image"], made["label"]
        for name in owner._names:
            if name == "index":
                made[name] = torch.tensor([row.index for row in rows], dtype=torch.int64)
            elif name == "valid":
                made[name] = torch.tensor([row.valid for row in rows], dtype=torch.bool)
            elif name == "key":
                made[name] = [row.key for row in rows]
            elif name == "sample":
                made[name] = rows
            elif name not in _SPECIAL:
                made[name] = [row.fields.get(name) for row in rows]
        return _columns.batch_type(owner._names)(*(made[name] for name in owner._names))

    def _images(self, rows: list[Sample]) -> list[Any]:
        owner = self.owner
        images = [samples.decoded(row, self.decode) for row in rows] if owner.transform is None else []
        if owner.transform is None:
            return images
        own_process = get_worker_info() is not None
        before = _save_random() if owner._reseed and not own_process else None
        try:
            first, epoch = self.core.row, self.core.epoch
            for i, row in enumerate(rows):
                image = samples.decoded(row, self.decode)
                if owner._reseed:
                    _seed_random(owner._options["seed"], epoch, first + i)
                images.append(samples.transformed(row, image, owner.transform, owner._with_sample))
        finally:
            if before is not None:
                _restore_random(before)
        return images


def _stack(values: list[Any]) -> Any:
    """Tensors, arrays and numbers as PyTorch's default; anything else stays a list."""
    if isinstance(values[0], (torch.Tensor, np.ndarray, np.generic, int, float, dict, tuple)):
        return torch.utils.data.default_collate(values)
    return values


def _seed_random(seed: int, epoch: int, position: int) -> None:
    word = int.from_bytes(hashlib.blake2b(b"%d %d %d" % (seed, epoch, position), digest_size=8).digest(), "little")
    random.seed(word)
    np.random.seed(word & 0xFFFFFFFF)
    torch.default_generator.manual_seed(word & 0x7FFFFFFFFFFFFFFF)


def _save_random() -> Any:
    return random.getstate(), np.random.get_state(), torch.default_generator.get_state()


def _restore_random(before: Any) -> None:
    random.setstate(before[0])
    np.random.set_state(before[1])
    torch.default_generator.set_state(before[2])
