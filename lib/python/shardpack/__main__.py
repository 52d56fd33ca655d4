"""``python -m shardpack``: the command, in place of this process."""
from __future__ import annotations

import os
import sys

from . import _programs


def main() -> int:
    program = os.path.join(_programs.FOLDER, "shardpack")
    try:
        os.execv(program, ["shardpack", *sys.argv[1:]])
    except OSError as problem:
        print(f"shardpack: {program}: {problem.strerror}", file=sys.stderr)
    return 127


if __name__ == "__main__":
    sys.exit(main())
