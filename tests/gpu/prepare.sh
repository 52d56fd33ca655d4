#!/bin/sh
# Makes what run.sh takes along to a machine without a package registry: build/gpu with the wheel, its libraries inside,
# and a small dataset. prepare.sh [PER_CLASS]
set -eu
cd "$(dirname "$0")/../.."
per_class=${1:-125}
make --no-print-directory wheel
make --no-print-directory all build/release/examples/make_photos build/release/tests/libcudart_standin.so
rm -rf build/gpu
mkdir -p build/gpu
cp build/dist/shardpack-*.whl build/release/tests/libcudart_standin.so build/gpu/
photos=$(mktemp -d "${TMPDIR:-/tmp}/shardpack-gpu-XXXXXX")
trap 'rm -rf "$photos"' EXIT
build/release/examples/make_photos "$photos/photos" "$per_class"
build/release/shardpack pack "$photos/photos" build/gpu/photos.shards
du -sh build/gpu
