# A folder of splits: each of them, and what an abandoned run left above them.
make_tree src
shardpack pack -q --split train=0.5,val=0.5 src out
shardpack pack -q --force --seed 1 --split train=0.5,val=0.5 src out
mkdir out/.shardpack out/mine
printf 'x' > out/.shardpack/journal
printf 'x' > out/.shardpack/000000.done
make_dataset out/own
cp out/own/*-000000.tar.zst out/own/old-12345678-000000.tar.zst
shardpack prune --dry-run out | steady | sed -E 's/  [0-9.]+ .*//; s/, [0-9.]+ (B|KiB) /, SIZE /'
shardpack prune out | steady | tail -n 1 | sed -E 's/, [0-9.]+ (B|KiB) /, SIZE /'
shardpack prune out
ls -A out
ls out/own | wc -l
shardpack verify -q out/train
shardpack verify -q out/val
# Datasets side by side that are no splits are named instead.
mkdir side
mv out/own side/own
status_of shardpack prune side
