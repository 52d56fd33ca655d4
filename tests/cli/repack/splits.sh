# Each split is a dataset of its own, and keeps its prefix.
make_tree src
shardpack pack -q --split train=0.5,val=0.5 src out
status_of shardpack repack --jpeg fast out fast
mkdir fast
shardpack repack -q --jpeg fast out/val fast/val
ls fast/val | sed -E 's/[0-9a-f]{8}/HASH/'
