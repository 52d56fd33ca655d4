# What is said: of a dry run, of the run, of a second one, of one for programs; labels and names stay.
make_dataset set
shardpack repack --jpeg fast --dry-run set out | steady
test ! -e out
shardpack repack --jpeg fast set out | steady
shardpack repack --jpeg fast set out | steady
shardpack repack --jpeg fast --json set out | steady
shardpack repack --jpeg keep --quiet set again
cmp set/shards-*.tsv again/shards-*.tsv
shardpack ls -l set > a
shardpack ls -l out > b
cmp a b
shardpack info out | grep -E '^ +(jpeg_mode|max_pixels|prefix) ='
