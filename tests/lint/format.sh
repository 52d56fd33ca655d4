#!/bin/sh
# Every C file as .clang-format says: format.sh [ROOT]
set -eu
cd "${1:-.}"
find lib tools tests examples format-spec -name '*.[ch]' -type f 2>/dev/null | sort |
    xargs clang-format --dry-run -Werror 2>&1
