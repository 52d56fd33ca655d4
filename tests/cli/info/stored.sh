# How each field is stored, of a dataset and of a shard.
vectors=$HERE/../../format-spec/vectors
for name in good-dataset-stored good-encoding-jpeg.tar.zst good-encoding-pixels.tar.zst; do
    shardpack info "$vectors/$name" | grep -A 3 '^fields'
    shardpack info --json "$vectors/$name" | tr -d ' \n' | grep -o '"fields":.*' | sed 's/,"classes.*//'
done
# One file is stored in another form, one as it is.
shardpack extract -q --original-names "$vectors/good-dataset-stored" src
mkdir both
cp "$(find src -name '*.jpg')" both/a.jpg
echo no image > both/b.jpg
shardpack pack -q --jpeg fast --check none both out
shardpack info out | grep ' as they are'
