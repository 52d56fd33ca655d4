make_dataset out
shardpack ls -l out
