make_dataset out
for name in ant/4.txt ant/1.png ant/1 '#10.txt' '#0.png' '#0' '#.txt' '#x.txt' '#-1.txt' '#99999999999999999999.txt' ../x '' .txt; do
    status_of shardpack cat out "$name"
done
# A key alone is a sample, of which a file must be named.
status_of shardpack cat out '#0.'
status_of shardpack cat out/*-000001.tar.zst cat/1
