#!/bin/sh
# cppcheck without a finding: cppcheck.sh [ROOT]
# Suppressed: lending a local to a callee by a member of a struct is how callbacks work here (gcc sees dangling ones).
set -eu
cd "${1:-.}"
folders=
for folder in lib tools examples; do
    if [ -n "$(find "$folder" -name '*.c' 2>/dev/null | head -n 1)" ]; then folders="$folders $folder"; fi
done
[ -n "$folders" ] || exit 0
cppcheck -q -j 2 --std=c11 --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
    --suppress=missingInclude --suppress=duplicateAssignExpression --suppress=autoVariables -I lib -I lib/include $folders 2>&1
