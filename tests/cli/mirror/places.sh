# A folder may be named in any way, and be told of; but it is not the dataset itself.
size() {
    sed -E 's/, [0-9.]+ [kKMG]?i?B/, SIZE/'
}
make_dataset set
shardpack mirror set "$(printf 'odd\033[31m\\name')" | size
shardpack mirror -q set "file://$PWD/with%20blank"
shardpack ls "file://$PWD/with%20blank" | head -n 1
test -f "with blank/manifest.json" && test ! -e with%20blank && echo there
shardpack mirror -q set "file://localhost$PWD/host" && test -f host/manifest.json && echo there
status_of shardpack mirror set file://relative/path
status_of shardpack mirror set file:///%zz
shardpack mirror --json --dry-run set other | sed -E 's/"seconds":.*/"seconds":TIME}/; s/"bytes_sent":[0-9]+/"bytes_sent":SIZE/'
# The packer goes by the manifest's time.
touch -d 2001-02-03 set/manifest.json
status_of shardpack mirror set set
status_of shardpack mirror --dry-run set ./set/../set
shardpack mirror -q set copy
test -z "$(find set/manifest.json copy/manifest.json -newermt 2001-02-04)" && echo same time
