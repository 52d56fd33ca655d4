"""One pass over a loader."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from .loader import Loader


class Epoch(Iterator[Any]):
    """What ``iter(loader)`` gives. It lets go of the loader when it is at its end."""

    def __init__(self, loader: "Loader") -> None:
        self._loader: Optional[Loader] = loader

    def __next__(self) -> Any:
        loader = self._loader
        batch = None if loader is None else loader._next(self)
        if batch is None:
            self._loader = None
            raise StopIteration
        return batch
