# Whole files' checksums, made by reading: sha256sum agrees; a damaged shard gets none.
make_dataset out
shardpack export out sha256 | steady
shardpack export out sha256 -o sums
(cd out && sha256sum -c --strict ../sums) | steady
shard=$(ls out/*-000001.tar.zst)
chmod u+w "$shard"
printf x | dd of="$shard" bs=1 seek=30 conv=notrunc 2> /dev/null
status_of shardpack export out sha256
status_of shardpack export out sha256 -o more
test ! -e more
