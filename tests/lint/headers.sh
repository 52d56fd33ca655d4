#!/bin/sh
# Every public header compiles alone, twice, as C11 and as C++; every internal header alone, twice, as C11.
# headers.sh [ROOT]: CC and CXX may be given. Prints what failed and "N passed, N failed".
set -u
cd "${1:-.}"
CC=${CC:-cc}
CXX=${CXX:-c++}
flags="-Ilib -Ilib/include -D_FILE_OFFSET_BITS=64 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -fsyntax-only"
passed=0
failed=0

try() { # HEADER COMPILER...
    header=$1
    shift
    if printf '#include <%s>\n#include <%s>\n' "$header" "$header" | "$@" $flags - ; then
        passed=$((passed + 1))
    else
        echo "$header does not compile alone: $*" >&2
        failed=$((failed + 1))
    fi
}

for path in $(find lib/include -name '*.h' | sort); do
    try "${path#lib/include/}" "$CC" -std=c11 -pedantic -x c
    try "${path#lib/include/}" "$CXX" -std=c++11 -pedantic -x c++
done
for path in $(find lib -name '*.h' -not -path 'lib/include/*' -not -path 'lib/python/*' | sort); do
    try "${path#lib/}" "$CC" -std=c11 -x c
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
