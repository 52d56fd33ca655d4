# A flipped byte in one shard, and another shard gone: both are named, status 1.
make_dataset out
python3 - <<'END'
import glob, os
shards = sorted(glob.glob("out/*.tar.zst"))
with open(shards[0], "r+b") as f:
    f.seek(20)
    byte = f.read(1)
    f.seek(20)
    f.write(bytes([byte[0] ^ 1]))
os.unlink(shards[1])
END
status=0
shardpack verify out > problems || status=$?
echo "status $status"
for shard in 000000 000001; do
    grep -q -- "-$shard.tar.zst: " problems && echo "$shard is named"
done
tail -n 1 problems | grep -cE '^[0-9]+ problems found'
shardpack verify --json out | tail -n 1 | grep -o '"ok":false'
