"""A system that refuses: full disk, read-only target, closed pipes, interrupted runs."""
import os
import signal
import subprocess

from harness import NOBODY, Skip, equal, require, same_trees, shards


def mount_small(case, size):
    """A file system of that size at case.dir/small, or Skip."""
    point = case.dir / "small"
    point.mkdir()
    result = case.run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", point)
    if result.code:
        raise Skip("cannot mount a small file system: " + result.text.strip())
    return point


def test_full_disk(case):
    source = case.photos()
    point = mount_small(case, "700k")
    try:
        options = ["--quiet", "--shard-size", "300K", source, point / "set"]
        case.refused("*: No space left on device", "pack", *options)
        require(not (point / "set/manifest.json").exists(), "published all the same")
        # With more room the same command goes on.
        case.run("mount", "-o", "remount,size=100m", point, check=True)
        case.spk("pack", *options)
        case.spk("pack", *options[:-1], case.dir / "fresh")
        same_trees(point / "set", case.dir / "fresh")
    finally:
        case.run("umount", point, check=True)


def test_full_disk_for_extract(case):
    case.pack(case.photos(), case.dir / "set")
    point = mount_small(case, "300k")
    try:
        case.refused("*: No space left on device", "extract", "--quiet", case.dir / "set", point / "out")
    finally:
        case.run("umount", point, check=True)


def test_full_standard_output(case):
    case.pack(case.photos(), case.dir / "set")
    with open("/dev/full", "wb") as full:
        for command in (["ls"], ["info"], ["cat"]):
            extra = [case.keys(case.dir / "set")[0] + ".jpg"] if command == ["cat"] else []
            done = subprocess.run([case.command, *command, case.dir / "set", *extra], stdout=full, stderr=subprocess.PIPE)
            require(done.returncode == 1 and b"No space left" in done.stderr, "%s: %d %r", command, done.returncode, done.stderr)


def test_read_only_target(case):
    (case.dir / "readonly").mkdir()
    (case.dir / "readonly").chmod(0o555)
    case.refused("*readonly: cannot make a folder in it: Permission denied", "pack", "--quiet", case.photos(), case.dir / "readonly/set", user=NOBODY)
    (case.dir / "set").mkdir()
    (case.dir / "set").chmod(0o555)
    case.refused("*set*: Permission denied", "pack", "--quiet", case.photos(), case.dir / "set", user=NOBODY)
    up_to_date_where_read_only(case, case.dir / "set", user=NOBODY)


def up_to_date_where_read_only(case, dataset, before=lambda: None, **options):
    """Nothing is to be done in a finished dataset, so nothing has to be written there; splits too."""
    splits = ["--split", "a=0.5,b=0.5"]
    case.dir.chmod(0o755)
    case.pack(case.photos(), dataset / "whole")
    case.pack(case.photos(), dataset / "parts", *splits)
    for folder in [dataset / "whole", dataset / "parts", *(dataset / "parts").glob("?")]:
        folder.chmod(0o555)
    before()
    for extra, name in ([], "whole"), (splits, "parts"):
        done = case.spk("pack", *extra, case.photos(), dataset / name, **options)
        require(b": up to date, " in done.out, "%s", done.describe())
        case.refused(f"*{name}*/.shardpack*: *", "pack", "--quiet", "--force", *extra, case.photos(), dataset / name, **options)


def test_read_only_file_system(case):
    point = mount_small(case, "10m")
    try:
        up_to_date_where_read_only(case, point, lambda: case.run("mount", "-o", "remount,ro", point, check=True))
        case.refused("*small: cannot make a folder in it: Read-only file system", "pack", "--quiet", case.photos(), point / "set")
    finally:
        case.run("umount", point, check=True)


def test_closed_pipe(case):
    """A reader that goes away ends the command by SIGPIPE, without a word."""
    case.pack(case.photos(), case.dir / "set")
    for command in (["ls"], ["ls", "-l"], ["info", "--json"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run([case.command, *command, case.dir / "set"], stdout=writing, stderr=subprocess.PIPE,
                              preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))  # fmt: skip
        os.close(writing)
        equal((done.returncode, done.stderr), (-signal.SIGPIPE, b""), f"{command}: status and message")


def test_many_shards_with_few_open_files(case):
    for i in range(300):
        case.write(f"src/{i}.txt", b"%d" % i)
    limited = ["sh", "-c", 'ulimit -n 32; exec "$@"', "sh", case.command]
    case.run(*limited, "pack", "--quiet", "--shard-samples", "1", case.dir / "src", case.dir / "set", check=True)
    equal(len(shards(case.dir / "set")), 300, "shards")
    for command in (["verify", "--quiet"], ["ls"]):
        case.run(*limited, *command, case.dir / "set", check=True)
    case.run(*limited, "extract", "--quiet", "--original-names", case.dir / "set", case.dir / "back", check=True)
    same_trees(case.dir / "back", case.dir / "src")
