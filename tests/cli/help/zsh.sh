command -v zsh > /dev/null || exit 77
shardpack help --completion zsh > _shardpack
zsh -n _shardpack
head -n 1 _shardpack
