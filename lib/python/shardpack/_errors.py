"""Exceptions. Each is a `shardpack.Error` and the standard exception that one would catch for it."""
from __future__ import annotations

import re
from typing import Any

SHARD = re.compile(r"(?:^|: |\()([^\s:()][^:()\n]*\.tar(?:\.\w+)?)(?=[:,)]|$)", re.M)
SAMPLE = re.compile(r'\bsample "([^"]*)"')
FRAME = re.compile(r"\bframe (\d+)")


class Error(Exception):
    """What went wrong, in one line, outermost object first, as ``str(error)``.

    Attributes:
        code: short stable name of the kind, such as ``"checksum"``
        shard: file name of the shard that it is about, or None
        sample: key of the sample, or None
        frame: number of the frame in the shard, or None
        offset: byte position in the file, or None
        errno: the system's error number, or None
    """

    code: str | None = None
    shard: str | None = None
    sample: str | None = None
    frame: int | None = None
    offset: int | None = None
    errno: int | None = None

    def __init__(self, *args: Any) -> None:
        """Shard, sample and frame are found in the text, so that an exception that was made anew from its text alone, as
        DataLoader does with those of its processes, has them as well."""
        super().__init__(*args)
        text = str(args[0]) if args else ""
        shard, sample, frame = SHARD.search(text), SAMPLE.search(text), FRAME.search(text)
        self.shard = shard[1].rsplit("/", 1)[-1] if shard else None
        self.sample = sample[1] if sample else None
        self.frame = int(frame[1]) if frame else None

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> Any:
        names = ("code", "shard", "sample", "frame", "offset", "errno")
        return _rebuild, (type(self), self.args, {name: getattr(self, name) for name in names})


class DatasetNotFoundError(Error, FileNotFoundError):
    """There is no dataset, shard or file of that name."""


class ArgumentError(Error, ValueError):
    """An argument is out of its range; the text names it, its value and the range."""


class FormatError(Error, ValueError):
    """Malformed or truncated data: no dataset, a damaged shard, a bad image."""


class ChecksumError(FormatError):
    """Data does not match its recorded checksum or digest."""


class UnsupportedError(Error, ValueError):
    """A newer format version, an unknown encoding, an image format that is not decoded, an unknown URL scheme."""


class LimitError(Error, ValueError):
    """A stated bound was exceeded."""


class ChangedError(Error, ValueError):
    """Dataset, options or input differ from those that a state or an interrupted packing was made with."""


class StateError(Error, RuntimeError):
    """A call in the wrong order or in the wrong process."""


class WorkerError(Error, RuntimeError):
    """A worker process died or stalled; the text says what it was doing."""


class StorageError(Error, OSError):
    """The system refused a read, a write or another call."""


class NetworkError(Error, ConnectionError):
    """A remote source failed."""


class AccessError(Error, PermissionError):
    """Access denied."""


class TargetExistsError(Error, FileExistsError):
    """The target exists and must not be overwritten."""


class BusyError(Error, OSError):
    """Another process holds the lock."""


class DeviceError(Error, RuntimeError):
    """The CUDA runtime or a GPU failed; the text has its number and words."""


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed."""


class ShardpackWarning(UserWarning):
    """Hints of the loader: workers that do not divide the lanes, batches held too long, substituted samples."""


_CLASSES: dict[str, type[Error]] = {
    "nomem": OutOfMemoryError,
    "io": StorageError,
    "not-found": DatasetNotFoundError,
    "exists": TargetExistsError,
    "permission": AccessError,
    "invalid": ArgumentError,
    "state": StateError,
    "format": FormatError,
    "unsupported": UnsupportedError,
    "limit": LimitError,
    "checksum": ChecksumError,
    "network": NetworkError,
    "worker": WorkerError,
    "cancelled": StateError,
    "changed": ChangedError,
    "busy": BusyError,
    "device": DeviceError,
}


def _set(error: Error, values: dict[str, Any]) -> Error:
    for name, value in values.items():
        if value is not None:
            setattr(error, name, value)
    return error


def _rebuild(cls: type[Error], args: tuple[Any, ...], values: dict[str, Any]) -> Error:
    return _set(cls(*args), values)


def make(code: str, text: str, offset: int, errno: int) -> Error:
    """The exception for an error of the library; called by the extension."""
    values = {"code": code, "offset": offset if offset >= 0 else None, "errno": errno or None}
    return _set(_CLASSES.get(code, Error)(text), values)
