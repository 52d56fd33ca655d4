# An option that would change nothing is refused.
make_dataset out
status_of shardpack export --url-prefix https://example.org/x/ out sizes
status_of shardpack export --url-prefix https://example.org/x/ out sha256
