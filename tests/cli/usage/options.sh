# Every kind of wrong usage ends with status 2 and one line.
for arguments in \
    '--shard-sise=3 a b' '--shard a b' '--nothing-like-it a b' '-x a b' '-qx a b' '--quiet=1 a b' '--jobs' '-j' \
    '--jobs 0 a b' '--jobs 1025 a b' '--jobs two a b' '--jobs -1 a b' '--jobs 18446744073709551616 a b' \
    '--level -200 a b' '--level 23 a b' '--level 1.5 a b' '--seed -1 a b' '--limit 0 a b' '--check=non a b' '--check xx a b' \
    '--frames double a b' '--seed 1 --no-shuffle a b' '--no-shuffle --seed 1 a b' '-q -v a b' \
    '--frames single --frame-size 1M a b' '--check none --on-bad skip a b' '--no-quiet a b' \
    '' 'a' 'a b c' '-- a -b c' '--list= a b' '--prefix a/b a b' '--split a=0x.8,b=0.5 a b' \
    "--prefix $(printf 'p%.0s' $(seq 65)) a b" "--split $(printf 's%.0s' $(seq 65))=1 a b"
do
    status_of shardpack pack $arguments
done
