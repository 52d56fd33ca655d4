# Binary data does not go to a terminal, text does.
command -v script > /dev/null || exit 77
mkdir src
printf 'text\n' > src/a.txt
printf '\177ELF\000' > src/b.bin
printf 'csi \302\233 31m\n' > src/c.txt
shardpack pack -q src out
script -qec "'$SHARDPACK' cat out a.txt; echo status \$?; '$SHARDPACK' cat out b.bin; echo status \$?; '$SHARDPACK' cat out c.txt; echo status \$?; '$SHARDPACK' cat -f out b.bin | wc -c" /dev/null < /dev/null | tr -d '\r'
