#!/bin/sh
# Installs into a temporary root, builds and runs a program against what was installed (shared and static), uninstalls
# and sees that nothing is left: check_install.sh BUILD_DIR [MAKE]. With and without DESTDIR. Prints "N passed, N failed".
set -u
build=$1
make=${2:-make}
root=$(mktemp -d "${TMPDIR:-/tmp}/shardpack-install-XXXXXX")
trap 'rm -rf "$root"' EXIT
passed=0
failed=0

check() { # WHAT COMMAND...
    what=$1
    shift
    if "$@" >"$root/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what: $*"
        sed 's/^/    /' "$root/log"
    fi
}

in_make() {
    $make --no-print-directory BUILD="$build" "$@"
}

empty() { # no file or link left below the folder
    left=$(find "$1" -type f -o -type l)
    [ -z "$left" ] || { echo "left behind: $left"; return 1; }
}

cat >"$root/use.c" <<'C'
#include <shardpack.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    spk_error err;
    spk_dataset *dataset = NULL;
    spk_status status = spk_dataset_open(&dataset, "/nonexistent", NULL, &err);
    spk_dataset_close(dataset);
    printf("%s %s\n", spk_version(), spk_status_name(status));
    return status == SPK_E_NOT_FOUND && !strcmp(spk_version(), SPK_VERSION_STRING) ? 0 : 1;
}
C

for way in destdir plain; do
    if [ "$way" = destdir ]; then
        where="DESTDIR=$root/dest prefix=/usr"
        installed=$root/dest/usr
        export PKG_CONFIG_SYSROOT_DIR="$root/dest"
    else
        where="prefix=$root/plain"
        installed=$root/plain
        unset PKG_CONFIG_SYSROOT_DIR
    fi
    check "install ($way)" in_make $where install
    config="env PKG_CONFIG_PATH=$installed/lib/pkgconfig pkg-config"
    check "pkg-config ($way)" $config --exists --print-errors shardpack
    if [ "$way" = plain ]; then # a sysroot would change the paths of the system's own libraries too
        check "link the static library" sh -c "cc -std=c11 -o $root/static $root/use.c $($config --cflags shardpack) \
            $installed/lib/libshardpack.a $($config --libs $($config --print-requires-private shardpack)) -pthread"
        check "run with the static library" "$root/static"
    fi
    check "link the shared library ($way)" cc -std=c11 -Wall -Werror -o "$root/use" "$root/use.c" \
        $($config --cflags --libs shardpack)
    check "run with the shared library ($way)" env LD_LIBRARY_PATH="$installed/lib" "$root/use"
    if ls tools/*.c >/dev/null 2>&1; then
        check "run the command ($way)" "$installed/bin/shardpack" --version
    fi
    check "uninstall ($way)" in_make $where uninstall
    check "nothing is left ($way)" empty "$installed"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
