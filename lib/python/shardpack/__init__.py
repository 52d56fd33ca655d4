"""Image folders as sharded datasets, streamed as training batches.

- `Loader` takes the place of torch.utils.data.DataLoader: batches decoded and augmented by worker processes in C
- `ShardDataset` feeds DataLoader, for transforms written in Python
- `Dataset` is random access: ``ds[17]``, ``ds["cat/001"]``
- `pack`, `repack` and `verify` make and check datasets; ``python -m shardpack`` is the command
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _core
from ._columns import Image, Raw
from ._errors import (
    AccessError,
    ArgumentError,
    BusyError,
    ChangedError,
    ChecksumError,
    DatasetNotFoundError,
    DeviceError,
    Error,
    FormatError,
    LimitError,
    NetworkError,
    OutOfMemoryError,
    ShardpackWarning,
    StateError,
    StorageError,
    TargetExistsError,
    UnsupportedError,
    WorkerError,
)
from .dataset import Dataset
from .loader import Loader
from .packing import PackResult, VerifyResult, pack, repack, verify
from .samples import Sample, decode_array
from .transforms import CenterCrop, RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip, Resize

if TYPE_CHECKING:
    from .shards import ShardDataset

__version__: str = _core.version

__all__ = [
    "AccessError", "ArgumentError", "BusyError", "CenterCrop", "ChangedError", "ChecksumError", "Dataset",
    "DatasetNotFoundError", "DeviceError", "Error", "FormatError", "Image", "LimitError", "Loader", "NetworkError",
    "OutOfMemoryError", "PackResult", "RandomHorizontalFlip", "RandomResizedCrop", "RandomVerticalFlip", "Raw",
    "Resize", "Sample", "ShardDataset", "ShardpackWarning", "StateError", "StorageError", "TargetExistsError",
    "UnsupportedError", "VerifyResult", "WorkerError", "decode_array", "pack", "repack", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """What needs PyTorch, which takes seconds to import."""
    if name != "ShardDataset":
        raise AttributeError(f"module 'shardpack' has no attribute {name!r}")
    try:
        from .shards import ShardDataset
    except ImportError as problem:
        raise ImportError(f"shardpack.ShardDataset needs PyTorch: {problem}") from problem
    return ShardDataset


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
