command -v fish > /dev/null || exit 77
shardpack help --completion fish > shardpack.fish
fish -n shardpack.fish
touch file
fish -c 'source shardpack.fish; complete -C "shardpack pack --shard"; complete -C "shardpack pack --check "'
