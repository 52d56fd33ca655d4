# A pipe or device is written to and stays what it is; a folder is refused.
make_dataset out
mkfifo pipe
cat pipe > copy &
shardpack export --force --output pipe out sizes
wait
test -p pipe
shardpack export out sizes | cmp - copy
mkdir folder
status_of shardpack export --force --output folder out sizes
status_of shardpack export --output /dev/full out sizes
ls -A
