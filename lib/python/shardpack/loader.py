"""The loader: batches from worker processes, in an exact order."""
from __future__ import annotations

import atexit
import contextlib
import json
import os
import warnings
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Optional, Union

from . import _args, _columns, _core, _loader_args, _programs, _ranks, gpu
from ._epoch import Epoch
from ._errors import Error, ShardpackWarning
from ._remote import Paths, Place, StrPath

_EPOCH_MAX = 0x3FFFFFFF
_open_loaders: "weakref.WeakSet[Loader]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Workers end with the process by themselves; this waits for them, so that nothing is left at all."""
    for loader in list(_open_loaders):
        try:
            loader.close()
        except Exception:
            pass  # in use by a thread that does not end


class Loader:
    """Streams a packed dataset as batches: what `torch.utils.data.DataLoader` is to a folder of images.

    Iterating gives ``(images, labels)`` per batch, or with ``fields`` a named tuple or dict of columns::

        loader = shardpack.Loader("imagenet/train", batch_size=256, shuffle=True, num_workers=8,
                                  image=shardpack.RandomResizedCrop(224), hflip=0.5)
        for epoch in range(90):
            for images, labels in loader:
                ...

    Order and augmentation follow from the dataset, ``seed``, the epoch and the global batch (``batch_size`` times
    ``world_size``), never from ``num_workers`` or timing. Each ``iter(loader)`` begins the next epoch (0, 1, 2, ...);
    `set_epoch` picks another. Each sample comes exactly once per epoch (but for
    ``tail``, ``echo`` and ``limit``), and every rank gets equally many batches.

    Columns:
        - ``image``: float32 ``[batch, 3, height, width]`` on the scale 0 to 1 by default, see ``dtype`` and ``layout``
        - ``label``: int64 ``[batch]``; -100, which PyTorch's losses ignore, where a sample has none and where the row
          is padded or substituted
        - ``index``: int64 ``[batch]``, number of the sample in the dataset
        - ``valid``: bool ``[batch]`` (uint8 with ``output="dlpack"``), False for rows that are padded or substituted
        - ``key``: list of str, as in ``Dataset(path)[key]``
        - any field of the dataset (``"json"``, ``"txt"``, ``"jpg"``, ...): list of bytes, see `Raw`

    Memory: images are views of the memory that the workers decode into, without a copy. It goes back to them when the
    last tensor or array that views it is gone. Columns of fewer than 64 KiB (labels, for example) are copies, so that
    keeping them costs nothing. When more batches are kept than there are slots, the next ones come as private copies,
    with a warning (see ``on_hold``); nothing is ever overwritten.

    Args:
        path_or_urls: folder or manifest of a dataset; or its URL (``http://``, ``https://``, ``s3://BUCKET/PREFIX``); or a
            list of URLs that hold the same dataset, mirrors: what one of them does not give comes from another
        batch_size: rows per rank, 1 to 1,048,576
        shuffle: a new order in each epoch; else stored order
        seed: of order and crops, 0 to 2**64 - 1
        num_workers: worker processes; 0: decode in this one; None: as many as the CPU quota has cores, divided by
            ``LOCAL_WORLD_SIZE`` of the environment (torchrun sets it), and no more than share the order's lanes
            evenly. The output is the same
        prefetch: batches prepared ahead (all workers together), 1 to 1024
        chunk: samples in a row of a batch that come from one place of the dataset; None: 16, fewer for datasets packed
            in stored order
        lane_buffer: samples in each shuffle buffer; None: 64
        lane_groups: batches after which the same lanes are used again; None: for about 48 lanes
        limit: only the first ``limit`` samples of each epoch
        indices: only these samples of the dataset, as for `torch.utils.data.Subset`: integers in any order, each once (a
            list, range, array, tensor). They make epochs as a dataset would that has no others; crops are the same as in
            the whole. Frames without any of them are not read. `Dataset.keys` helps to choose. None: all
        drop_last: leave out the last batch if it is short: ``tail="drop"``
        tail: ``"drop"``, ``"pad"`` (filled up with repeated rows, label -100, valid False) or ``"keep"`` (short; one
            rank only). None: keep, with several ranks pad
        rank, world_size: None: those of `torch.distributed` if it is initialised, else ``RANK`` and ``WORLD_SIZE`` of
            the environment, else 0 and 1. ``repr`` shows what was found
        image: what is done to images: `RandomResizedCrop`, ``[Resize(256), CenterCrop(224)]``, ``Resize((h, w))``,
            flips, or a list of them. None: ``RandomResizedCrop(224)`` with shuffling, else Resize(256) and
            CenterCrop(224). Pixels are those of torchvision on PIL images
        hflip, vflip: probability of a left-right and an upside-down mirror. None: 0
        fields: names of columns (a named tuple comes), or a dict ``{name: column}`` (a dict comes), where a column is a
            name, a transform, an `Image` or a `Raw`. None: ``(image, label)``
        dtype: ``"float32"``, ``"float16"`` or ``"uint8"`` (a quarter of the memory and of the upload). None: float32
        layout: ``"NCHW"``, ``"NHWC"`` or ``"channels_last"`` (shape NCHW over NHWC memory, as PyTorch's format). None:
            NCHW
        mean, std: floats become ``(x - mean) / std`` after scaling to 0 to 1; a number or three
        pin_memory: page-lock the memory that workers write into, once, so that a GPU copies straight from it: True,
            ``"auto"`` (where it cannot be: a warning, and pageable memory) or False. None: True with ``device``.
            Tensors of 64 KiB and more are views of it (``is_pinned()`` is True). When the last view of a batch goes,
            its memory waits for what is queued on the device's current stream by then; a copy that was queued on
            another stream needs ``batch.release_after(stream)``
        device: ``"cuda:0"`` for tensors on that device, copied one batch ahead on a stream of their own and in order
            with the current stream, without making the host wait. Keys and raw fields stay lists. ``"cpu"``: as None
        timeout: seconds without any progress of a worker until it counts as stuck; None: 120, 0: no limit
        on_error: a sample that cannot be decoded: ``"fail"``, or ``"substitute"``: zero pixels, label -100, valid False
        max_errors: with substitute: fail at the first one beyond; 0: no limit
        echo: deliver each sample so many times per epoch, each time with another crop
        on_hold: when slots run short: ``"copy"``, or ``"error"``: LimitError
        output: ``"torch"``, ``"numpy"`` or ``"dlpack"`` (objects with ``__dlpack__``); None: torch if it is installed
        verify: check every frame's SHA-256 digest before it is decompressed, beside its checksum after; always done for
            URLs
        cache_dir: of a dataset by URL: keep there what was read, for all processes of this machine and for epochs to
            come. None: ``SHARDPACK_CACHE_DIR`` of the environment, or no cache; "": no cache
        cache_limit: the cache never takes more, bytes or text such as ``"500GB"``; what was not used for longest goes
            first. None: ``SHARDPACK_CACHE_LIMIT``, or 90 % of what is free
        deadline: seconds after which a read from URLs fails, with all retries on all mirrors. None:
            ``SHARDPACK_DEADLINE``, or 60
        plain_credentials: let credentials (S3 keys, user and password) go over ``http://``, unencrypted
        prefetch_factor, persistent_workers, worker_init_fn, collate_fn, sampler, batch_sampler, generator,
            multiprocessing_context, in_order, pin_memory_device: as left over from a `DataLoader`: accepted where they
            mean something here, refused with the reason where they cannot. ``prefetch_factor`` batches per worker are
            ``prefetch_factor * num_workers`` of ``prefetch``

    Raises:
        FileNotFoundError: no dataset there
        ValueError, TypeError: an argument, named with its range; no dataset, a newer format version
        MemoryError or shardpack.LimitError: batches do not fit into memory, with numbers
        shardpack.NetworkError: no URL answers as it should; the text tells what each one did
        RuntimeError: workers cannot be started

    While iterating, `shardpack.Error` with ``shard``, ``sample`` and ``offset``: damaged data (ValueError), storage
    (OSError), a worker that fails repeatedly (RuntimeError).

    Thread-safety: one thread at a time. Tensors and arrays may be dropped in any thread. The GIL is released while
    waiting, and Ctrl-C ends the wait at once (with ``num_workers=0`` after the batch that is being decoded); the next
    call goes on without a loss. After a fork only the parent can use it.
    """

    def __init__(
        self,
        path_or_urls: Paths,
        *,
        batch_size: int,
        shuffle: bool = False,
        seed: int = 0,
        num_workers: Optional[int] = None,
        prefetch: Optional[int] = None,
        chunk: Optional[int] = None,
        lane_buffer: Optional[int] = None,
        lane_groups: Optional[int] = None,
        limit: Optional[int] = None,
        indices: Any = None,
        drop_last: bool = False,
        tail: Optional[str] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
        image: Any = None,
        hflip: Optional[float] = None,
        vflip: Optional[float] = None,
        fields: _columns.Fields = None,
        dtype: Any = None,
        layout: Optional[str] = None,
        mean: Any = None,
        std: Any = None,
        pin_memory: Any = None,
        device: Any = None,
        timeout: Optional[float] = None,
        on_error: str = "fail",
        max_errors: int = 0,
        echo: int = 1,
        on_hold: str = "copy",
        output: Optional[str] = None,
        verify: bool = False,
        cache_dir: Optional[StrPath] = None,
        cache_limit: Union[int, str, None] = None,
        deadline: Optional[float] = None,
        plain_credentials: bool = False,
        prefetch_factor: Optional[int] = None,
        persistent_workers: bool = True,
        **dataloader: Any,
    ) -> None:
        self._core: Any = None
        self._where = Place(path_or_urls, cache_dir, cache_limit, deadline, plain_credentials)
        self.path = self._where.urls[0]
        self.shuffle = _args.flag("shuffle", shuffle)
        self.output = _loader_args.output(output)
        _loader_args.refuse(dataloader)
        self._device = gpu.cuda_index(device)
        pin = gpu.pin_mode(pin_memory, self._device, self.output)
        _args.flag("persistent_workers", persistent_workers)
        self.ranks = _ranks.find(rank, world_size)
        options: dict[str, Any] = {
            "batch_size": _args.integer("batch_size", batch_size, 1, 1 << 20),
            "rank": self.ranks.rank,
            "world_size": self.ranks.world_size,
            "local_world_size": _ranks.local(self.ranks),
            "shuffle": int(self.shuffle),
            "seed": _args.integer("seed", seed, 0, 2**64 - 1),
            "tail": _loader_args.tail(tail, drop_last, self.ranks.world_size),
            "on_error": _args.choice("on_error", on_error, "fail", "substitute"),
            "max_errors": _loader_args.max_errors(max_errors, on_error),
            "echo": _args.integer("echo", echo, 1, 65536),
            "error_on_hold": _args.choice("on_hold", on_hold, "copy", "error"),
            "timeout": _loader_args.timeout(timeout),
            "verify_full": int(_args.flag("verify", verify)),
            "worker_program": _programs.worker(),
            "pin_memory": pin,
        }
        options.update(_loader_args.counts(num_workers, chunk, lane_buffer, lane_groups, limit))
        options.update(_args.chosen(indices))
        images = _columns.Defaults(image, dtype, layout, mean, std, hflip, vflip)
        self._plan = _columns.Plan(fields, images, _loader_args.default_image(self.shuffle), self.output)
        self._open(options, prefetch, prefetch_factor)

    def _open(self, options: dict[str, Any], prefetch: Optional[int], prefetch_factor: Optional[int]) -> None:
        self._options = options
        self._dataset = self._where.open()
        self._workers: int = _core.estimate(self._dataset, options, self._plan.options)["workers"]
        options["prefetch"] = _loader_args.prefetch(prefetch, prefetch_factor, self._workers)
        self._feed: Optional[gpu.Feed] = None
        self._guarded = False
        if options["pin_memory"] == 0:
            self._core = _core.Loader(self._dataset, options, self._plan.options, self._plan.capsules)
        else:
            self._open_pinned(options)
        self._length: int = self._core.length()
        self._wanted: Optional[int] = None  # epoch asked for while another is under way
        self._at_start = True  # the library stands where the next iteration begins
        self._begun = ""  # the state in which the last iteration began
        self._failed = False  # the last batch that was asked for was an error
        self._current: Any = None  # weak reference to the iteration under way
        self._delivered = 0  # batches of it
        self._public: Any = None
        _open_loaders.add(self)
        self._warn()

    def _open_pinned(self, options: dict[str, Any]) -> None:
        cuda = gpu.cuda() if self.output == "torch" else None
        index = self._device if self._device is not None or cuda is None else cuda.current_device()
        with cuda.device(index) if cuda else contextlib.nullcontext():
            capsules = self._plan.capsules and self._device is None
            self._core = _core.Loader(self._dataset, options, self._plan.options, capsules)
        if self._device is not None:
            self._feed = gpu.Feed(self._device, self._plan)
            return
        self._guarded = True
        if not self._core.pinned:
            return  # whoever copies from pageable memory has read it when the call returns
        self._core.set_current_stream(gpu.current_stream_of(index) if cuda else int)

    # ---- iterating ----

    def __iter__(self) -> Iterator[Any]:
        core = self._used()
        self._check_ranks()
        if not self._at_start:
            epoch = self._position()[0] + 1 if self._wanted is None else self._wanted
            self._drop_ahead()
            core.set_epoch(epoch)
        elif self._failed:  # at its first batch: once more
            self._drop_ahead()
            core.restore(self._begun)
        self._begun = core.save()
        self._failed = False
        self._at_start = True
        self._wanted = None
        self._delivered = 0
        epoch_iterator = Epoch(self)
        self._current = weakref.ref(epoch_iterator)
        return epoch_iterator

    def _next(self, iterator: Epoch) -> Any:
        """The next batch, or None. The trainer waits for it, with other things in the CPU's caches than this: each step
        costs microseconds."""
        core = self._core
        if self._current is None or self._current() is not iterator:
            raise RuntimeError(
                "another iteration of this Loader has begun, or it was moved by load_state_dict, while this one was "
                "under way; to iterate twice at once, make two Loaders"
            )
        try:
            taken = core.next() if self._feed is None else self._feed.take(core)
        except Error:
            self._failed = True
            raise
        self._failed = False
        batch = None
        if taken is None:
            self._end_epoch(core)
        else:
            self._at_start = False
            self._delivered += 1
            batch = self._make(core, taken)
        if core.noted:
            self._warn()
        return batch

    def _make(self, core: Any, taken: Any) -> Any:
        if self._feed is not None:
            batch = self._plan.make(self._feed.deliver(taken))
            self._feed.look_ahead(core)
            return batch
        batch = self._plan.assemble(taken[0])
        return self._plan.guarded(batch, taken[1] if core.pinned else None) if self._guarded else batch

    def _end_epoch(self, core: Any) -> None:
        self._current = None
        if self._wanted is not None:
            core.set_epoch(self._wanted)
            self._wanted = None
        self._at_start = True

    def _save(self) -> str:
        core = self._used()
        text: str = self._feed.before[0] if self._feed and self._feed.before else core.save()
        return text

    def _position(self) -> tuple[int, int]:
        core = self._used()
        place: tuple[int, int] = self._feed.before[1] if self._feed and self._feed.before else core.position()
        return place

    def _drop_ahead(self) -> None:
        if self._feed is not None:
            self._feed.drop()

    def __len__(self) -> int:
        """Batches per epoch of this rank, exact."""
        return self._length

    def _warn(self) -> None:
        for text in self._core.notes():
            warnings.warn(text, ShardpackWarning, stacklevel=4)

    def _used(self) -> Any:
        if self._core is None or self._core.closed:
            raise RuntimeError("the Loader is closed")
        return self._core

    def _check_ranks(self) -> None:
        text = _ranks.changed(self.ranks)
        if text:
            warnings.warn(f"{text}; make the Loader after it, or give rank= and world_size=", ShardpackWarning, 3)

    def _under_way(self) -> bool:
        return self._current is not None and self._current() is not None and self._delivered > 0

    # ---- where it stands ----

    @property
    def epoch(self) -> int:
        """The epoch under way; between two iterations, the one that the next begins (or goes on with after
        `load_state_dict`), so that ``for epoch in range(loader.epoch, 90)`` is right after a resume."""
        self._used()
        now = self._position()[0]
        if self._under_way() or self._at_start:
            return now
        return now + 1 if self._wanted is None else self._wanted

    @property
    def remaining(self) -> int:
        """Batches left in the epoch under way; after `load_state_dict`, what the next iteration gives."""
        self._used()
        state = json.loads(self._save())
        if not self._at_start and not self._under_way():
            return self._length
        left, rows = state["total"] - state["position"], self.batch_size * self.world_size
        return int(left // rows + (left % rows > 0 and self._options["tail"] != _loader_args.TAILS.index("drop")))

    def set_epoch(self, epoch: int) -> None:
        """The next iteration is that of ``epoch``. Not needed to go from one epoch to the next. After `load_state_dict`
        with a state of the same epoch it changes nothing: the iteration goes on where the state was saved."""
        core = self._used()
        epoch = _args.integer("epoch", epoch, 0, _EPOCH_MAX)
        if self._under_way():
            self._wanted = epoch
        elif not (self._at_start and self._position()[0] == epoch):
            self._drop_ahead()
            core.set_epoch(epoch)
            self._at_start = True
            self._wanted = None

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands, after the last batch that came: a small dict, fit for JSON and torch.save. The same
        for all ranks that have taken equally many batches."""
        self._used()
        state: dict[str, Any] = json.loads(self._save())
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a state: the next iteration gives the rest of its epoch, the same batches that the loader that
        saved it would have given next. Workers, ranks and batch size may be others; dataset, seed, shuffle, echo,
        limit, indices, chunk and lane_buffer must be the same. An iteration under way ends.

        Raises shardpack.ChangedError (a ValueError) that names what differs, FormatError for what is no state."""
        core = self._used()
        if not isinstance(state_dict, dict):
            raise TypeError(f"state_dict: must be a dict as state_dict() gives it, not {type(state_dict).__name__}")
        try:
            text = json.dumps(state_dict)
        except (TypeError, ValueError) as problem:
            raise TypeError(f"state_dict: is not one of this class: {problem}") from None
        core.restore(text)
        self._drop_ahead()
        self._failed = False
        self._current = None
        self._wanted = None
        self._at_start = True
        self._warn()

    def stats(self) -> dict[str, Any]:
        """Figures since the loader was made: batches, samples, padded, substituted; wait_seconds (spent in waiting for
        batches: near 0 if the trainer is the bottleneck), worker_busy_seconds (sum over workers), bytes_read and
        frames_read, images_decoded, ready (batches ready at each call, mean), restarts (workers replaced), copies
        (batches handed out as private copies), shared_lanes (read by another rank, too), pinned (memory is page-locked)
        and pin_seconds (what that took), uploads and upload_bytes (columns copied to the device), upload_wait_seconds
        (all memory waited for the device: the trainer is the bottleneck).

        Of a dataset by URL also cache_hits, cache_hit_bytes and cache_misses (frames and indexes), and in ``mirrors`` a
        dict for each: url, requests, bytes, latency_p50 and latency_p99 (seconds to the first byte, None before there is
        one), retries, failovers (requests that came to it after another one failed), hedges (second requests while a
        first one stalled), and how many failed, by cause: no_connection, broken, stalled, denied (HTTP 401, 403),
        missing (404, 410), throttled (429, 503), server_errors (other 5xx, 408), bad_replies, changed (length or ETag),
        wrong_bytes (SHA-256); and in ``codes`` by HTTP status, as in {404: 1, 503: 12}."""
        return dict(self._used().stats())

    # ---- what it is ----

    @property
    def batch_size(self) -> int:
        size: int = self._options["batch_size"]
        return size

    @property
    def rank(self) -> int:
        return self.ranks.rank

    @property
    def world_size(self) -> int:
        return self.ranks.world_size

    @property
    def drop_last(self) -> bool:
        return bool(self._options["tail"] == _loader_args.TAILS.index("drop"))

    @property
    def num_workers(self) -> int:
        return self._workers

    @property
    def dataset(self) -> Any:
        """The dataset for random access, a `shardpack.Dataset`: ``len(loader.dataset)``, ``loader.dataset.classes``."""
        if self._public is None:
            from .dataset import Dataset

            self._public = Dataset(self._where.absolute, **self._where.options)
        return self._public

    def __repr__(self) -> str:
        state = "closed" if self._core is None or self._core.closed else f"epoch {self.epoch}"
        return (
            f"shardpack.Loader({self._where!r}, batch_size={self.batch_size}, shuffle={self.shuffle}, "
            f"seed={self._options['seed']}, num_workers={self.num_workers}, output={self.output!r}; {self.ranks}; "
            f"{self._length} batches per epoch; {state})"
        )

    # ---- its end ----

    def close(self) -> None:
        """Ends the workers and frees the memory, but for batches that are still viewed. Any later use is an error."""
        if self._core is not None:
            self._drop_ahead()
            self._core.close()
            _open_loaders.discard(self)

    def __enter__(self) -> "Loader":
        self._used()
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            "a Loader cannot be pickled or copied: it has worker processes and memory of its own. Make it in the "
            "process that uses it; state_dict() is what to save. In a DataLoader, use ShardDataset"
        )
