"""Sources, targets and lists that cannot be packed: one line that says why, and nothing half-written."""
import os
import pathlib

from harness import NOBODY, Skip, equal, long, require
from trees import jpeg

NO_CHECK = ["--quiet", "--check", "none"]


def refused_clean(case, glob, *arguments, **options):
    """Refused, and the target "set" was not begun."""
    case.refused(glob, "pack", *NO_CHECK, *arguments, case.dir / "set", **options)
    left = list((case.dir / "set").iterdir()) if (case.dir / "set").exists() else []
    require(not [p for p in left if p.name != ".shardpack"], "left in the target: %r", left)


def test_missing_and_empty(case):
    refused_clean(case, "*nowhere: No such file or directory", case.dir / "nowhere")
    (case.dir / "empty").mkdir()
    refused_clean(case, "*empty*no *", case.dir / "empty")
    case.write("junk/.DS_Store")
    case.write("junk/Thumbs.db")
    refused_clean(case, "*junk*no *", case.dir / "junk")
    refused_clean(case, "*file: *", case.write("file"))
    case.write("src/a.jpg")
    refused_clean(case, "*no *", "--include", "*.png", case.dir / "src")


def test_target_in_source(case):
    case.write("src/a/x.jpg")
    for target, message in {"src": "*is the source folder*", "src/a": "*inside*", "src/new": "*inside*"}.items():
        case.refused(message, "pack", *NO_CHECK, case.dir / "src", case.dir / target)
    equal(sorted(p.name for p in (case.dir / "src").rglob("*")), ["a", "x.jpg"], "source afterwards")
    os.symlink(case.dir / "src", case.dir / "link")
    case.refused("*inside*", "pack", *NO_CHECK, case.dir / "src", case.dir / "link/new")


def test_target_is_something_else(case):
    case.write("src/x.jpg")
    case.write("set")
    case.refused("*set: Not a directory", "pack", *NO_CHECK, case.dir / "src", case.dir / "set")
    case.refused("*no/such: No such file or directory", "pack", *NO_CHECK, case.dir / "src", case.dir / "no/such/folder")


def test_unreadable(case):
    case.dir.chmod(0o777)
    case.write("src/good.jpg")
    case.write("src/secret.jpg").chmod(0)
    case.refused("*secret.jpg: Permission denied", "pack", *NO_CHECK, case.dir / "src", case.dir / "set", user=NOBODY)
    os.remove(case.dir / "src/secret.jpg")
    case.write("src/locked/x.jpg")
    (case.dir / "src/locked").chmod(0)
    case.refused("*locked: Permission denied", "pack", *NO_CHECK, case.dir / "src", case.dir / "set2", user=NOBODY)
    for name in ("set", "set2"):
        require(not (case.dir / name / "manifest.json").exists(), "published all the same")


def test_symlinks(case):
    case.write("src/a/x.jpg", b"one")
    case.write("other/y.jpg", b"two")
    os.symlink("x.jpg", case.dir / "src/a/link.jpg")
    os.symlink(case.dir / "other", case.dir / "src/b")
    os.symlink("nowhere", case.dir / "src/a/dangling.jpg")
    os.mkfifo(case.dir / "src/a/fifo.jpg")
    result = case.json("pack", "--json", "--check", "none", case.dir / "src", case.dir / "set")
    equal((result["files"], result["other_skipped"]), (1, 4), "files packed and others skipped")
    refused_clean_target = case.dir / "set2"
    case.refused("*a/dangling.jpg: No such file or directory", "pack", *NO_CHECK, "--follow-symlinks", case.dir / "src",
                 refused_clean_target)  # fmt: skip
    os.remove(case.dir / "src/a/dangling.jpg")
    result = case.json("pack", "--json", "--check", "none", "--follow-symlinks", case.dir / "src", case.dir / "set3")
    equal((result["files"], result["other_skipped"]), (3, 1), "files packed and others skipped, following links")


def test_symlink_loop(case):
    case.write("src/a/x.jpg")
    os.symlink("..", case.dir / "src/a/up")
    case.pack(case.dir / "src", case.dir / "plain", "--check", "none")
    refused_clean(case, "*a/up: symlink loop*", "--follow-symlinks", case.dir / "src")
    os.remove(case.dir / "src/a/up")
    os.symlink("self", case.dir / "src/a/self")
    refused_clean(case, "*a/self: *", "--follow-symlinks", case.dir / "src")


def test_duplicate_keys_after_cleaning(case):
    """A file named as the cleaned key of another: never two samples under one key."""
    case.write("src/a b.jpg", b"one")
    case.pack(case.dir / "src", case.dir / "first", "--check", "none")
    key = case.keys(case.dir / "first")[0]
    case.write(f"src/{key}.jpg", b"two")
    refused_clean(case, f'*duplicate key "{key}": from "*" and from "*"', case.dir / "src")


def test_empty_class(case):
    case.write("src/cat/x.jpg")
    (case.dir / "src/bird").mkdir()
    case.write("src/dog/.DS_Store")
    case.pack(case.dir / "src", case.dir / "set", "--check", "none")
    info = case.json("info", "--json", case.dir / "set")
    equal(info["classes"], ["bird", "cat", "dog"], "classes")
    equal(case.spk("cat", case.dir / "set", "cat/x.cls").out, b"1", "label")


def test_file_over_8_gib(case):
    big = case.write("src/big.bin")
    os.truncate(big, (8 << 30) + 1)
    case.write("src/small.bin")
    refused_clean(case, "*big.bin: *8589934593*", case.dir / "src")
    os.truncate(big, 8 << 30)
    refused_clean(case, "*big.bin: *8589934592*", case.dir / "src")


def many_classes(case, count):
    # Under one folder of the shared memory file system where there is one: twice faster than on disk.
    for i in range(count):
        os.makedirs(case.dir / f"src/c{i:06}")
        if i % 1000 == 0:
            (case.dir / f"src/c{i:06}/x.bin").write_bytes(b"%d" % i)
    case.pack(case.dir / "src", case.dir / "set", "--check", "none")
    info = case.json("info", "--json", case.dir / "set")
    equal(len(info["classes"]), count, "classes")
    last = count - 1000
    equal(case.spk("cat", case.dir / "set", f"c{last:06}/x.cls").out, b"%d" % last, "label")
    case.spk("verify", "--quiet", case.dir / "set")


def test_5000_classes(case):
    many_classes(case, 5000)


@long
def test_200000_classes(case):
    many_classes(case, 200000)


@long
def test_large_tree(case):
    """300,000 small files in 3,000 folders, packed, verified, and one of them read back."""
    for folder in range(3000):
        os.makedirs(case.dir / f"src/f{folder:04}")
        for i in range(100):
            (case.dir / f"src/f{folder:04}/{i}.txt").write_bytes(b"%d %d" % (folder, i))
    case.pack(case.dir / "src", case.dir / "set", "--labels", "none", "--shard-samples", "50000")
    case.spk("verify", "--quiet", case.dir / "set")
    equal(case.json("info", "--json", case.dir / "set")["samples"], 300000, "samples")
    equal(case.spk("cat", case.dir / "set", "f1234/56.txt").out, b"1234 56", "a file")


# text of the list: message
BAD_LISTS = {
    "empty.csv": (b"", "*empty.csv*"),
    "header.csv": (b"file,label\na.jpg,1\n", '*header.csv: *"path"*'),
    "parent.csv": (b"path\na.jpg\n../x.jpg\n", '*parent.csv: row 3: path "../x.jpg": leaves the source folder'),
    "absolute.csv": (b"path\n/etc/passwd\n", '*absolute.csv: row 2: path "/etc/passwd": *'),
    "missing.csv": (b"path\nnone.jpg\n", '*missing.csv: row 2: path "none.jpg": *'),
    "twice.csv": (b"path\na.jpg\nb.jpg\na.jpg\n", '*twice.csv: row 4: path "a.jpg": *'),
    "mixed.csv": (b"path,label\na.jpg,1\nb.jpg,cat\n", "*mixed.csv: row 3: *label*"),
    "columns.csv": (b"path,label\na.jpg,1\nb.jpg\n", "*columns.csv: row 3: *"),
    "quote.csv": (b'path,label\n"a.jpg,1\nb.jpg,2\n', "*quote.csv: row 2: *quote*"),
    "negative.csv": (b"path,label\na.jpg,-1\n", "*negative.csv: row 2: *label*"),
    "huge.csv": (b"path,label\na.jpg,99999999999999999999\n", "*huge.csv: row 2: *label*"),
    "nul.csv": (b"path\na\0.jpg\n", "*nul.csv: row 2: *"),
    "columns.tsv": (b"path\tlabel\na.jpg\t1\textra\n", "*columns.tsv: row 2: *"),
    "bad.jsonl": (b'{"path": "a.jpg"}\n{"path": \n', "*bad.jsonl: row 2: *"),
    "array.jsonl": (b'["a.jpg"]\n', "*array.jsonl: row 1: *object*"),
    "number.jsonl": (b'{"path": 1}\n', "*number.jsonl: row 1: *path*"),
    "deep.jsonl": (b'{"path": "a.jpg", "x": ' + b"[" * 100000 + b"]" * 100000 + b"}\n", "*deep.jsonl: row 1: *"),
    "list.xml": (b"<x/>", "*list.xml*"),
}  # fmt: skip


def test_bad_lists(case):
    case.write("src/a.jpg")
    case.write("src/b.jpg")
    for name, (text, message) in BAD_LISTS.items():
        refused_clean(case, message, "--list", case.write(name, text), case.dir / "src")
    refused_clean(case, "*nolist.csv*No such file or directory", "--list", case.dir / "nolist.csv", case.dir / "src")


def test_good_lists(case):
    """The same list in three forms gives the same shards."""
    for i in range(5):
        case.write(f"src/a {i}.jpg", b"%d" % i)
    rows = [(f"a {i}.jpg", "cat" if i % 2 else "dog", f'say "{i}", please') for i in (3, 1, 4, 0)]
    quoted = ['"%s","%s","%s"' % tuple(v.replace('"', '""') for v in row) for row in rows]
    case.write("l.csv", ("path,label,note\r\n" + "\r\n".join(quoted) + "\r\n").encode())
    case.write("l.tsv", ("path\tlabel\tnote\n" + "\n".join("\t".join(row) for row in rows)).encode())
    jsonl = ['{"label":"%s","path":"%s","note":"%s"}' % (c, p, n.replace('"', '\\"')) for p, c, n in rows]
    case.write("l.jsonl", "\n".join(jsonl).encode())
    prints = set()
    for kind in ("csv", "tsv", "jsonl"):
        target = case.dir / kind
        case.pack(case.dir / "src", target, "--check", "none", "--no-shuffle", "--list", case.dir / f"l.{kind}")
        prints.add(case.json("info", "--json", target)["fingerprint"])
        equal([key[:3] for key in case.keys(target)], ["a_3", "a_1", "a_4", "a_0"], "order of the list")
    equal(len(prints), 1, "fingerprints")


def test_bad_options(case):
    case.write("src/a.jpg")
    for options in (["--shard-size", "0"], ["--shard-size", "1X"], ["--frame-samples", "0"], ["--split", "a=0.5,b=0.4"],
                    ["--split", "a/b=1"], ["--split", "a=1,a=0"], ["--jobs", "-1"], ["--nonsense"], ["--prefix", "a-b"],
                    ["--check", "maybe"], ["--level", "99"], ["--frames", "double"]):  # fmt: skip
        result = case.run(case.command, "pack", *options, case.dir / "src", case.dir / "set")
        require(result.code in (1, 2) and result.text.startswith("shardpack: "), "%s", result.describe())
        require(not (case.dir / "set").exists(), "%s made the target", options)


def test_file_that_changes(case):
    """Files that shrink, grow or vanish after the scan are found, and nothing is published."""
    from test_kill import stopped_packer

    def shrink(path):
        os.truncate(path, 10)

    def grow(path):
        path.write_bytes(path.read_bytes() + b"more")

    def replace(path):
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data[::-1])

    for what, change in {"shrink": shrink, "grow": grow, "vanish": pathlib.Path.unlink, "replace": replace}.items():
        source, target = case.dir / f"src-{what}", case.dir / f"set-{what}"
        case.run("cp", "-R", case.photos(), source, check=True)
        child = stopped_packer(case, source, target, "--check", "none", "--no-shuffle")
        if child.poll() is not None:
            raise Skip("the packer was too fast to be stopped")
        change(source / "night/night_0024.jpg")
        child.send_signal(18)
        error = child.communicate()[1].decode()
        equal(child.returncode, 1, f"{what}: exit status, {error!r}")
        require("night/night_0024.jpg: " in error, "%s: %r", what, error)
        require(not (target / "manifest.json").exists(), "%s: published all the same", what)


def test_labels(case):
    """A file named .cls of the user's own is kept; samples in the root have no label."""
    case.write("src/cat/a.jpg", jpeg())
    case.write("src/cat/b.jpg", jpeg())
    case.write("src/cat/b.cls", b"77")
    case.write("src/readme.txt", b"hello")
    case.pack(case.dir / "src", case.dir / "set")
    equal(case.spk("cat", case.dir / "set", "cat/a.cls").out, b"0", "label")
    equal(case.spk("cat", case.dir / "set", "cat/b.cls").out, b"77", "own label")
    case.refused("*readme.cls*", "cat", case.dir / "set", "readme.cls")
