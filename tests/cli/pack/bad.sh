# What is no image: refused, left out, or kept, with the reasons.
mkdir src
printf 'this is text\n' > src/a.jpg
: > src/b.png
printf 'fine\n' > src/c.txt
status_of shardpack pack -q --jobs 1 --no-shuffle src out
shardpack pack --on-bad skip src skip | steady
cat skip/bad-files.tsv
shardpack pack --on-bad keep src keep | steady
shardpack pack -q --check none src none
shardpack ls skip | wc -l
shardpack ls keep | wc -l
shardpack ls none | wc -l
