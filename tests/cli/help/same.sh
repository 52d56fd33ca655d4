# help COMMAND, --help anywhere, and -h say the same.
shardpack pack --help > a
shardpack help pack > b
shardpack pack some -h > c
shardpack pack --jobs 3 --help --nonsense > d
cmp a b
cmp a c
cmp a d
# Nothing is wider than 80 columns.
for command in pack repack ls info cat extract verify prune export stream bench help; do
    shardpack $command --help | awk 'length > 80 { print FILENAME ": " $0 }'
done
