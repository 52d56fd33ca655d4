"""The programs inside the package."""
from __future__ import annotations

import os

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin")


def worker() -> bytes:
    """The worker program: SHARDPACK_WORKER of the environment, or the package's own."""
    return os.fsencode(os.environ.get("SHARDPACK_WORKER") or os.path.join(FOLDER, "shardpack-worker"))
