#!/bin/sh
# The guided tour behind `make demo`: packs a folder of photographs, verifies the result and reads it back, showing each
# command before it runs. run.sh [SRC]: without SRC it paints an example dataset of its own.
# SHARDPACK and MAKE_PHOTOS name the programs; everything is written under build/demo.
set -eu
out=build/demo
work=$out/dataset
mkdir -p "$out"

say() {
    printf '\n\033[1m%s\033[0m\n' "$*"
}
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

show() { # runs a command and prints it, as one would type it
    printf '$'
    for word; do
        case $word in
        *[!A-Za-z0-9_./=:,+-]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    echo
    "$@"
}

if [ -n "${1:-}" ]; then
    src=$1
    [ -e "$src" ] || { echo "DATA=$src: no such folder or tar archive" >&2 && exit 1; }
    # One target per source, so that the demo can go from one to another and back.
    work=$out/dataset-$(realpath "$src" | cksum | cut -d ' ' -f 1)
    say "1. Your images"
else
    src=$out/photos
    say "1. An example: 320 small synthetic photographs in eight class folders"
    if [ -d "$src" ]; then
        echo "$src is there already (\`make clean\` removes it)"
    else
        show "$MAKE_PHOTOS" "$src.new"
        mv "$src.new" "$src"
    fi
fi
printf '%s files, %s\n' "$(find "$src" -type f | wc -l)" "$(du -sh "$src" | cut -f 1)"

say "2. Pack it into shards (every image is decoded once, to find the bad ones now and not during training)"
# The example is a few megabytes: shards of 2 MiB, so that there are some. Real datasets keep the default of 256 MiB.
options="--shard-size 2MiB"
[ -z "${1:-}" ] || options="--on-bad skip"
# A dataset of an earlier demo with other content is replaced, in one step, only when asked to.
# shellcheck disable=SC2086
if ! show "$SHARDPACK" pack $options "$src" "$work"; then
    [ -e "$work" ] || exit 1
    show "$SHARDPACK" pack --force $options "$src" "$work"
fi

say "3. What is in the dataset folder"
show ls -lh "$work"
show "$SHARDPACK" info "$work"

say "4. List samples, from the index alone"
printf '$ %s ls -l %s | head -n 9\n' "$SHARDPACK" "$work"
"$SHARDPACK" ls -l "$work" | head -n 9

say "5. Verify every byte: sizes, digests, frames, headers, counts, keys"
show "$SHARDPACK" verify "$work"

say "6. Stock tools read the shards"
shard=$(find "$work" -name '*-000000.tar.zst' | sort | head -n 1)
printf '$ tar tf %s | head -n 4\n' "$shard"
tar --zstd -tf "$shard" | head -n 4

say "7. Get the files back, under their own names"
back=$out/back
rm -rf "$back"
show "$SHARDPACK" extract --original-names "$work" "$back"
if [ -z "${1:-}" ]; then
    show diff -r "$src" "$back" && echo "identical"
fi
rm -rf "$back"

say "Done. The dataset is in $work; \`$SHARDPACK --help\` lists the commands."
