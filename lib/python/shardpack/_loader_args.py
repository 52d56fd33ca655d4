"""Arguments of `Loader` that take more than one check."""
from __future__ import annotations

import importlib.util
import sys
from typing import Any, Optional

from . import _args
from ._errors import ArgumentError
from .transforms import CenterCrop, RandomResizedCrop, Resize

TAILS = ("default", "drop", "pad", "keep")  # as spk_tail


def default_image(shuffle: bool) -> Any:
    return RandomResizedCrop(224) if shuffle else [Resize(256), CenterCrop(224)]


def output(output: Optional[str]) -> str:
    if output is None:
        has_torch = "torch" in sys.modules or importlib.util.find_spec("torch") is not None
        return "torch" if has_torch else "numpy"
    _args.choice("output", output, "torch", "numpy", "dlpack")
    if output == "torch" and importlib.util.find_spec("torch") is None:
        raise ArgumentError('output="torch": PyTorch is not installed; "numpy" needs nothing else')
    return output


def counts(
    num_workers: Optional[int],
    chunk: Optional[int],
    lane_buffer: Optional[int],
    lane_groups: Optional[int],
    limit: Optional[int],
) -> dict[str, int]:
    """Those of them that are given, under the library's names."""
    given: dict[str, int] = {}
    if num_workers is not None:
        given.update(has_workers=1, workers=_args.integer("num_workers", num_workers, 0, 1024))
    for name, value, most in (("chunk", chunk, 1 << 24), ("lane_buffer", lane_buffer, 1 << 24),
                              ("lane_groups", lane_groups, 1 << 24), ("limit", limit, 2**64 - 1)):
        if value is not None:
            given[name] = _args.integer(name, value, 1, most)
    return given


def max_errors(max_errors: int, on_error: str) -> int:
    if _args.integer("max_errors", max_errors, 0, 2**64 - 1) and on_error == "fail":
        raise ArgumentError(f'max_errors={max_errors}: is for on_error="substitute"')
    return max_errors


def prefetch(prefetch: Optional[int], factor: Optional[int], workers: int) -> int:
    if factor is None:
        return _args.integer("prefetch", 4 if prefetch is None else prefetch, 1, 1024)
    if prefetch is not None:
        raise ArgumentError(f"prefetch={prefetch!r}, prefetch_factor={factor!r}: give one of them")
    return min(1024, _args.integer("prefetch_factor", factor, 1, 1024) * max(1, workers))


def tail(tail: Optional[str], drop_last: bool, world_size: int) -> int:
    if tail is None:
        return TAILS.index("drop") if _args.flag("drop_last", drop_last) else 0
    _args.choice("tail", tail, *TAILS[1:])
    if _args.flag("drop_last", drop_last) and tail != "drop":
        raise ArgumentError(f"drop_last=True, tail={tail!r}: drop_last means tail='drop'")
    if tail == "keep" and world_size > 1:
        raise ArgumentError(
            f"tail='keep' with {world_size} ranks: they would get batches of different sizes; must be 'drop' or 'pad'"
        )
    return TAILS.index(tail)


def timeout(timeout: Optional[float]) -> float:
    """0 means none, as for DataLoader; the library's 0 is its default."""
    if timeout is None:
        return 0.0
    return _args.real("timeout", timeout, 0, 1e9) or -1.0


_REASONS = {
    "worker_init_fn": "workers are no Python processes; Python code per sample runs in ShardDataset",
    "collate_fn": "workers write batches in place; Python code per batch runs in ShardDataset, or in the loop",
    "sampler": "the order follows from shuffle, seed and epoch; indices= chooses samples, Dataset takes samplers in a "
    "DataLoader",
    "batch_sampler": "the order follows from shuffle, seed and epoch; Dataset takes samplers in a DataLoader",
    "generator": "order and crops follow from seed alone",
    "multiprocessing_context": "workers are started without fork and never import the script",
    "pin_memory_device": "device= names the device that batches go to",
}


def refuse(dataloader: dict[str, Any]) -> None:
    for name, value in dataloader.items():
        if name == "in_order":
            if not _args.flag(name, value):
                raise ArgumentError("in_order=False: batches always come in order")
        elif name not in _REASONS:
            raise TypeError(f"Loader() got an unexpected keyword argument {name!r}")
        elif value is not None and value != "":
            raise ArgumentError(f"{name}={value!r}: must be None: {_REASONS[name]}")
