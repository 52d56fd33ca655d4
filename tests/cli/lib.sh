# Helpers for the cases. Sourced before each, in its scratch folder.

shardpack() {
    "$SHARDPACK" "$@"
}

# A tree of three classes with tiny text files, and one with an odd name.
make_tree() { # FOLDER
    mkdir -p "$1/ant" "$1/bee" "$1/cat"
    for i in 1 2 3; do
        for class in ant bee cat; do
            printf '%s number %d\n' "$class" "$i" > "$1/$class/$i.txt"
        done
    done
    printf 'odd\n' > "$1/bee/an odd name.v2.txt"
}

# A dataset of that tree, in stored order, two samples a frame, five a shard.
make_dataset() { # FOLDER
    make_tree "$1.src"
    shardpack pack -q --no-shuffle --frame-samples 2 --shard-samples 5 "$1.src" "$1"
}

# Runs a command that is expected to fail; says how it ended.
status_of() {
    status=0
    "$@" || status=$?
    echo "exit status $status"
}

# Replaces what differs between versions and runs: hashes, compressed sizes, times.
steady() {
    sed -E -e 's/[0-9a-f]{64}/FINGERPRINT/g' -e 's/-[0-9a-f]{8}-([0-9]{6})/-HASH-\1/g' -e 's/shards-[0-9a-f]{8}/shards-HASH/' \
        -e 's/"[0-9]{4}-[0-9]{2}-[0-9]{2}"/"DATE"/' -e 's/shardpack [0-9]+[.][0-9]+[.][0-9]+/shardpack VERSION/' -e 's/, [0-9.]+ [A-Za-z]+ out [(][^)]*[)]/, SIZE out/' \
        -e 's/"(filesize|bytes_out)": [0-9]+/"\1": SIZE/' -e 's/in [0-9.]+ m?s \([^)]*\)/in TIME/' -e 's/"seconds": ?[0-9.e+-]+/"seconds":TIME/'
}
