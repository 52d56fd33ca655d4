# An option that would change nothing is refused, and so is a field that no sample has.
make_dataset out
for arguments in \
    '--image none --dtype float32' '--image none --size 32' '--hflip 0.5' '--mean 0.5' '--resize 300 --image train' '--max-errors 5' \
    '--no-shuffle --lane-buffer 10' '--no-shuffle --lane-groups 2' '--fields txt,jsn'
do
    status_of shardpack stream $arguments out
    status_of shardpack bench $arguments out
done
status_of shardpack stream --rank 1 out
status_of shardpack stream --cache-limit 1G http://127.0.0.1:1/none
SHARDPACK_CACHE_LIMIT=some status_of shardpack stream --cache-dir cache http://127.0.0.1:1/none
