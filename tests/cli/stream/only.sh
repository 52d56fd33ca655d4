# Samples chosen by their keys: in any order, each once in an epoch, for any number of workers; a state is of one choice.
make_dataset out
shardpack ls out
shardpack ls out | grep -E '^(cat/|ant/2)' | sort -r > keys
shardpack stream -b 2 -w 2 --fields txt --keys --only keys --state state.json --batches 1 out | awk '{ print $1, $NF }'
shardpack stream -b 2 -w 0 -e 2 --fields txt --keys --only keys out > want
shardpack stream -b 2 -w 3 -e 2 --fields txt --keys --only keys out | cmp - want
shardpack stream -b 2 -w 1 --fields txt --keys --only keys --resume state.json out | grep -c '^ *row'
status_of shardpack stream -b 2 -w 0 --fields txt --resume state.json out
printf 'ant/1\nant/4\n' > unknown
printf 'ant/1\nbee/1\nant/1\n' > twice
printf 'ant/1\r\n' > carriage
printf 'ant/\0001\n' > zero
: > empty
for file in unknown twice carriage zero empty nowhere .; do
    status_of shardpack stream --only $file out
done
shardpack bench --workers 0 --only keys --batch-size 2 --json out | grep '"samples"'
