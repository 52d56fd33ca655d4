# Wrong flags, and targets that cannot be.
make_dataset set
status_of shardpack repack set out
status_of shardpack repack --jpeg slow set out
status_of shardpack repack --jpeg fast set
status_of shardpack repack --jpeg fast --quiet --verbose set out
status_of shardpack repack --jpeg fast set set
status_of shardpack repack --jpeg fast set set/out
status_of shardpack repack --jpeg fast nothing out
status_of shardpack repack --jpeg fast set.src out
status_of shardpack pack --allow-unrestorable set.src out
shardpack repack --jpeg fast -q set out
status_of shardpack repack --jpeg keep set out
shardpack pack -q --frames single set.src single
status_of shardpack repack --jpeg fast single more
test ! -e more
