# Wrong usage ends with status 2; a state, dataset or option that does not fit with 1 and one line.
make_dataset out
make_tree other.src
echo more > other.src/bee/4.txt
shardpack pack -q other.src other
shardpack stream -b 2 --batches 1 --state state.json out > /dev/null
echo '{"format": "something"}' > bad.json
head -c 70000 /dev/zero | tr '\0' ' ' > huge.json
for arguments in \
    '' 'out out' '--batch-size 0 out' '--batch-size 1048577 out' '--save-state-at 3 out' '--resume state.json --epoch 2 out' \
    '--image train --mean 0.5 out' '--image train --dtype float32 --mean 0.5,0.4 out' '--image train --dtype float32 --std x out' '--tail skip out' '--hflip 1.5 out' \
    '--shufle out' '--workers -1 out'
do
    status_of shardpack stream $arguments
done
for arguments in \
    'nowhere' 'out/manifest.jso' '--image train out' '--fields jpg!,txt out' '--image-field txt out' '--rank 2 --world-size 2 out' \
    '--tail keep --world-size 2 out' '--lane-groups 16777216 --chunk 1 out' \
    '--resume nothing.json out' '--resume . out' '--resume bad.json out' '--resume huge.json out' '--resume state.json other' \
    '--resume state.json --seed 5 --echo 2 out' '--resume state.json --no-shuffle out' '--save-state-at 99 --state s.json out' \
    '--batches 1 --state nowhere/s.json out'
do
    status_of shardpack stream -b 4 -w 1 $arguments > said
    tail -n 1 said
done
rm out/*-000001.tar.zst
status_of shardpack stream -b 4 -w 2 out > said
tail -n 1 said
status_of shardpack stream -b 4 -w 0 out > said
tail -n 1 said
# A result that cannot be written.
status_of sh -c '"$SHARDPACK" stream -b 4 other > /dev/full'
