# Standard output that cannot be written is an error; a reader that has gone ends the command quietly.
make_dataset out
: > message
for command in 'ls out' 'ls -l out' 'ls --json out' 'info out' 'info --json out' 'cat out #0.txt' 'verify out' 'prune out' 'export out sizes' --help --version 'help --man ls'; do
    status=0
    shardpack $command > /dev/full 2>> message || status=$?
    echo "$command: $status"
done
sort -u message
status=0
shardpack ls out >&- 2> message || status=$?
echo "closed: $status, $(cat message)"
python3 - <<'END'
import os, signal, subprocess
for handler in (signal.SIG_DFL, signal.SIG_IGN):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([os.environ["SHARDPACK"], "ls", "out"], stdout=writer, stderr=subprocess.PIPE, restore_signals=False,
                          preexec_fn=lambda: signal.signal(signal.SIGPIPE, handler))
    os.close(writer)
    print("closed pipe:", done.returncode == -signal.SIGPIPE, done.stderr.decode())
END
