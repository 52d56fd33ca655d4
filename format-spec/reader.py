#!/usr/bin/env python3
"""An independent reader of shards and datasets, written from shard.md and dataset.md alone.

    reader.py check DATASET|SHARD       everything that a reader must refuse; a line per problem; exit 1 if there is one
    reader.py list DATASET|SHARD        a line per sample: key, then field=size for each field
    reader.py cat DATASET|SHARD KEY.FIELD    the bytes of a field, to stdout
    reader.py keys-of [--stem first] [FILE]    key, field and path for NUL-separated original paths (dataset.md 5)
    reader.py split NAME=SHARE,... [FILE]    split, position and path for NUL-separated original paths (dataset.md 6)

Needs Python 3.9 and the zstandard package. Memory: the sample list of one shard, and for `check` a set of all keys;
frames are streamed. `keys-of` and `split` are in keys.py. Numbers in comments are sections of shard.md, or of dataset.md where they begin with D.
"""

import hashlib
import json
import os
import re
import stat
import struct
import sys
from collections import namedtuple

import jpeg_coefficients
import zstandard

GIB = 1 << 30
MAX_NUMBER = 1 << 53
EMPTY_XXH = 0x51D8E999
CHUNK = 1 << 18
KEY = re.compile(rb"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")
FIELD = re.compile(rb"[a-z0-9_]+(\.[a-z0-9_]+)*")
ENCODING = re.compile(rb"[a-z0-9_-]{1,63}")
HEX64 = re.compile(r"[0-9a-f]{64}")
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
URL = re.compile(r"(https?|s3)://.+", re.IGNORECASE)
TABLE_HEAD = "#path\tsamples\tframes\tbytes\ttar_bytes\tindex_offset\ttail_sha256"

# offset of the data, within the frame; original: size of what it stands for
Member = namedtuple("Member", "field encoding path offset size original")
RESTORABLE = {b"identity": True, b"jpeg_coefficients": True, b"jpeg_pixels": False}
Sample = namedtuple("Sample", "key frame members")
Row = namedtuple("Row", "path samples frames bytes tar_bytes index_offset tail_sha256")


class Problem(Exception):
    """Something that a reader must refuse; rule is its name in section 8."""

    def __init__(self, rule, text):
        super().__init__(text)
        self.rule = rule


def require(condition, rule, text, *values):
    if not condition:
        raise Problem(rule, text % values if values else text)


def show(raw):
    """Bytes as printable ASCII."""
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else "\\x%02x" % b for b in raw)


# ---- zstd frames (4) ----


def walk_frame(pread, start, size, content, rule_header, rule_end):
    """Checks the header and the chain of blocks of the frame in [start, start + size); returns its checksum."""
    head = pread(start, min(size, 18))
    require(head[:4] == b"\x28\xb5\x2f\xfd" and len(head) >= 6, rule_header, "not a zstd frame")
    flags = head[4]
    single, at = flags >> 5 & 1, 5
    require(not flags & 0x18, rule_header, "reserved or unused bit set in the zstd header")
    require(not flags & 3, rule_header, "zstd frame asks for a dictionary")
    require(flags & 4, rule_header, "zstd frame has no checksum")
    window = 0
    if not single:
        window = (1 << 10 + (head[5] >> 3)) // 8 * (8 + (head[5] & 7))
        at += 1
    width = (single, 2, 4, 8)[flags >> 6]
    require(width, rule_header, "zstd frame does not record its content size")
    require(len(head) >= at + width, rule_end, "ends inside the zstd header")
    recorded = int.from_bytes(head[at : at + width], "little") + (256 if width == 2 else 0)
    require(recorded == content, rule_header, "zstd frame records %d bytes of content, not %d", recorded, content)
    require((recorded if single else window) <= 1 << 27, rule_header, "zstd window above 128 MiB")
    at += width
    last = False
    while not last:
        require(at + 3 <= size, rule_end, "zstd frame goes on behind its %d bytes", size)
        block = int.from_bytes(pread(start + at, 3), "little")
        last, kind = block & 1, block >> 1 & 3
        require(kind != 3, rule_header, "reserved zstd block type at byte %d", at)
        at += 3 + (1 if kind == 1 else block >> 3)
    require(at + 4 == size, rule_end, "zstd frame ends at byte %d of %d", at + 4, size)
    return int.from_bytes(pread(start + size - 4, 4), "little")


class Range:
    """A range of bytes as a file to read from."""

    def __init__(self, pread, start, size):
        self.pread, self.at, self.left = pread, start, size

    def read(self, n=-1):
        n = self.left if n < 0 else min(n, self.left, CHUNK)
        data = self.pread(self.at, n)
        self.at += n
        self.left -= n
        return data


class Content:
    """The content of one frame, in order, never more than asked for in memory."""

    def __init__(self, pread, start, size, rule):
        self.rule = rule
        self.stream = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(Range(pread, start, size))

    def read(self, n):
        parts = []
        while n:
            try:
                part = self.stream.read(min(n, CHUNK))
            except zstandard.ZstdError as e:
                raise Problem(self.rule, "does not decompress: %s" % e) from None
            require(part, self.rule, "content ends %d bytes early", n)
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def pieces(self, n):
        while n:
            part = self.read(min(n, CHUNK))
            n -= len(part)
            yield part

    def end(self):
        try:
            require(not self.stream.read(1), self.rule, "more content than recorded")
        except zstandard.ZstdError as e:
            raise Problem(self.rule, "does not decompress: %s" % e) from None


# ---- tar (3) ----


def tar_header(name, size):
    head = bytearray(512)
    head[: len(name)] = name
    head[100:156] = b"0000444\0" b"0000000\0" b"0000000\0" + b"%011o\0" % size + b"00000000000\0" + b" " * 8
    head[156:157] = b"0"
    head[257:265] = b"ustar\00000"
    head[329:345] = b"0000000\0" * 2
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def padding(size):
    return -size % 512


# ---- the sample list (5) ----


class ListReader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def varint(self):
        value = shift = 0
        while True:
            require(self.at < len(self.data), "list-varint", "sample list ends inside a number")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            require(value < 1 << 64, "list-varint", "number above 64 bits at byte %d of the list", self.at - 1)
            if byte < 128:
                require(
                    byte or not shift, "list-varint", "number not in shortest form at byte %d of the list", self.at - 1
                )
                return value
            shift += 7
            require(shift < 70, "list-varint", "number above 64 bits at byte %d of the list", self.at - 1)

    def bytes(self, n):
        require(n <= len(self.data) - self.at, "list-varint", "sample list ends inside a string")
        self.at += n
        return self.data[self.at - n : self.at]


def key_problem(key):
    if not 1 <= len(key) <= 72:
        return "has %d bytes" % len(key)
    if not KEY.fullmatch(key):
        return "has a forbidden byte or an empty component"
    return "has a component that starts with __" if any(c.startswith(b"__") for c in key.split(b"/")) else None


def field_problem(field):
    if not 1 <= len(field) <= 27:
        return "has %d bytes" % len(field)
    return None if FIELD.fullmatch(field) and not field.startswith(b"__") else "is against the rules"


def path_problem(path):
    if not 1 <= len(path) <= 65535:
        return "has %d bytes" % len(path)
    if b"\0" in path:
        return "has a zero byte"
    if path.startswith(b"/"):
        return "is absolute"
    return "has a component .." if b".." in path.split(b"/") else None


class Shard:
    """One shard. Opening it checks the tail (8, first table); check_frame checks a data frame."""

    def __init__(self, path):
        self.path, self.name = path, os.path.basename(path)
        self.fd = os.open(path, os.O_RDONLY)
        info = os.fstat(self.fd)
        self.size = info.st_size
        require(stat.S_ISREG(info.st_mode), "tail", "not a regular file")
        self.read_seek_table()
        self.read_index()
        for _ in self.samples():
            pass

    def close(self):
        os.close(self.fd)

    def pread(self, at, n):
        data = b""
        while len(data) < n:
            part = os.pread(self.fd, n - len(data), at + len(data))
            require(part, "tail", "file became shorter while it was read")
            data += part
        return data

    def sha256(self, start, size):
        h = hashlib.sha256()
        for at in range(start, start + size, CHUNK):
            h.update(self.pread(at, min(CHUNK, start + size - at)))
        return h.digest()

    def read_seek_table(self):
        require(self.size >= 17, "tail", "only %d bytes: cut off", self.size)
        n, descriptor, magic = struct.unpack("<IBI", self.pread(self.size - 9, 9))
        require(magic == 0x8F92EAB1, "tail", "no seek table at the end: cut off, or something was appended")
        require(descriptor == 0x80, "seek-descriptor", "seek table descriptor %02x", descriptor)
        table = 17 + 12 * n
        ok = 2 <= n <= 1 << 27 and table <= self.size
        require(ok, "seek-entries", "seek table of %d entries in a file of %d bytes", n, self.size)
        raw = self.pread(self.size - table, table)
        ok = struct.unpack_from("<II", raw) == (0x184D2A5E, table - 8)
        require(ok, "seek-header", "the seek table's beginning does not agree with its end")
        entries = list(struct.iter_unpack("<III", raw[8:-9]))
        total = sum(e[0] for e in entries) + table
        require(total == self.size, "seek-sum", "seek table adds up to %d bytes, file has %d", total, self.size)
        self.frames, at = [], 0  # (offset, bytes, content, checksum)
        for i, (size, content, checksum) in enumerate(entries[:-1]):
            ok = 0 < size <= 0x50000000 and 0 < content <= GIB and content % 512 == 0
            require(ok, "frame-size", "frame %d: %d bytes, %d of content", i, size, content)
            self.frames.append((at, size, content, checksum))
            at += size
        self.index_offset, self.index_bytes = at, entries[-1][0]
        ok = entries[-1][1:] == (0, EMPTY_XXH) and self.index_bytes >= 84
        require(ok, "index-entry", "seek table entry of the index is %d, %d, %08x", *entries[-1])

    def read_index(self):
        head = struct.unpack("<II8sIIIIQII16s", self.pread(self.index_offset, 64))
        magic, size, ours, version, flags, frames, samples, tar, packed, unpacked, digest = head
        require(
            magic == 0x184D2A5B and size + 8 == self.index_bytes, "index-header", "no index frame where one should be"
        )
        require(ours == b"SPKINDEX", "index-magic", "the index does not begin with SPKINDEX")
        require(version == 1 and flags == 0, "index-version", "index version %d, flags %x: unsupported", version, flags)
        require(
            frames == len(self.frames), "index-frames", "index has %d frames, seek table %d", frames, len(self.frames)
        )
        ok = 56 + 20 * frames + packed == size and unpacked <= GIB and packed <= 0x50000000
        text = "index of %d bytes with %d frames and a list of %d bytes, %d unpacked"
        require(ok, "list-size", text, size, frames, packed, unpacked)
        self.tar_bytes = sum(f[2] for f in self.frames)
        require(tar == self.tar_bytes, "index-tar", "index says %d tar bytes, frames have %d", tar, self.tar_bytes)
        ok = self.sha256(self.index_offset + 64, size - 56)[:16] == digest
        require(ok, "index-digest", "SHA-256 of frame table and sample list is not that of the index")
        self.counts = list(struct.iter_unpack("<I16s", self.pread(self.index_offset + 64, 20 * frames)))
        ok = samples and all(c[0] for c in self.counts) and sum(c[0] for c in self.counts) == samples
        text = "index says %d samples, its frames add up to %d"
        require(ok, "index-samples", text, samples, sum(c[0] for c in self.counts))
        self.samples_n = samples
        start = self.index_offset + 64 + 20 * frames
        walk_frame(self.pread, start, packed, unpacked, "list-frame", "list-frame")
        content = Content(self.pread, start, packed, "list-frame")
        self.list = content.read(unpacked)
        content.end()

    def samples(self):
        """Parses and checks the sample list; yields each Sample."""
        r = ListReader(self.list)
        table = []
        n = r.varint()
        require(n, "field-table", "no fields")
        seen = set()
        for _ in range(n):
            field, encoding = r.bytes(r.varint()), r.bytes(r.varint())
            require(not field_problem(field), "field-table", "field '%s' %s", show(field), field_problem(field))
            require(ENCODING.fullmatch(encoding), "field-table", "encoding '%s' is against the rules", show(encoding))
            require((field, encoding) not in seen, "field-table", "field '%s' comes twice", show(field))
            seen.add((field, encoding))
            table.append((field, encoding))
        keys = set()
        for f, (_, _, content, _) in enumerate(self.frames):
            at, end = 0, content - (1024 if f == len(self.frames) - 1 else 0)
            for _ in range(self.counts[f][0]):
                key, members, at = self.sample(r, table, f, at, end)
                require(key.lower() not in keys, "key-twice", "key '%s' comes twice", show(key))
                keys.add(key.lower())
                yield Sample(key, f, members)
            require(at == end, "fill", "frame %d: members take %d bytes of %d", f, at, end)
        require(r.at == len(self.list), "list-end", "%d bytes behind the last sample", len(self.list) - r.at)

    @staticmethod
    def sample(r, table, f, at, end):
        key = r.bytes(r.varint())
        require(not key_problem(key), "key", "key '%s' %s", show(key), key_problem(key))
        n = r.varint()
        require(1 <= n <= 1024, "members", "sample '%s' has %d members", show(key), n)
        members = []
        for _ in range(n):
            number, size = r.varint(), r.varint()
            require(number < len(table), "members", "sample '%s': field number %d of %d", show(key), number, len(table))
            field, encoding = table[number]
            original = size if encoding == b"identity" else r.varint()
            require(encoding == b"identity" or original <= GIB, "original", "sample '%s': stands for %d bytes", show(key), original)
            origin = r.varint()
            ok = not members or members[-1].field < field
            require(ok, "members", "sample '%s': field '%s' out of order", show(key), show(field))
            path = None if origin == 0 else key + b"." + field if origin == 1 else r.bytes(origin - 1)
            ok = path is None or not path_problem(path)
            text = "sample '%s': original path '%s' %s"
            require(ok, "path", text, show(key), show(path or b"")[:200], path_problem(path or b"x"))
            ok = at + 512 + size + padding(size) <= end
            require(ok, "fill", "frame %d: sample '%s' goes on behind its end", f, show(key))
            members.append(Member(field, encoding, path, at + 512, size, original))
            at += 512 + size + padding(size)
        return key, members, at

    def read_frame(self, f, samples, write=None):
        """Reads data frame f and checks it (8, second table). write: called with sample, member and data, in pieces."""
        start, size, content, checksum = self.frames[f]
        digest = self.sha256(start, size)[:16]
        require(digest == self.counts[f][1], "digest", "frame %d: SHA-256 is not that of the index", f)
        try:
            recorded = walk_frame(self.pread, start, size, content, "frame-header", "frame-end")
            data = Content(self.pread, start, size, "frame-data")
            for s in samples:
                for m in s.members:
                    name = s.key + b"." + m.field + (b"" if m.encoding == b"identity" else b"." + m.encoding)
                    require(len(name) <= 100, "tar-header", "member name '%s' is too long", show(name))
                    ok = data.read(512) == tar_header(name, m.size)
                    require(ok, "tar-header", "tar header of '%s' differs", show(name))
                    for piece in data.pieces(m.size):
                        if write:
                            write(s, m, piece)
                    require(
                        not any(data.read(padding(m.size))), "tar-padding", "padding of '%s' is not zero", show(name)
                    )
            if f == len(self.frames) - 1:
                require(not any(data.read(1024)), "tar-end", "the tar end marker is not zero")
            data.end()
            require(recorded == checksum, "checksum", "checksum %08x, seek table says %08x", recorded, checksum)
        except Problem as p:
            raise Problem(p.rule, "frame %d: %s" % (f, p)) from None

    def by_frame(self):
        """Yields (frame number, its samples)."""
        group = []
        for s in self.samples():
            if group and group[0].frame != s.frame:
                yield group[0].frame, group
                group = []
            group.append(s)
        yield group[0].frame, group


# ---- datasets ----


def is_text(value):
    """Whether no string in a JSON value has U+0000 or an unpaired surrogate."""
    if isinstance(value, str):
        return not re.search("[\0\ud800-\udfff]", value)
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    return not isinstance(value, list) or all(map(is_text, value))


def no_constant(name):
    raise ValueError("%s is no JSON" % name)  # NaN and the like, which Python's parser accepts


def unique_members(pairs):
    require(len({k for k, _ in pairs}) == len(pairs), "manifest-json", "an object has a member twice")
    return dict(pairs)


class Dataset:
    """Opening checks manifest and table (D8, first table)."""

    def __init__(self, path):
        self.file = os.path.join(path, "manifest.json") if os.path.isdir(path) else path
        self.folder = os.path.dirname(self.file)
        with open(self.file, "rb") as f:
            raw = f.read((64 << 20) + 1)
        require(len(raw) <= 64 << 20, "manifest-json", "manifest above 64 MiB")
        try:
            self.m = json.loads(raw.decode("utf-8"), object_pairs_hook=unique_members, parse_constant=no_constant)
        except (ValueError, RecursionError) as e:
            raise Problem("manifest-json", "manifest is no JSON: %s" % e) from None
        require(isinstance(self.m, dict), "manifest-json", "manifest is not an object")
        require(is_text(self.m), "manifest-json", "manifest has a string that is no text")
        self.check_manifest()
        self.read_table()

    def get(self, where, name, kind, check=None):
        value = where.get(name)
        ok = isinstance(value, kind) and not isinstance(value, bool) and (check is None or check(value))
        ok = ok and (kind is not int or 0 <= value <= MAX_NUMBER) and not (kind is str and CONTROL.search(value))
        require(ok, "manifest-member", "manifest: bad or missing '%s'", name)
        return value

    def check_manifest(self):
        m, get = self.m, self.get
        require(m.get("format") == "shardpack", "manifest-format", "manifest: format is not shardpack")
        version = m.get("version")
        ok = isinstance(version, str) and re.fullmatch(r"1\.(0|[1-9][0-9]*)", version)
        require(ok, "manifest-version", "manifest: version %.40r: unsupported" % (version,))
        for name in ("samples", "shards", "frames", "bytes", "tar_bytes", "payload_bytes"):
            get(m, name, int)
        get(m, "shards", int, lambda v: v <= 1 << 24)
        get(m, "fingerprint", str, HEX64.fullmatch)
        get(m, "order", str, lambda v: v in ("shuffled", "stored"))
        table = get(m, "table", dict)
        get(table, "bytes", int)
        get(table, "sha256", str, HEX64.fullmatch)
        name = get(table, "file", str)
        require(name == "shards-%s.tsv" % m["fingerprint"][:8], "table-name", "manifest: table name %.80r", name)
        names = []
        for field in get(m, "fields", list):
            require(isinstance(field, dict), "manifest-member", "manifest: bad 'fields'")
            names.append(get(field, "name", str, lambda v: not field_problem(v.encode("utf-8", "replace"))))
            get(field, "kind", str)
            samples = get(field, "samples", int)
            if "stored" in field:
                stored = get(field, "stored", list, lambda v: all(isinstance(x, dict) for x in v))
                sums = [[get(x, k, int) for k in ("samples", "bytes", "original_bytes")] for x in stored]
                used = [get(x, "encoding", str, lambda v: ENCODING.fullmatch(v.encode("utf-8", "replace"))) for x in stored]
                ok = used == sorted(set(used)) and sum(x[0] for x in sums) == samples
                require(ok, "manifest-member", "manifest: bad 'stored' of field '%s'", field["name"])
        require(names == sorted(set(names)), "manifest-member", "manifest: field names not ascending")
        classes = get(m, "classes", list)
        ok = all(isinstance(c, str) and not CONTROL.search(c) for c in classes)
        require(ok, "manifest-member", "manifest: bad 'classes'")
        mirrors = get(m, "mirrors", list) if "mirrors" in m else []
        ok = len(mirrors) <= 16 and all(isinstance(u, str) and URL.fullmatch(u) and not CONTROL.search(u) for u in mirrors)
        require(ok, "manifest-member", "manifest: bad 'mirrors'")
        if "pack" in m:
            get(m, "pack", dict)
        if "images" in m:
            images = get(m, "images", dict)
            count = get(images, "count", int, lambda v: v > 0)
            kinds = sum(get(images, k, int) for k in ("jpeg", "png", "other"))
            for side in ("width", "height"):
                for k in ("min", "max", "sum"):
                    get(get(images, side, dict), k, int)
            sides = get(
                images, "longer_side", list, lambda v: len(v) == 18 and all(type(x) is int and x >= 0 for x in v)
            )
            require(kinds == count == sum(sides), "manifest-member", "manifest: counts of 'images' do not add up")

    def rows(self):
        """Yields the rows of the table, streaming."""
        paths = set()
        with open(os.path.join(self.folder, self.m["table"]["file"]), "rb") as f:
            require(f.readline(200) == TABLE_HEAD.encode() + b"\n", "table-line", "table: line 1 is not the header")
            for number, line in enumerate(iter(lambda: f.readline(1000), b""), 2):
                cells = line.decode("latin-1").split("\t")
                require(line.endswith(b"\n") and len(cells) == 7, "table-line", "table: line %d is not a row", number)
                cells[6] = cells[6][:-1]
                path = cells[0]
                safe = re.fullmatch(r"[A-Za-z0-9._/-]{1,255}", path) and not {"", ".", ".."} & set(path.split("/"))
                require(safe, "table-path", "table: line %d: path %.80r", number, path)
                require(path not in paths, "table-path", "table: line %d: path %.80r again", number, path)
                paths.add(path)
                ok = all(re.fullmatch(r"0|[1-9][0-9]{0,15}", c) and int(c) <= MAX_NUMBER for c in cells[1:6])
                ok = ok and HEX64.fullmatch(cells[6])
                require(ok, "table-line", "table: line %d: bad number or digest", number)
                row = Row(path, *map(int, cells[1:6]), cells[6])
                ok = 0 < row.samples < 1 << 32 and 0 < row.frames < 1 << 27 and 0 < row.index_offset < row.bytes
                require(ok, "table-line", "table: line %d: numbers out of range", number)
                yield row

    def read_table(self):
        table, h, size = self.m["table"], hashlib.sha256(), 0
        try:
            with open(os.path.join(self.folder, table["file"]), "rb") as f:
                for part in iter(lambda: f.read(CHUNK), b""):
                    h.update(part)
                    size += len(part)
        except FileNotFoundError:
            raise Problem("table-digest", "table '%s' is missing" % table["file"]) from None
        ok = size == table["bytes"] and h.hexdigest() == table["sha256"]
        require(ok, "table-digest", "table '%s' is not the one that the manifest names", table["file"])
        sums, fingerprint = dict.fromkeys(("shards", "samples", "frames", "bytes", "tar_bytes"), 0), hashlib.sha256()
        for row in self.rows():
            sums["shards"] += 1
            fingerprint.update(bytes.fromhex(row.tail_sha256))
            for name in ("samples", "frames", "bytes", "tar_bytes"):
                sums[name] += getattr(row, name)
        for name, total in sums.items():
            require(total == self.m[name], "table-sum", "manifest says %d %s, the table %d", self.m[name], name, total)
        require(fingerprint.hexdigest() == self.m["fingerprint"], "fingerprint", "fingerprint is not that of the table")

    def open_shard(self, row):
        path = os.path.join(self.folder, row.path)
        require(os.path.isfile(path), "shard-missing", "no such file")
        size = os.path.getsize(path)
        require(size == row.bytes, "shard-size", "%d bytes, the table says %d", size, row.bytes)
        with open(path, "rb") as f:
            f.seek(row.index_offset)
            h = hashlib.sha256()
            for part in iter(lambda: f.read(CHUNK), b""):
                h.update(part)
        require(h.hexdigest() == row.tail_sha256, "tail-digest", "SHA-256 of the tail is not that of the table")
        shard = Shard(path)
        found = (shard.samples_n, len(shard.frames), shard.tar_bytes, shard.index_offset)
        wanted = (row.samples, row.frames, row.tar_bytes, row.index_offset)
        ok = found == wanted
        require(ok, "shard-counts", "samples, frames, tar bytes, index offset are %s, the table says %s", found, wanted)
        return shard

    def shards(self):
        for row in self.rows():
            shard = self.open_shard(row)
            yield shard
            shard.close()


def original_bytes(shard, s, m, data):
    """The field's bytes from the stored ones (5, encodings)."""
    if m.encoding == b"identity":
        return data
    require(m.encoding in RESTORABLE, "blob", "encoding '%s': unsupported", show(m.encoding))
    where = "sample '%s': field '%s'" % (show(s.key), show(m.field))
    try:
        data = jpeg_coefficients.restore(data)
    except jpeg_coefficients.Bad as e:
        raise Problem("blob", "%s: %s" % (where, e)) from None
    require(len(data) == m.original, "blob", "%s: %d bytes, the index says %d", where, len(data), m.original)
    return data


def check_frames(shard, report):
    for f, samples in shard.by_frame():
        blobs = {}

        def keep(s, m, piece, blobs=blobs):
            if m.encoding != b"identity" and m.encoding in RESTORABLE:
                blobs.setdefault((s.key, m), (s, []))[1].append(piece)

        try:
            shard.read_frame(f, samples, keep)
        except Problem as p:
            report(shard.name, p)
            continue
        for (_, m), (s, pieces) in blobs.items():
            try:
                original_bytes(shard, s, m, b"".join(pieces))
            except Problem as p:
                report(shard.name, p)


def check(path, report):
    """Reports every problem of a dataset or shard by report(name, Problem)."""
    if not is_dataset(path):
        try:
            check_frames(Shard(path), report)
        except Problem as p:
            report(os.path.basename(path), p)
        return
    try:
        dataset = Dataset(path)
    except Problem as p:
        report("manifest.json", p)
        return
    keys, fields, stored, payload, whole = set(), {}, {}, 0, True
    for row in dataset.rows():
        name = os.path.basename(row.path)
        try:
            shard = dataset.open_shard(row)
        except Problem as p:
            report(name, p)
            whole = False
            continue
        check_frames(shard, report)
        for s in shard.samples():
            if s.key.lower() in keys:
                report(name, Problem("key-twice", "key '%s' is in an earlier shard too" % show(s.key)))
            keys.add(s.key.lower())
            for member in s.members:
                fields[member.field] = fields.get(member.field, 0) + 1
                payload += member.original if member.path is not None else 0
                sums = stored.setdefault(member.field, {}).setdefault(member.encoding.decode(), [0, 0, 0])
                for i, n in enumerate((1, member.size, member.original)):
                    sums[i] += n
        shard.close()
    if whole and fields != {f["name"].encode(): f["samples"] for f in dataset.m["fields"]}:
        report("manifest.json", Problem("fields", "'fields' does not agree with the shards"))
    for f in dataset.m["fields"] if whole else ():
        have = stored.get(f["name"].encode(), {})
        want = {x["encoding"]: [x["samples"], x["bytes"], x["original_bytes"]] for x in f.get("stored", ())}
        if have != want if want else set(have) != {"identity"}:
            report("manifest.json", Problem("fields", "'stored' of '%s' does not agree with the shards" % f["name"]))
    if whole and payload != dataset.m["payload_bytes"]:
        report(
            "manifest.json",
            Problem("payload", "payload_bytes is %d, shards have %d" % (dataset.m["payload_bytes"], payload)),
        )


def is_dataset(path):
    return os.path.isdir(path) or path.endswith(".json")


def shards_of(path):
    return Dataset(path).shards() if is_dataset(path) else iter([Shard(path)])


# ---- command ----


def read_paths(arguments):
    data = open(arguments[0], "rb").read() if arguments else sys.stdin.buffer.read()
    return [p for p in data.split(b"\0") if p]


def cat(path, name):
    key, _, field = os.fsencode(name).partition(b".")
    for shard in shards_of(path):
        for f, samples in shard.by_frame():
            for s in samples:
                for m in s.members:
                    if (s.key, m.field) == (key, field):
                        parts = []  # nothing is written before the frame has proved to be sound
                        shard.read_frame(f, samples, lambda t, n, piece: parts.append(piece) if (t, n) == (s, m) else 0)
                        data = original_bytes(shard, s, m, b"".join(parts))
                        if not RESTORABLE[m.encoding]:
                            print("%s: not the file that was packed, but one with its pixels" % name, file=sys.stderr)
                        sys.stdout.buffer.write(data)
                        return
    sys.exit("%s: no such member: %s" % (path, name))


def main(arguments):
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command == "check" and len(rest) == 1:
        problems = []

        def report(name, p):
            problems.append(p)
            print("%s: %s (%s)" % (name, p, p.rule))

        check(rest[0], report)
        return 1 if problems else 0
    if command == "list" and len(rest) == 1:
        for shard in shards_of(rest[0]):
            for s in shard.samples():
                print(s.key.decode(), *("%s=%d" % (m.field.decode(), m.original) for m in s.members), sep="\t")
    elif command == "cat" and len(rest) == 2:
        cat(*rest)
    elif command == "keys-of":
        import keys

        first = rest[:2] == ["--stem", "first"]
        for key, field, path in keys.keys_of(read_paths(rest[2:] if first else rest), first):
            print(key, field, show(path), sep="\t")
    elif command == "split" and rest:
        import keys

        splits = [(n, float(s)) for n, s in (item.split("=") for item in rest[0].split(","))]
        for path in read_paths(rest[1:]):
            position = keys.split_position(keys.split_stem(path)[0])
            print(keys.choose_split(position, splits), "%.17g" % position, show(path), sep="\t")
    elif command in ("-h", "--help", "help"):
        print(__doc__.strip())
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:
        os._exit(1)
    except (Problem, OSError) as error:
        sys.exit("%s" % error)
