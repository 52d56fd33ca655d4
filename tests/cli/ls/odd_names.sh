# Names with control bytes, backslashes and stray bytes stay on their line.
mkdir -p src/class
for name in "$(printf 'esc\033[31m.txt')" "$(printf 'new\nline.txt')" 'back\slash.txt' "$(printf 'stray\377.txt')" "$(printf 'uml\303\244ut.txt')"; do
    printf x > "src/class/$name"
done
shardpack pack -q --no-shuffle src out
shardpack ls -l out
shardpack ls --json out | grep -c path_hex
shardpack cat out "$(printf 'class/new\nline.txt')" "$(printf 'class/stray\377.txt')"
echo
shardpack extract -q --original-names out back
diff -r src back
