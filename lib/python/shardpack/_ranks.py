"""Which rank this process is: as PyTorch's launcher has it."""
from __future__ import annotations

import os
import sys
from typing import NamedTuple, Optional

from . import _args
from ._errors import ArgumentError


ALONE = "the only one"


class Ranks(NamedTuple):
    rank: int
    world_size: int
    source: str  # where it is from, for repr

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.world_size} ({self.source})"


def _from_torch() -> Optional[Ranks]:
    """Only if the program uses torch.distributed: it is not imported for this."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return Ranks(dist.get_rank(), dist.get_world_size(), "torch.distributed")


def _from_environment() -> Optional[Ranks]:
    texts = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if texts == (None, None) or texts[1] is None:
        return None
    if texts[0] is None:
        if texts[1].strip() == "1":
            return None
        raise ArgumentError(f"WORLD_SIZE={texts[1]} is in the environment, RANK is not; give rank= and world_size=")
    try:
        rank, world_size = int(texts[0]), int(texts[1])
    except ValueError:
        rank, world_size = -1, 0
    if not 0 <= rank < world_size:
        raise ArgumentError(
            f"RANK={texts[0]} and WORLD_SIZE={texts[1]} in the environment: must be 0 <= RANK < WORLD_SIZE"
        )
    return Ranks(rank, world_size, "RANK and WORLD_SIZE")


def changed(ranks: Ranks) -> Optional[str]:
    """Told where torch.distributed was initialised after the ranks were found: all of them would take every sample."""
    now = _from_torch() if ranks.source == ALONE else None
    if now is None or now.world_size == 1:
        return None
    return f"torch.distributed now has {now.world_size} ranks, and this is {ranks}, so that each takes all samples"


def local(ranks: Ranks) -> int:
    """How many ranks share this machine's processors, as far as the launcher says so."""
    text = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, min(int(text), ranks.world_size)) if text.isdecimal() else 1


def find(rank: Optional[int], world_size: Optional[int]) -> Ranks:
    """As given; else of torch.distributed, else of the environment, else the only one."""
    if rank is None and world_size is None:
        return _from_torch() or _from_environment() or Ranks(0, 1, ALONE)
    if rank is None or world_size is None:
        raise ArgumentError(f"rank={rank!r}, world_size={world_size!r}: give both or neither")
    world_size = _args.integer("world_size", world_size, 1, 1 << 24)
    return Ranks(_args.integer("rank", rank, 0, world_size - 1), world_size, "as given")
