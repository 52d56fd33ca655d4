mkdir empty file-parent
touch file-parent/file
status_of shardpack pack no-such-folder out
status_of shardpack pack empty out
status_of shardpack pack file-parent/file out
make_tree src
status_of shardpack pack src src/out
status_of shardpack pack src no/such/parent
status_of shardpack pack src file-parent/file
test ! -e out
