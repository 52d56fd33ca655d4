make_dataset out
shardpack extract --original-names out back
diff -r out.src back
