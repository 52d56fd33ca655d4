# Labels that are no class numbers are counted as such; a huge one does not make a huge table.
mkdir src
printf x > src/a.txt
printf x > src/b.txt
printf x > src/c.txt
printf x > src/d.txt
printf 'path,label\na.txt,3\nb.txt,2147483647\nc.txt,4194304\nd.txt,\n' > list.csv
shardpack pack -q --list list.csv src out
shardpack info --classes out | sed -n '/^classes/,/other/p'
shardpack info --classes --json out | python3 -c 'import json, sys
o = json.load(sys.stdin)
print(o["label_samples"], o["unlabelled"], o["other_labels"])'
