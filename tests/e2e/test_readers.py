"""Other readers see exactly the samples that were packed: stock tools, the format's own reader, and the grouping rule of
WebDataset; with many frames per shard and with one."""
import io
import re
import subprocess
import tarfile

import zstandard

from harness import REPO, equal, require, same_trees, shards, tree

PARTS = ["--shard-size", "900K", "--frame-samples", "7"]


def expected(source):
    """{key: {field: bytes}} of a class tree of .jpg files with plain names."""
    files = {name.decode(): data for name, data in tree(source).items()}
    classes = sorted({name.split("/")[0] for name in files})
    return {
        name[:-4]: {"jpg": data, "cls": b"%d" % classes.index(name.split("/")[0])} for name, data in files.items()
    }


def members(samples):
    return {f"{key}.{field}": data for key, fields in samples.items() for field, data in fields.items()}


def group(stream):
    """The samples of a tar stream as WebDataset forms them: the key is all up to the first dot of the last component;
    a sample ends where the key changes."""
    samples, last = [], None
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        for entry in archive:
            require(entry.isreg(), "%s is no regular file", entry.name)
            match = re.fullmatch(r"((?:.*/|)[^.]+)[.]([^/]*)", entry.name)
            require(match, "WebDataset drops %s", entry.name)
            key, field = match[1], match[2].lower()
            if key != last:
                samples.append((key, {}))
                last = key
            require(field not in samples[-1][1], "%s twice in a sample", entry.name)
            samples[-1][1][field] = archive.extractfile(entry).read()
    return samples


def check_all(case, dataset, want):
    """Every reader on every shard; together they must give what is wanted, and nothing twice."""
    flat, lists, grouped = members(want), {"gnu tar": [], "bsdtar": []}, []
    for shard in shards(dataset):
        case.run("zstd", "-qt", shard, check=True)
        lists["gnu tar"] += case.run("tar", "--zstd", "-tf", shard, check=True).out.decode().split()
        lists["bsdtar"] += case.run("bsdtar", "-tf", shard, check=True).out.decode().split()
        with subprocess.Popen(["zstd", "-qdc", shard], stdout=subprocess.PIPE) as child:
            grouped += group(child.stdout)
        require(child.returncode == 0, "zstd -dc failed on %s", shard)
    for reader, names in lists.items():
        equal(sorted(names), sorted(flat), reader)
    equal(len(grouped), len(want), "samples by the grouping rule")
    equal(dict(grouped), want, "samples by the grouping rule")
    for program in (["tar", "--zstd"], ["bsdtar"]):
        out = case.dir / f"out-{program[0]}-{dataset.name}"
        out.mkdir()
        for shard in shards(dataset):
            case.run(*program, "-xf", shard, "-C", out, check=True)
        equal(tree(out), {name.encode(): data for name, data in flat.items()}, program[0])
    reader = REPO / "format-spec/reader.py"
    case.run("/usr/bin/python3", reader, "check", dataset, check=True)
    lines = case.run("/usr/bin/python3", reader, "list", dataset, check=True).out.decode().splitlines()
    have = [line.split("\t") for line in lines]
    wanted = [[key] + sorted(f"{f}={len(data)}" for f, data in fields.items()) for key, fields in want.items()]
    equal(sorted(have), sorted(wanted), "format-spec/reader.py list")


def test_many_frames(case):
    source, target = case.photos(), case.dir / "set"
    case.pack(source, target, *PARTS)
    require(len(shards(target)) > 2, "expected several shards: %r", shards(target))
    check_all(case, target, expected(source))


def test_single_frame(case):
    source, target = case.photos(), case.dir / "set"
    case.pack(source, target, "--shard-size", "900K", "--frames", "single")
    check_all(case, target, expected(source))
    grouped = []
    for shard in shards(target):
        # One decompressor object, fed piece by piece, as Python's tarfile does from 3.14 on.
        stream, out = zstandard.ZstdDecompressor().decompressobj(), []
        data = shard.read_bytes()
        for i in range(0, len(data), 4096):
            out.append(stream.decompress(data[i:i + 4096]))
            if stream.eof:
                break
        grouped += group(io.BytesIO(b"".join(out)))
    equal(dict(grouped), expected(source), "samples through one decompressor object")


def test_files_with_one_stem(case):
    want = {}
    for i in range(300):
        fields = {"txt": b"text %d" % i, "json": b'{"n": %d}' % i, "seg.png": b"mask" * i}
        want[f"d{i % 7}/sample{i:04}"] = fields
        for field, data in fields.items():
            case.write(f"src/d{i % 7}/sample{i:04}.{field}", data)
    case.pack(case.dir / "src", case.dir / "set", "--check", "none", "--stem", "first", "--labels", "none", "--shard-samples",
              "100")  # fmt: skip
    equal(len(shards(case.dir / "set")), 3, "shards")
    check_all(case, case.dir / "set", want)
