# The table: stored order, with the fields and the keys, over two epochs; and shuffled.
make_dataset out
shardpack stream --no-shuffle -b 4 --fields txt,cls --keys --epochs 2 out
shardpack stream -b 4 --epoch 3 out
shardpack stream -b 4 --batches 2 out
