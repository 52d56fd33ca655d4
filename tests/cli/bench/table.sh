# The table, with what depends on the machine taken out; passes in the order of the list.
make_dataset out
numbers() { sed -E -e 's/[0-9][0-9.,]*/N/g' -e 's/N (ms|s|B|KiB|MiB)\>/N UNIT/g' -e 's/ +/ /g' -e 's/^knee: .*/knee: .../' -e 's/(trainer|data)$/WHO/' -e 's/the (trainer|data) is the bottleneck$/WHO/' -e 's/so N workers?.*/.../'; }
shardpack bench -b 2 -w 2,0,1 -e 3 out | numbers
shardpack bench -b 2 -w 1 -e 5 out | numbers
shardpack bench -b 2 -w 1,3 -e 5 --step-ms 2 out | numbers | grep -v 'here they'
