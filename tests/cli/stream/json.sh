make_dataset out
shardpack stream --json -b 6 --keys --fields txt out
