"""The same input and options give the same bytes, whatever else is different."""
import os
import shutil

from harness import equal, require, same_trees, shards, tree
from trees import odd_tree

OPTIONS = ["--shard-size", "500K", "--frame-samples", "5", "--seed", "42"]


def test_jobs(case):
    source = case.photos()
    for jobs in ("1", "4"):
        case.pack(source, case.dir / f"jobs-{jobs}", "--jobs", jobs, *OPTIONS)
    require(len(shards(case.dir / "jobs-1")) > 4, "expected several shards")
    same_trees(case.dir / "jobs-4", case.dir / "jobs-1")


def test_environment(case):
    source = case.photos()
    case.pack(source, case.dir / "a", *OPTIONS, env={"LC_ALL": "C", "TZ": "UTC"}, umask=0o022)
    case.pack(source, case.dir / "b", *OPTIONS, env={"LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "TMPDIR": "/nowhere"},
              umask=0o077)  # fmt: skip
    same_trees(case.dir / "b", case.dir / "a")


def copy_backwards(source, target):
    """Copies files in reverse order, so that the folder's own order differs; with other times and permissions."""
    for name, data in sorted(tree(source).items(), reverse=True):
        full = os.path.join(os.fsencode(target), name)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as file:
            file.write(data)
        os.chmod(full, 0o600)
        os.utime(full, (1, 1))


def test_copies(case):
    source, _ = odd_tree(case)
    copy_backwards(source, case.dir / "copy")
    for name in ("odd", "copy"):
        case.pack(case.dir / name, case.dir / f"set-{name}", "--check", "none", "--shard-samples", "30")
    same_trees(case.dir / "set-copy", case.dir / "set-odd")
    # Also under another path, from another working folder, and with a slash at the end.
    case.run(case.command, "pack", "--quiet", "--check", "none", "--shard-samples", "30", "../copy/", "../set-relative",
             check=True, cwd=case.dir / "odd")  # fmt: skip
    same_trees(case.dir / "set-relative", case.dir / "set-odd")


def test_seed_and_order(case):
    source = case.photos()
    keys = {}
    for name, options in {"a": ["--seed", "1"], "b": ["--seed", "2"], "c": ["--no-shuffle"]}.items():
        case.pack(source, case.dir / name, "--check", "header", *options)
        keys[name] = case.keys(case.dir / name)
    require(keys["a"] != keys["b"], "two seeds gave the same order")
    equal(sorted(keys["a"]), keys["c"], "order without shuffling is by key")
    equal(sorted(keys["b"]), keys["c"], "keys under another seed")


def test_second_run_does_nothing(case):
    case.pack(case.photos(), case.dir / "set", *OPTIONS)
    before = {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in (case.dir / "set").iterdir()}
    result = case.json("pack", "--json", *OPTIONS, case.photos(), case.dir / "set")
    require(result["up_to_date"], "not up to date: %r", result)
    after = {p.name: (p.stat().st_ino, p.stat().st_mtime_ns) for p in (case.dir / "set").iterdir()}
    equal(after, before, "files of the dataset")


def test_packing_anew_beside_a_live_dataset(case):
    shutil.copytree(case.photos(), case.dir / "src")
    case.pack(case.dir / "src", case.dir / "set", *OPTIONS)
    shutil.copytree(case.dir / "set", case.dir / "before")
    (case.dir / "src/beach/beach_0000.jpg").unlink()
    case.refused("*--force*", "pack", "--quiet", *OPTIONS, case.dir / "src", case.dir / "set")
    same_trees(case.dir / "set", case.dir / "before", "dataset after the refusal")
    case.pack(case.dir / "src", case.dir / "set", "--force", *OPTIONS)
    new = tree(case.dir / "set")
    for name, data in tree(case.dir / "before").items():
        require(name == b"manifest.json" or new.get(name) == data, "%r was touched", name)
    case.spk("verify", "--quiet", case.dir / "set")
    case.pack(case.dir / "src", case.dir / "fresh", *OPTIONS)
    case.spk("prune", case.dir / "set")
    same_trees(case.dir / "set", case.dir / "fresh")
