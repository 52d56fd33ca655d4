# An empty operand is the unset variable of a script: it is named, whichever it is.
status_of shardpack pack '' dst
status_of shardpack pack src ''
status_of shardpack cat dataset ''
status_of shardpack cat dataset a b ''
status_of shardpack extract dataset ''
for command in ls info verify prune; do
    status_of shardpack $command ''
done
status_of shardpack export '' sizes
