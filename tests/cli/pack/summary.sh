# The summary of a class tree; then nothing to do; then the same as JSON.
make_tree src
touch src/.DS_Store src/bee/._x.txt
ln -s nowhere src/ant/link
mkfifo src/cat/pipe
shardpack pack src out 2> err | steady
cat err
shardpack pack src out | steady
shardpack pack --json src out | steady
