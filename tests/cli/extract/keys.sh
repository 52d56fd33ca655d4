make_dataset out
shardpack extract out all
(cd all && find . -type f | sort)
shardpack extract --key 'cat/*' --key '*3' out some
(cd some && find . -type f | sort)
cmp all/cat/1.txt out.src/cat/1.txt
shardpack extract --json --key 'cat/*' out other
status_of shardpack extract --key 'dog/*' out none
