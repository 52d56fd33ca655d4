"""Odd names: keys obey the rules of format-spec/dataset.md, and every file comes back under its own name."""
import os
import re

from harness import REPO, equal, require, same_trees, shards, tree
from trees import JUNK, odd_tree

KEY = re.compile(r"(?!__)[A-Za-z0-9_-]+(/(?!__)[A-Za-z0-9_-]+)*")
FIELD = re.compile(r"(?!__)[a-z0-9_]+(\.[a-z0-9_]+)*")


def test_photos_come_back(case):
    source = case.photos()
    case.pack(source, case.dir / "set", "--shard-size", "1M")
    case.spk("extract", "--quiet", "--original-names", case.dir / "set", case.dir / "back")
    case.run("diff", "-r", source, case.dir / "back", check=True)


def test_odd_names_come_back(case):
    source, names = odd_tree(case)
    result = case.json("pack", "--json", "--check", "none", "--labels", "none", source, case.dir / "set")
    equal(result["junk"], len(JUNK), "junk counted")
    equal(result["files"], len(names), "files packed")
    case.spk("verify", "--quiet", case.dir / "set")
    case.spk("extract", "--quiet", "--original-names", case.dir / "set", case.dir / "back")
    for path in JUNK:
        os.remove(os.path.join(os.fsencode(source), path))
    same_trees(case.dir / "back", source)


def test_odd_names_keys(case):
    source, names = odd_tree(case)
    case.pack(source, case.dir / "set", "--check", "none", "--labels", "none", "--shard-samples", "40")
    have = []
    for shard in shards(case.dir / "set"):
        listed = case.run("tar", "--zstd", "-tf", shard, check=True).out.decode("ascii").splitlines()
        have += [tuple(name.split(".", 1)) for name in listed]
    equal(len(have), len(names), "members")
    for key, field in have:
        require(KEY.fullmatch(key) and len(key) <= 72, "bad key %r", key)
        require(FIELD.fullmatch(field) and len(field) <= 27, "bad field %r", field)
    keys = case.keys(case.dir / "set")
    equal(sorted(keys), sorted({key for key, _ in have}), "keys by ls and by tar")
    equal(len({key.lower() for key in keys}), len(keys), "keys unique when case is folded")
    # The rules of the specification, worked out by its own reader.
    reader = REPO / "format-spec/reader.py"
    lines = case.run("/usr/bin/python3", reader, "keys-of", check=True, stdin=None, input=b"\0".join(names)).out
    wanted = sorted(tuple(line.split("\t")[:2]) for line in lines.decode().splitlines())
    equal(sorted(have), wanted, "keys and fields by reader.py keys-of")


def test_extract_by_key(case):
    source, _ = odd_tree(case)
    case.pack(source, case.dir / "set", "--check", "none", "--labels", "none")
    case.spk("extract", "--quiet", case.dir / "set", case.dir / "back")
    listed = case.run("tar", "--zstd", "-tf", shards(case.dir / "set")[0], check=True).out.decode().split()
    equal(sorted(name.decode() for name in tree(case.dir / "back")), sorted(listed), "extracted names")
    # Nothing is overwritten without --force.
    case.refused("*exists*", "extract", "--quiet", case.dir / "set", case.dir / "back")
    case.spk("extract", "--quiet", "--force", case.dir / "set", case.dir / "back")


def test_adding_files_changes_no_key(case):
    for i in range(200):
        case.write(f"src/c{i % 5}/Photo {i}.jpg", b"%d" % i)
        case.write(f"src/c{i % 5}/plain{i}.jpg", b"%d" % i)
    options = ["--check", "none", "--split", "train=0.8,val=0.2"]

    def packed(target):
        case.pack(case.dir / "src", target, *options)
        return {split: set(case.keys(target / split)) for split in ("train", "val")}

    before = packed(case.dir / "one")
    for i in range(200):
        case.write(f"src/c{i % 7}/new/Photo {i}.jpg", b"new %d" % i)
        case.write(f"src/c{i % 5}/Photo {i}.jpg.jpg", b"new %d" % i)
        case.write(f"src/aaa/{i}.jpg", b"new %d" % i)
    after = packed(case.dir / "two")
    for split, keys in before.items():
        require(keys <= after[split], "keys left split %s: %r", split, sorted(keys - after[split])[:5])
    require(50 < len(before["val"]) < 110, "val has %d of 400", len(before["val"]))
    equal(sum(map(len, after.values())), 1000, "samples of both splits")
