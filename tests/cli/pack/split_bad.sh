# Bad files of splits: one list for all of them, and the summary says where it is.
mkdir src
for i in 1 2 3 4 5 6 7 8; do
    printf 'text %d\n' $i > src/$i.txt
done
printf 'this is text\n' > src/a.jpg
shardpack pack --on-bad skip --jobs 1 --split train=0.5,val=0.5 src out | steady
cat out/bad-files.tsv
