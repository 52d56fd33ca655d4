#!/bin/sh
# Installs the packages that are missing: setup.sh GROUP...   (groups: see tests/packages.txt)
# Does nothing, quickly, when there is nothing to do. Only Debian and Ubuntu are known; elsewhere it says so and goes on.
set -eu
list=$(dirname "$0")/packages.txt

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "setup: no dpkg here; the packages needed are named in $list" >&2
    exit 0
fi

installed() { # NAME
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing=
optional=
for group in "$@"; do
    while read -r in names; do
        [ "$in" = "$group" ] || continue
        found=
        for name in $(echo "${names%\?}" | tr '|' ' '); do
            if installed "$name"; then found=1; fi
        done
        [ -z "$found" ] || continue
        first=${names%%|*}
        case $names in
        *\?) optional="$optional ${first%\?}" ;;
        *) missing="$missing $first" ;;
        esac
    done <"$list"
done
# What only some releases have is wanted where apt knows its name.
known() {
    for name in $optional; do
        if apt-cache show "$name" >/dev/null 2>&1; then echo " $name"; fi
    done
}
wanted=$missing$(known)
[ -n "$wanted" ] || exit 0

install="apt-get install -y --no-install-recommends$wanted"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1 && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
    as_root="sudo "
else
    echo "setup: packages are missing. As root, run:" >&2
    echo "  apt-get update && $install" >&2
    exit 1
fi
echo "setup: installing$wanted"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The package lists may be old: try with fresh ones, which also works where they cannot be fetched but are good enough.
${as_root}apt-get update >"$log" 2>&1 || echo "setup: apt-get update failed; going on with the lists at hand" >&2
install="apt-get install -y --no-install-recommends$missing$(known)"
if ! ${as_root}env DEBIAN_FRONTEND=noninteractive $install >"$log" 2>&1; then
    cat "$log" >&2
    echo "setup: failed: $install" >&2
    exit 1
fi
