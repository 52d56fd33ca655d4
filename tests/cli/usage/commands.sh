status_of shardpack
status_of shardpack pak
status_of shardpack frobnicate
status_of shardpack --versoin
status_of shardpack help pck
status_of shardpack help pack ls
status_of shardpack cat out
status_of shardpack export out wid
status_of shardpack export out
status_of shardpack ls -l --json out
shardpack --version | steady
shardpack --help > one
shardpack help > two
cmp one two
