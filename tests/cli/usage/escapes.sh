# What a message repeats cannot steer the terminal or start a second line.
status_of shardpack "$(printf 'a\033[2Jb\nc\377')"
status_of shardpack ls "$(printf 'no\nsuch\033file')"
status_of shardpack pack --check "$(printf '\r')" a b
