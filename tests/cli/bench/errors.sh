make_dataset out
for arguments in '' '-w x out' '-w 1,1 out' '-w 1, out' '-w 1025 out' '-w , out' '--epochs 0 out' '--step-ms -1 out' \
    'nowhere' '--image train out' '-b 64 --tail drop out' '--plot nowhere/chart.svg -w 0 out'
do
    status_of shardpack bench $arguments > said
    tail -n 1 said
done
