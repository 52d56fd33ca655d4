make_dataset out
shardpack info out | steady | sed -E '/packed with/,$d; s/^size .*/size/'
shardpack info --classes out | sed -n '/^classes/,/^[a-z]/p' | sed '/packed/d'
