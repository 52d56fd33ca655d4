"""Making and checking datasets."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _args, _core, _errors
from ._remote import Paths, Place, StrPath

Progress = Union[bool, Callable[[Any], Any], None]


@dataclass(frozen=True)
class PackResult:
    """What `pack` did. Sizes in bytes.

    Attributes:
        samples, files, classes, shards, frames: in the dataset (all splits together)
        bytes_in, bytes_out: of the source files stored, and of the shards
        bad: bad files found, also listed in ``bad-files.tsv``
        bad_skipped_samples, junk, excluded, excluded_folders: left out
        other_skipped: links that were not followed, sockets, devices: left out, too
        shards_resumed: taken over from an interrupted run
        up_to_date: the target held exactly this already
        fingerprint: of the dataset (the first split)
        jpeg_fast: JPEG images stored as coefficients, of which the file comes back byte for byte
        jpeg_pixels: the same, but only the pixels come back (``allow_unrestorable``)
        jpeg_other, jpeg_damaged, jpeg_unequal, jpeg_no_gain: with ``jpeg="fast"`` stored as they are nevertheless: of a
            make that has no such form; libjpeg warns; would not come back exactly; not smaller
    """

    samples: int
    files: int
    classes: int
    shards: int
    frames: int
    bytes_in: int
    bytes_out: int
    bad: int
    bad_skipped_samples: int
    junk: int
    excluded: int
    excluded_folders: int
    other_skipped: int
    shards_resumed: int
    up_to_date: bool
    fingerprint: str
    jpeg_fast: int = 0
    jpeg_pixels: int = 0
    jpeg_other: int = 0
    jpeg_damaged: int = 0
    jpeg_unequal: int = 0
    jpeg_no_gain: int = 0


class _Line:
    """progress=True: a line on standard error, about twice a second."""

    def __init__(self) -> None:
        self.last = 0.0
        self.shown = False

    def show(self, text: str) -> None:
        now = time.monotonic()
        if now - self.last >= 0.5 or not self.shown:
            self.last, self.shown = now, True
            print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)

    def pack(self, p: Mapping[str, Any]) -> None:
        done = 100 * p["bytes"] / p["bytes_total"] if p["bytes_total"] else 0
        self.show(f"{p['phase']}: {p['samples']:,} of {p['samples_total']:,} samples, {done:.0f} %"
                  if p["samples_total"] else f"{p['phase']}: {p['files']:,} files")

    def verify(self, p: tuple[int, int]) -> None:
        self.show(f"verify: {100 * p[0] / max(p[1], 1):.0f} %")

    def end(self) -> None:
        if self.shown:
            print(file=sys.stderr)


def _callback(progress: Progress, line: Callable[[Any], Any]) -> Optional[Callable[[Any], Any]]:
    if progress is None or progress is False:
        return None
    if progress is True:
        return line
    if not callable(progress):
        raise TypeError(f"progress={progress!r}: must be True, False or callable")
    return progress


def _texts(name: str, value: Any) -> list[bytes]:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name}={value!r}: must be a list of patterns")
    return [os.fsencode(item) for item in value]


def _splits(split: Optional[Mapping[str, float]]) -> list[tuple[bytes, float]]:
    if split is None:
        return []
    if not isinstance(split, Mapping):
        raise TypeError(f"split={split!r}: must be a dict of names and shares, such as {{'train': 0.9, 'val': 0.1}}")
    return [(name.encode(), _args.real(f"split[{name!r}]", share, 0, 1)) for name, share in split.items()]


def pack(
    src: StrPath,
    dst: StrPath,
    *,
    shard_size: Union[int, str] = "256MiB",
    shard_samples: Optional[int] = None,
    frame_size: Union[int, str] = "1MiB",
    frame_samples: int = 64,
    frames: str = "many",
    level: Optional[int] = None,
    jobs: Optional[int] = None,
    shuffle: bool = True,
    seed: int = 0,
    prefix: Optional[str] = None,
    list: Optional[StrPath] = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    limit: Optional[int] = None,
    split: Optional[Mapping[str, float]] = None,
    check: str = "decode",
    on_bad: str = "fail",
    labels: str = "auto",
    stem: str = "last",
    follow_symlinks: bool = False,
    max_pixels: Optional[int] = None,
    jpeg: str = "keep",
    allow_unrestorable: bool = False,
    force: bool = False,
    dry_run: bool = False,
    progress: Progress = None,
    on_note: Optional[Callable[[str], Any]] = None,
) -> PackResult:
    """Packs a folder (or tar archive) of images into the dataset folder ``dst``; `shardpack pack` of the command.

    Same input and options give the same bytes. After an interruption (also Ctrl-C) the same call goes on where it
    stopped; a target that holds exactly this already is left alone.

    Args:
        src: class folders, a flat folder, or a tar archive
        dst: folder of the dataset, made if missing; its parent must exist
        shard_size, frame_size: bytes of source files per shard and of tar per frame, or text such as ``"256MiB"``
        shard_samples, frame_samples: samples per shard and per frame at most
        frames: ``"many"``, or ``"single"``: one frame per shard, for readers that stop at the first
        level: zstd level, -131072 to 22 (below 0: fast); None: chosen by what is packed
        jobs: threads; None: the CPU quota. Never changes the bytes
        shuffle, seed: shuffle samples over the whole dataset; else order of the keys, or of the list
        prefix: of shard names; None: ``shard``, or the split's name
        list: a CSV, TSV or JSON Lines file that names the samples
        include, exclude: patterns on paths relative to the source
        limit: at most so many samples
        split: ``{"train": 0.9, "val": 0.1}``: a dataset per name, below ``dst``
        check: of images: ``"decode"`` (each once), ``"header"`` or ``"none"``
        on_bad, labels: ``"fail"``, ``"skip"`` or ``"keep"``; ``"auto"``, ``"folders"`` or ``"none"``
        stem: what files of one sample share: the name up to the ``"last"`` or the ``"first"`` dot
        follow_symlinks: also links to files and folders
        max_pixels: refuse larger images; None: 178,956,970
        jpeg: how JPEG files are stored: ``"keep"`` as they are, or ``"fast"``: as coefficients, smaller and faster to
            decode, to the same pixels; the files come back byte for byte. Tools other than shardpack cannot read these
        allow_unrestorable: with ``"fast"``, also those that come back with the same pixels only; the file is lost
        force: discard an interrupted run that does not match; pack anew beside a finished dataset
        dry_run: only look at the source and plan
        progress: True: a line on standard error; a callable gets a dict (phase, files, samples, samples_total, bytes,
            bytes_total, bad) about ten times a second
        on_note: gets lines worth telling that are no errors, such as that links were left out; None: warnings

    Raises FileNotFoundError, FileExistsError, PermissionError, OSError, ValueError (an argument, or with
    ``on_bad="fail"`` a bad image, which is named), shardpack.ChangedError, shardpack.BusyError.
    """
    line = _Line()
    options = _pack_options({**locals(), "line": None})
    try:
        result = PackResult(
            **_core.pack(os.fsencode(_args.path("src", src)), os.fsencode(_args.path("dst", dst)), options,
                         _texts("include", include), _texts("exclude", exclude), _splits(split),
                         _callback(progress, line.pack), on_note or _warn)
        )
    finally:
        line.end()
    _tell_links(result, follow_symlinks, on_note or _warn)
    return result


def repack(
    path_or_urls: Paths,
    dst: StrPath,
    *,
    jpeg: str,
    allow_unrestorable: bool = False,
    jobs: Optional[int] = None,
    force: bool = False,
    dry_run: bool = False,
    progress: Progress = None,
    on_note: Optional[Callable[[str], Any]] = None,
    cache_dir: Optional[StrPath] = None,
    cache_limit: Union[int, str, None] = None,
    deadline: Optional[float] = None,
    plain_credentials: bool = False,
) -> PackResult:
    """Makes of a dataset another one in the folder ``dst``, with its JPEG images stored in the other form.

    Samples, their order, shards, names, labels and settings stay: the shards are those that `pack` of the same files
    with that ``jpeg`` makes, byte for byte.

    Args:
        path_or_urls: folder or manifest of a dataset; or URLs, as for `Loader`
        dst: folder of the new dataset, made if missing; not inside of the old one
        jpeg: ``"keep"`` or ``"fast"``, as for `pack`
        allow_unrestorable: as for `pack`; with ``"keep"``: in place of files that are lost, store others with the same
            pixels, which is an error without it
        jobs, force, dry_run, progress, on_note: as for `pack`
        cache_dir, cache_limit, deadline, plain_credentials: of datasets by URL, as for `Loader`

    Raises what `pack` raises, and shardpack.UnsupportedError: files that are lost.
    """
    line = _Line()
    options = {
        "jpeg": _args.choice("jpeg", jpeg, "keep", "fast"),
        "allow_unrestorable": int(_args.flag("allow_unrestorable", allow_unrestorable)),
        "jobs": 0 if jobs is None else _args.integer("jobs", jobs, 1, 1024),
        "force": int(_args.flag("force", force)),
        "dry_run": int(_args.flag("dry_run", dry_run)),
    }
    place = Place(path_or_urls, cache_dir, cache_limit, deadline, plain_credentials)
    try:
        return PackResult(
            **_core.repack(place.encoded, place.options, os.fsencode(_args.path("dst", dst)), options,
                           _callback(progress, line.pack), on_note or _warn)
        )
    finally:
        line.end()


def _warn(text: str) -> None:
    import warnings

    warnings.warn(text, _errors.ShardpackWarning, stacklevel=3)


def _tell_links(result: PackResult, follow: bool, on_note: Callable[[str], Any]) -> None:
    if result.other_skipped:
        hint = "" if follow else "; follow_symlinks=True packs what the links name"
        on_note(f"{result.other_skipped:,} links or special files were left out{hint}")


def _pack_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The extension's options of pack's arguments."""
    options: dict[str, Any] = {
        "shard_size": _args.byte_count("shard_size", given["shard_size"]),
        "frame_size": _args.byte_count("frame_size", given["frame_size"]),
        "single_frame": _args.choice("frames", given["frames"], "many", "single"),
        "no_shuffle": int(not _args.flag("shuffle", given["shuffle"])),
        "seed": _args.integer("seed", given["seed"], 0, 2**64 - 1),
        "check": _args.choice("check", given["check"], "decode", "header", "none"),
        "on_bad": _args.choice("on_bad", given["on_bad"], "fail", "skip", "keep"),
        "labels": _args.choice("labels", given["labels"], "auto", "folders", "none"),
        "stem": _args.choice("stem", given["stem"], "last", "first"),
        "frame_samples": _args.integer("frame_samples", given["frame_samples"], 1),
        "jpeg": _args.choice("jpeg", given["jpeg"], "keep", "fast"),
    }
    for name in ("follow_symlinks", "allow_unrestorable", "force", "dry_run"):
        options[name] = int(_args.flag(name, given[name]))
    for name in ("shard_samples", "limit", "max_pixels"):
        if given[name] is not None:
            options[name] = _args.integer(name, given[name], 1, 2**64 - 1)
    if given["jobs"] is not None:
        options["jobs"] = _args.integer("jobs", given["jobs"], 1, 1024)
    if given["level"] is not None:
        options.update(has_level=1, level=_args.integer("level", given["level"], -131072, 22))
    for name in ("prefix", "list"):
        if given[name] is not None:
            options[name] = os.fsencode(given[name])
    return options


@dataclass(frozen=True)
class VerifyResult:
    """What `verify` found: problems (a list of `shardpack.Error`, in order of shards), shards, samples and bytes read.
    True if all is well."""

    problems: "list[_errors.Error]"
    shards: int
    samples: int
    bytes: int

    def __bool__(self) -> bool:
        return not self.problems


def verify(
    path_or_urls: Paths,
    *,
    jobs: Optional[int] = None,
    progress: Progress = None,
    cache_dir: Optional[StrPath] = None,
    cache_limit: Union[int, str, None] = None,
    deadline: Optional[float] = None,
    plain_credentials: bool = False,
) -> VerifyResult:
    """Reads every byte of a dataset (or of one shard file) and lists all problems: ``if not shardpack.verify(path):``

    Args:
        path_or_urls: folder or manifest of a dataset, or one shard; or URLs, as for `Loader`
        jobs: threads; None: the CPU quota
        progress: True: a line on standard error; a callable gets ``(bytes done, bytes in all)`` now and then
        cache_dir, cache_limit, deadline, plain_credentials: of datasets by URL, as for `Loader`

    Raises FileNotFoundError and others where the check itself cannot run.
    """
    line = _Line()
    jobs = 0 if jobs is None else _args.integer("jobs", jobs, 1, 1024)
    place = Place(path_or_urls, cache_dir, cache_limit, deadline, plain_credentials)
    try:
        totals, problems = _core.verify(place.encoded, place.options, jobs, _callback(progress, line.verify))
    finally:
        line.end()
    return VerifyResult([_errors.make(*row) for row in problems], totals["shards"], totals["samples"], totals["bytes"])
