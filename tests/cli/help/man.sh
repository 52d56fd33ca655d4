# The manual pages: no complaint of the formatters, every option of the help in them.
for command in '' pack ls info cat extract verify prune export stream bench repack mirror cache; do
    shardpack help --man $command > page.1
    if command -v mandoc > /dev/null; then
        mandoc -T lint -W warning page.1 || true
    fi
    if command -v groff > /dev/null; then
        groff -man -Tutf8 -ww page.1 > /dev/null
    fi
    [ -n "$command" ] || continue
    shardpack $command --help | grep -oE -e '--[a-z-]+' | sort -u > options
    sed 's/\\-/-/g; s/\\f[A-Z]//g' page.1 > plain
    while read -r option; do
        grep -qe "$option" plain || echo "$command: $option is not in the manual"
    done < options
done
shardpack help --man verify | steady
