# What the loader needs, its hints and what it did, on standard error.
make_dataset out
shardpack stream -v -b 32 -w 5 out
shardpack stream -v -b 32 -w 0 --no-shuffle out
