# Sizes are powers of 1024, whole, in range. 1023 is below the least frame size, so it shows what was understood.
for size in 1 1k 1K 1kB 1KiB 64M 1.5M 0.5k 0.0009765625M 1GiB 1T 1023T 1P 2PiB 1.3k 0.3 .5k 1. 1.k k '' -1 +1 ' 1' 1Ki 1KIB 1Mb 1e3 0x10 \
    18446744073709551615 18446744073709551616 99999999T 1MM 0
do
    printf '"%s": ' "$size"
    shardpack pack --shard-size "$size" missing-source out 2>&1 || true
done
