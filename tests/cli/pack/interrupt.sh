# SIGINT and SIGTERM: a message, the shell's status, and the same command ends the work. The list comes through a pipe
# that stays open, so that the packer is still at work when the signal comes.
make_tree src
mkfifo list
for signal in INT TERM; do
    # The shell starts background commands with SIGINT ignored: give it its default action.
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' "$SHARDPACK" pack --list - src out < list > stdout 2> stderr &
    packer=$!
    exec 3> list
    printf '{"path": "cat/3.txt"}\n' >&3
    # Wait until both signals are caught, which is so once shardpack itself runs.
    caught=0
    while [ "$((caught & 0x4002))" -ne "$((0x4002))" ]; do
        sleep 0.05
        caught=$(sed -n 's/^SigCgt:[[:space:]]*/0x/p' "/proc/$packer/status")
    done
    kill -s "$signal" "$packer"
    sleep 0.2
    exec 3>&-
    status_of wait "$packer"
    cat stdout stderr
    test ! -e out/manifest.json
done
shardpack pack -q src out
shardpack verify -q out
