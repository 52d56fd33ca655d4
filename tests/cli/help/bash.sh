# The completions parse, and complete what they should.
shardpack help --completion bash > completion
bash -n completion
cat > try <<'TRY'
. ./completion
complete_words() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _shardpack 2>/dev/null
    echo "$*: ${COMPREPLY[*]}"
}
mkdir folder
touch file
complete_words shardpack p
complete_words shardpack --v
complete_words shardpack pack --shard
complete_words shardpack pack --no
complete_words shardpack pack --check =
complete_words shardpack pack --check = h
complete_words shardpack pack --on-bad s
complete_words shardpack pack --list f
complete_words shardpack pack --jobs ''
complete_words shardpack pack fo
complete_words shardpack export file s
complete_words shardpack cache ''
complete_words shardpack help ve
TRY
bash try
