#!/bin/sh
# The plain kernels on a 64-bit Arm, emulated: cross-builds the library, runs the unit tests of some layers and the
# comparison with libjpeg-turbo under qemu-user, and packs: shards and batches must be those that this machine makes.
# run.sh [MAKE [FOLDER]]: from the top of the tree, on Debian with gcc-aarch64-linux-gnu and qemu-user (`tests/setup.sh
# aarch64`); where they are missing it says so and does nothing. FOLDER: photographs instead of painted ones. Libraries
# for arm64 are unpacked in build/aarch64-sysroot; nothing is installed. Prints "N passed, N failed".
set -eu
make=${1:-make}
photos=${2:-}
build=build/aarch64
root=$PWD/build/aarch64-sysroot
native=build/release
libraries="libc6-dev libgcc-12-dev libjpeg-dev libzstd-dev libpng-dev libxxhash-dev libssl-dev libcurl4-openssl-dev
    libarchive-dev libjansson-dev check"
suites="base image shard"

skip() {
    echo "aarch64: skipped: $1" >&2
    echo "0 passed, 0 failed"
    exit 0
}

for tool in aarch64-linux-gnu-gcc qemu-aarch64 apt-get dpkg-deb pkg-config; do
    command -v $tool >/dev/null || skip "$tool is missing; tests/setup.sh aarch64 installs it"
done

# apt with a state of its own, as on an arm64 machine where nothing is installed.
fetch() {
    mkdir -p "$root.apt/lists/partial" "$root.apt/archives/partial" "$root.new"
    : >"$root.apt/status"
    set -- -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$root.apt" -o Dir::Cache="$root.apt" \
        -o Dir::State::status="$root.apt/status" -o Debug::NoLocking=1 -o APT::Sandbox::User="$(id -un)"
    apt-get "$@" update && apt-get "$@" install -y --no-install-recommends --download-only $libraries || return 1
    for package in "$root.apt"/archives/*.deb; do
        dpkg-deb -x "$package" "$root.new" || return 1
    done
    mv "$root.new" "$root"
    rm -rf "$root.apt"
}

if [ ! -d "$root" ]; then
    rm -rf "$root.apt" "$root.new"
    fetch >"build/aarch64-apt.log" 2>&1 || skip "no packages for arm64, see build/aarch64-apt.log"
fi

PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_PATH= \
    PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig
programs="shardpack tests/jpeg/identity"
for suite in $suites; do
    for source in tests/unit/test_"$suite"*.c; do
        programs="$programs ${source%.c}"
    done
done
(
    export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR PKG_CONFIG_PATH
    $make --no-print-directory -j"$(nproc)" BUILD=$build AR=aarch64-linux-gnu-ar \
        CC="aarch64-linux-gnu-gcc --sysroot=$root -Wl,-rpath-link,$root/usr/lib/aarch64-linux-gnu" \
        $(for program in $programs; do echo "$build/$program"; done)
)
$make --no-print-directory -j"$(nproc)" BUILD=$native all $native/examples/make_photos

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
arm() {
    qemu-aarch64 -L "$root" "$@"
}
check() { # NAME COMMAND...
    name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "$name: ok"
    else
        failed=$((failed + 1))
        echo "$name: FAILED"
        tail -n 40 "$work/log"
    fi
}

export CK_TIMEOUT_MULTIPLIER=30
for program in $programs; do
    case $program in tests/unit/*) check "$(basename "$program")" arm "$build/$program" ;; esac
done
if [ -z "$photos" ]; then
    photos=$work/photos
    $native/examples/make_photos "$photos" 6 >/dev/null
fi
check "every kind of JPEG" arm $build/tests/jpeg/identity -e -n 2 -s 97 "$photos"

# Both machines make the same bytes. No workers: this machine cannot start what is built for the other.
stream() { # COMMAND...
    "$@" -b 16 -w 0 -e 2 --hflip 0.5 --keys --fields jpg,cls | tail -n +2
}
for form in keep fast; do
    options="pack --quiet --jpeg $form --shard-size 700K --frame-samples 8"
    $native/shardpack $options "$photos" "$work/$form"
    check "pack --jpeg $form" arm $build/shardpack $options "$photos" "$work/arm-$form"
    check "the same bytes" diff -r "$work/$form" "$work/arm-$form"
    check "verify" arm $build/shardpack verify "$work/arm-$form"
    check "extract" arm $build/shardpack extract --original-names "$work/arm-$form" "$work/out-$form"
    check "the same files" diff -r "$photos" "$work/out-$form"
    stream $native/shardpack stream "$work/keep" >"$work/want"
    check "stream" test -s "$work/want"
    stream arm $build/shardpack stream "$work/$form" >"$work/have"
    check "the same batches" diff "$work/want" "$work/have"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
