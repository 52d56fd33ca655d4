# What changes nothing: workers, the batches prepared ahead, and whether keys are asked for.
make_dataset out
shardpack stream -b 3 -e 2 -w 0 --fields txt --keys out > want
for options in '-w 1' '-w 2' '-w 3 --prefetch 1' '-w 2 --prefetch 9'; do
    shardpack stream -b 3 -e 2 $options --fields txt --keys out | cmp - want
done
grep -v ' row ' want > table
shardpack stream -b 3 -e 2 --fields txt out | cmp - table
# In stored order the digest of an epoch does not depend on the size of the batches.
for size in 1 3 4 10 64; do
    shardpack stream --no-shuffle -b $size --fields txt out | grep -o 'digest .*'
done | uniq
