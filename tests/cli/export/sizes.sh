make_dataset out
shardpack export out sizes | steady
shardpack export --url-prefix https://example.org/x/ out wids | steady
shardpack export out sizes -o file.json
status_of shardpack export out sizes -o file.json
shardpack export out sizes --force --output file.json
shardpack export out sizes | cmp - file.json
status_of shardpack export out sizes -o no/such/file.json
status_of shardpack export nothing sizes
