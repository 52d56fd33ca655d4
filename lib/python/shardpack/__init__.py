"""Image folders as sharded datasets, streamed as training batches.

- `Loader` takes the place of torch.utils.data.DataLoader: batches decoded and augmented by worker processes in C
- `ShardDataset` feeds DataLoader, for transforms written in Python
- `Dataset` is random access: ``ds[17]``, ``ds["cat/001"]``
- `pack` and `verify` make and check datasets; ``python -m shardpack`` is the command
"""
from __future__ import annotations

from typing import Any

from . import _core
from ._columns import Image, Raw
from ._errors import (
    AccessError,
    ArgumentError,
    BusyError,
    ChangedError,
    ChecksumError,
    DatasetNotFoundError,
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
from .loader import Loader
from .transforms import CenterCrop, RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip, Resize

__version__: str = _core.version
