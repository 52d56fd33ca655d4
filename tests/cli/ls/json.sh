make_dataset out
shardpack ls --json out | steady
