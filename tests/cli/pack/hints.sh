# What is packed as asked, but seldom meant so, is told.
for part in train val; do
    mkdir -p parts/$part/cat
    echo "$part" > parts/$part/cat/1.txt
done
shardpack pack -n parts out
shardpack pack -n --labels folders parts out
shardpack pack -n --labels none parts out
shardpack pack -nq parts out
mkdir -p mixed/cat mixed/dog
: > mixed/cat/1.jpg
echo a cat > mixed/cat/1.txt
: > mixed/dog/1.png
echo notes > mixed/dog/notes.txt
echo more > mixed/more.txt
shardpack pack -n mixed out
shardpack pack -n --exclude '*.txt' mixed out
mkdir shards
tar -C mixed -cf shards/000.tar .
cp shards/000.tar shards/001.tar
shardpack pack -n shards out
# In an archive they are looked into; all of it lies in one folder.
tar -cf shards.tar shards
shardpack pack -n shards.tar out
# A bad image: what can be done about it.
status_of shardpack pack --exclude '*.txt' mixed out
