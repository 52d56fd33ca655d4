"""Damaged shards and datasets: every reader refuses them with a line that names the place; verify lists all problems."""
import fnmatch
import json
import shutil
import struct

from harness import equal, require, shards
from shardfile import Dataset, Shard


def packed(case, name="set"):
    """A dataset of three or more shards of several frames; a fresh copy for each damage."""
    origin = case.dir / "origin"
    if not origin.exists():
        case.pack(case.photos(), origin, "--shard-size", "900K", "--frame-samples", "5", "--no-shuffle")
    target = case.dir / name
    shutil.copytree(origin, target)
    return target, [Shard(path) for path in shards(target)]


def problems(case, path):
    """The lines that verify prints for a damaged dataset."""
    result = case.run(case.command, "verify", "--quiet", path)
    equal(result.code, 1, "exit of verify: " + result.describe())
    return [line.removeprefix("shardpack: ") for line in (result.out + result.err).decode().splitlines() if line.strip()]


def expect(case, path, *globs):
    """verify reports exactly these problems, in this order, and perhaps a summary after them."""
    lines = problems(case, path)
    for glob in globs:
        require(any(fnmatch.fnmatchcase(line, glob) for line in lines), "no line like %r in %r", glob, lines)


def frame_of(shard, number):
    offset, size, _ = shard.frames[number]
    return offset, size


def test_cuts(case):
    cuts = {
        "boundary": lambda s: frame_of(s, 2)[0],
        "frame": lambda s: frame_of(s, 2)[0] + 1000,
        "index": lambda s: s.index + 30,
        "index-boundary": lambda s: s.index,
        "table-boundary": lambda s: s.table,
        "table": lambda s: s.table + 40,
        "last-byte": lambda s: len(s.data) - 1,
        "nothing": lambda s: 0,
        "few": lambda s: 5,
    }
    for name, cut in cuts.items():
        target, parts = packed(case, name)
        second = parts[1]
        size = cut(second)
        second.write(second.data[:size])
        expect(case, target, f"*{second.path.name}: *{size}*{len(second.data)}*")
        # The shard on its own, without a manifest that knows its size.
        for command in (["ls"], ["verify", "--quiet"], ["cat"], ["extract", "--quiet"]):
            extra = {"cat": ["beach/beach_0000.jpg"], "extract": [case.dir / "out"]}.get(command[0], [])
            case.refused(f"*{second.path.name}: *", *command, second.path, *extra)
        case.refused(f"*{second.path.name}: *", "extract", "--quiet", target, case.dir / f"out-{name}")


def test_flipped_bytes(case):
    places = {
        "frame-magic": (lambda s: frame_of(s, 1)[0], "*frame 1: *"),
        "frame-header": (lambda s: frame_of(s, 1)[0] + 5, "*frame 1: *"),
        "frame-data": (lambda s: frame_of(s, 1)[0] + frame_of(s, 1)[1] // 2, "*frame 1: *"),
        "frame-checksum": (lambda s: sum(frame_of(s, 1)) - 1, "*frame 1: *"),
        "index-magic": (lambda s: s.index, "*"),
        "index-size": (lambda s: s.index + 4, "*"),
        "index-name": (lambda s: s.index + 8, "*"),
        "index-version": (lambda s: s.index + 16, "*version*"),
        "index-frames": (lambda s: s.index + 24, "*"),
        "index-samples": (lambda s: s.index + 28, "*"),
        "index-tar-bytes": (lambda s: s.index + 32, "*"),
        "index-digest": (lambda s: s.index + 8 + 40 + 10, "*shard index: SHA-256*"),
        "index-frame": (lambda s: s.index + 8 + 56 + 10, "*shard index: SHA-256*"),
        "index-list": (lambda s: s.table - 20, "*shard index: SHA-256*"),
        "table-magic": (lambda s: s.table, "*seek table*"),
        "table-size": (lambda s: s.table + 4, "*seek table*"),
        "table-entry": (lambda s: s.table + 8 + 12, "*"),
        "table-content": (lambda s: s.table + 8 + 12 + 4, "*"),
        "table-checksum": (lambda s: s.table + 8 + 12 + 8, "*frame 1: *"),
        "footer-count": (lambda s: len(s.data) - 9, "*seek table*"),
        "footer-flags": (lambda s: len(s.data) - 5, "*seek table*"),
        "footer-magic": (lambda s: len(s.data) - 1, "*seek table*"),
    }
    for name, (place, glob) in places.items():
        target, parts = packed(case, name)
        shard = parts[1]
        shard.flip(place(shard))
        # The dataset's digests notice in any case; the shard alone must notice too.
        expect(case, target, f"*{shard.path.name}: *")
        expect(case, shard.path, f"*{shard.path.name}: {glob}")


def test_reading_stops_at_the_damage(case):
    """Samples of sound frames are read, those of the damaged frame are not; other shards are untouched."""
    target, parts = packed(case)
    shard = parts[1]
    shard.flip(frame_of(shard, 1)[0] + 2000)
    keys = case.keys(shard.path)
    case.spk("cat", target, keys[0] + ".jpg")
    case.refused(f"*{shard.path.name}: frame 1: *", "cat", target, keys[6] + ".jpg")
    case.spk("cat", target, keys[12] + ".jpg")
    case.refused(f"*{shard.path.name}: frame 1: *", "extract", "--quiet", target, case.dir / "out")


def test_things_appended(case):
    target, parts = packed(case, "zeros")
    parts[0].write(parts[0].data + bytes(4096))
    expect(case, target, f"*{parts[0].path.name}: *")
    expect(case, parts[0].path, f"*{parts[0].path.name}: *seek table*")
    target, parts = packed(case, "two")
    parts[0].write(parts[0].data + parts[1].data)
    expect(case, target, f"*{parts[0].path.name}: *")
    expect(case, parts[0].path, f"*{parts[0].path.name}: *")
    target, parts = packed(case, "garbage")
    parts[0].write(parts[0].data[:-9] + b"x" + parts[0].data[-9:])
    expect(case, parts[0].path, f"*{parts[0].path.name}: *seek table*")


def test_hostile_seek_tables(case):
    """Footers that promise more entries than could be, or sizes whose sum overflows."""
    target, parts = packed(case)
    shard = parts[0]
    for count in (1 << 27, (1 << 27) + 1, (1 << 32) - 1, 1, 0):
        shard.write(shard.data[:-9] + struct.pack("<IBI", count, 0x80, 0x8F92EAB1))
        for command in (["verify", "--quiet"], ["ls"]):
            case.refused(f"*{shard.path.name}: *", *command, shard.path)
    table = bytearray(shard.data[shard.table:])
    for i in range(len(shard.frames) + 1):
        struct.pack_into("<II", table, 8 + 12 * i, 0xFFFFFFFF, 0xFFFFFFFF)
    shard.write(shard.data[:shard.table] + bytes(table))
    case.refused(f"*{shard.path.name}: *seek table*", "ls", shard.path)


def test_missing_and_swapped(case):
    target, parts = packed(case, "missing")
    parts[1].path.unlink()
    expect(case, target, f"*{parts[1].path.name}: No such file or directory")
    for command in (["extract", "--quiet", target, case.dir / "out"], ["ls", target]):
        case.refused(f"*{parts[1].path.name}: No such file or directory", *command)
    target, parts = packed(case, "swapped")
    first, second = parts[0], parts[1]
    first.write(second.data)
    second.write(first.data)
    expect(case, target, f"*{first.path.name}: *", f"*{second.path.name}: *")
    case.refused(f"*{first.path.name}: *", "extract", "--quiet", target, case.dir / "out2")


def test_all_problems_are_listed(case):
    target, parts = packed(case)
    require(len(parts) >= 3, "expected three shards")
    parts[0].flip(frame_of(parts[0], 0)[0] + 1000)
    parts[1].path.unlink()
    parts[2].flip(frame_of(parts[2], 2)[0] + 1000)
    expect(case, target, f"*{parts[0].path.name}: frame 0: *", f"*{parts[1].path.name}: No such file*",
           f"*{parts[2].path.name}: frame 2: *")  # fmt: skip


def test_wrong_counts(case):
    changes = {
        "samples": lambda d: d.manifest.update(samples=d.manifest["samples"] + 1),
        "shards": lambda d: d.manifest.update(shards=d.manifest["shards"] + 1),
        "frames": lambda d: d.manifest.update(frames=d.manifest["frames"] - 1),
        "bytes": lambda d: d.manifest.update(bytes=d.manifest["bytes"] - 1),
        "tar_bytes": lambda d: d.manifest.update(tar_bytes=0),
        "negative": lambda d: d.manifest.update(samples=-1),
        "huge": lambda d: d.manifest.update(samples=2**63),
        "string": lambda d: d.manifest.update(samples="5"),
        "fingerprint": lambda d: d.manifest.update(fingerprint="0" * 64),
        "format": lambda d: d.manifest.update(format="other"),
        "no-table": lambda d: d.manifest.pop("table"),
        "table-path": lambda d: d.manifest["table"].update(file="../shards.tsv"),
        "table-digest": lambda d: d.manifest["table"].update(sha256="0" * 64),
        "table-size": lambda d: d.manifest["table"].update(bytes=1),
    }
    for name, change in changes.items():
        target, _ = packed(case, name)
        dataset = Dataset(target)
        change(dataset)
        dataset.write_manifest(json.dumps(dataset.manifest))
        for command in (["info"], ["ls"], ["verify", "--quiet"]):
            case.refused(f"*{name}/*.*: *", *command, target)
    target, _ = packed(case, "version")
    dataset = Dataset(target)
    dataset.manifest["version"] = "2.0"
    dataset.write_manifest(json.dumps(dataset.manifest))
    case.refused('*manifest.json: *2.0*', "info", target)
    dataset.manifest["version"] = "1.7"
    dataset.manifest["news"] = {"a": [1]}
    dataset.write_manifest(json.dumps(dataset.manifest))
    case.spk("verify", "--quiet", target)


def test_wrong_payload_and_fields(case):
    target, _ = packed(case, "payload")
    dataset = Dataset(target)
    dataset.manifest["payload_bytes"] += 1
    dataset.write_manifest(json.dumps(dataset.manifest))
    expect(case, target, "*payload*")
    target, _ = packed(case, "fields")
    dataset = Dataset(target)
    dataset.manifest["fields"][0]["samples"] -= 1
    dataset.write_manifest(json.dumps(dataset.manifest))
    expect(case, target, "*field*")


def test_bad_manifests(case):
    target, _ = packed(case)
    texts = {
        "empty": b"",
        "not JSON": b"hello",
        "array": b"[]",
        "truncated": (target / "manifest.json").read_bytes()[:200],
        "twice": (target / "manifest.json").read_bytes().replace(b'"samples"', b'"samples": 1, "samples"', 1),
        "not UTF-8": b'{"format": "\xff"}',
        "trailing": (target / "manifest.json").read_bytes() + b"{}",
        "deep": b"[" * 1000000,
    }
    dataset = Dataset(target)
    for name, text in texts.items():
        dataset.write_manifest(text)
        for command in (["info"], ["ls"], ["verify", "--quiet"]):
            case.refused("*manifest.json: *", *command, target)
    dataset.write_manifest(b"[" * (200 << 20))
    for command in (["info"], ["verify", "--quiet"]):
        case.refused("*manifest.json: *", *command, target)
        code, memory = case.peak_memory(*command, target)
        require(code == 1 and memory < 150 << 20, "%r: exit %d with %d MiB", command, code, memory >> 20)


def test_bad_tables(case):
    def swap(rows, column, value):
        rows[0][column] = value

    changes = {
        "parent": (0, "../x.tar.zst"), "absolute": (0, "/etc/passwd"), "inner": (0, "a/../b"), "empty": (0, ""),
        "space": (0, "a b"), "zero": (1, "0"), "sign": (1, "+5"), "zeros": (1, "007"), "overflow": (1, "18446744073709551617"),
        "hex": (6, "xyz"), "upper": (6, "A" * 64), "offset": (5, "99999999999"),
    }  # fmt: skip
    for name, (column, value) in changes.items():
        target, _ = packed(case, name)
        dataset = Dataset(target)
        dataset.rows[0][column] = value
        dataset.write()
        for command in (["info"], ["verify", "--quiet"]):
            case.refused(f"*{name}/shards-*.tsv: *", *command, target)


def test_key_in_two_shards(case):
    """A publisher whose digests all agree, but who lists a shard twice."""
    target, parts = packed(case)
    dataset = Dataset(target)
    copy = parts[0].path.with_name("again.tar.zst")
    shutil.copy(parts[0].path, copy)
    dataset.rows.append([copy.name] + dataset.rows[0][1:])
    for column, total in enumerate(("samples", "frames", "bytes", "tar_bytes"), 1):
        dataset.manifest[total] += int(dataset.rows[0][column])
    dataset.manifest["shards"] += 1
    dataset.seal()
    expect(case, target, "*key \"beach/beach_0000\" is there twice: in *-000000.tar.zst * and in again.tar.zst *")


def test_not_a_dataset(case):
    case.write("folder/x.txt")
    case.refused("*folder: no dataset here: *manifest.json does not exist", "info", case.dir / "folder")
    case.refused("*nowhere: no such dataset *", "ls", case.dir / "nowhere")
    case.refused("*x.txt: *", "ls", case.dir / "folder/x.txt")
    case.refused("*x.txt: *", "verify", case.dir / "folder/x.txt")
    case.run("tar", "-C", case.dir, "--zstd", "-cf", case.dir / "plain.tar.zst", "folder", check=True)
    case.refused("*plain.tar.zst: *", "ls", case.dir / "plain.tar.zst")
