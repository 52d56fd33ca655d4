"""Where a dataset is: a folder, or one or several base URLs with options for reading from them."""
from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Optional, Union

from . import _args, _core
from ._errors import ArgumentError

StrPath = Union[str, "os.PathLike[str]"]
Paths = Union[StrPath, Sequence[StrPath]]
_REMOTE = re.compile(r"(?i)(https?|s3)://")


def shown(url: str) -> str:
    """A URL without user, password and query, which may hold secrets; a path as it is."""
    if not _REMOTE.match(url):
        return url
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _is_absolute(url: str) -> bool:
    return os.path.isabs(url) or "://" in url


class Place:
    """What everything that opens a dataset takes: the paths or URLs, and the options of URLs. Picklable."""

    def __init__(
        self,
        path_or_urls: Paths,
        cache_dir: Optional[StrPath],
        cache_limit: Union[int, str, None],
        deadline: Optional[float],
        plain_credentials: bool,
    ) -> None:
        self.urls = _args.paths("path_or_urls", path_or_urls)
        if len(self.urls) > 1 and not all(map(_REMOTE.match, self.urls)):
            raise ArgumentError(
                f"path_or_urls={list(map(shown, self.urls))!r}: several places must be URLs (http, https or s3) that hold "
                f"the same dataset"
            )
        self._folder = None if all(map(_is_absolute, self.urls)) else os.getcwd()  # this process may go to another one
        self.options: dict[str, Any] = {"plain_credentials": _args.flag("plain_credentials", plain_credentials)}
        if cache_dir is not None:
            self.options["cache_dir"] = os.fsencode(cache_dir)
        if cache_limit is not None:
            self.options["cache_limit"] = _args.byte_count("cache_limit", cache_limit)
            _args.integer("cache_limit", self.options["cache_limit"], 1, 2**63)
        if deadline is not None:
            self.options["deadline"] = _args.real("deadline", deadline, 0.001, 1e6)

    @property
    def absolute(self) -> list[str]:
        """The same paths, whatever folder the process is in now."""
        return [os.path.join(self._folder, url) if self._folder else url for url in self.urls]

    @property
    def encoded(self) -> list[bytes]:
        return [os.fsencode(url) for url in self.absolute]

    def open(self, verify: bool = False) -> Any:
        """The open dataset, of the extension."""
        return _core.Dataset(self.encoded, {**self.options, "verify_full": int(verify)})

    def __repr__(self) -> str:
        names = [shown(url) for url in self.urls]
        return repr(names[0] if len(names) == 1 else names)
