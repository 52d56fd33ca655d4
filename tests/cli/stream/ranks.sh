# Two ranks share the rows of one with twice the batch; tails; samples that come more than once; a limit.
make_dataset out
keys() { awk '$1 == "row" { print $2, $NF }'; }
shardpack stream -b 4 --keys --tail pad out | keys > one
for rank in 0 1; do
    shardpack stream -b 2 --keys --rank $rank --world-size 2 out | keys
done | sort -n > two
cmp one two
for tail in drop pad keep; do
    echo "$tail:"
    shardpack stream -b 4 --tail $tail --keys out | tail -n 6
done
shardpack stream -b 8 --echo 2 --limit 13 out
# Fewer samples than a batch; more workers than samples.
shardpack stream -b 64 -w 16 out
shardpack stream -b 64 --tail drop out
