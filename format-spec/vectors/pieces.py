"""The pieces of test vectors: XXH64, hand-made zstd frames, tar headers, whole shards. Standard library only.

Written from shard.md. The zstd frames are put together from raw and RLE blocks (RFC 8878 section 3.1.1.2), so that their
bytes depend on no compressor and can be read in a hex dump.
"""

import hashlib
import os
import struct

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
EMPTY_XXH = 0x51D8E999
EXPECTED = []  # (file, "ok" or the rule of section 8, what it is)


def xxh64(data):
    """XXH64 with seed 0, from the algorithm's description."""

    def rotl(x, r):
        return (x << r | x >> 64 - r) & MASK

    def step(acc, lane):
        return rotl(acc + lane * P2 & MASK, 31) * P1 & MASK

    at = 0
    if len(data) >= 32:
        acc = [P1 + P2 & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= len(data):
            acc = [step(a, lane) for a, lane in zip(acc, struct.unpack_from("<4Q", data, at))]
            at += 32
        h = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & MASK
        for a in acc:
            h = ((h ^ step(0, a)) * P1 + P4) & MASK
    else:
        h = P5
    h = h + len(data) & MASK
    while at + 8 <= len(data):
        h = (rotl(h ^ step(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= len(data):
        h = (rotl(h ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        h = rotl(h ^ byte * P5 & MASK, 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


def low32(data):
    return xxh64(data) & 0xFFFFFFFF


# ---- pieces of a shard; the keyword arguments of each break it in one way ----


def blocks(data):
    """Runs of 16 or more equal bytes as RLE blocks, the rest as raw blocks."""
    runs = []  # [is_rle, bytes]
    at = 0
    while at < len(data):
        end = at
        while end < len(data) and data[end] == data[at]:
            end += 1
        if end - at >= 16:
            runs.append([True, data[at:end]])
        elif runs and not runs[-1][0]:
            runs[-1][1] += data[at:end]
        else:
            runs.append([False, data[at:end]])
        at = end
    out = b""
    for i, (rle, run) in enumerate(runs):
        last = i == len(runs) - 1
        out += (last | rle << 1 | len(run) << 3).to_bytes(3, "little") + (run[:1] if rle else run)
    return out


def frame(data, flags=0xA4, size=None, window=b"", checksum=None, dictionary=b""):
    """flags A4: content size in 4 bytes, single segment, checksum."""
    recorded = struct.pack("<I", len(data) if size is None else size) if flags & 0xC0 else b""
    tail = struct.pack("<I", low32(data) if checksum is None else checksum) if flags & 4 else b""
    return b"\x28\xb5\x2f\xfd" + bytes([flags]) + window + dictionary + recorded + blocks(data) + tail


def header(name, size, mode=b"0000444\0", kind=b"0", checksum=None):
    head = bytearray(512)
    head[: len(name)] = name
    head[100:108] = mode
    head[108:124] = b"0000000\0" * 2
    head[124:136] = b"%011o\0" % size
    head[136:148] = b"00000000000\0"
    head[148:156] = b" " * 8
    head[156:157] = kind
    head[257:265] = b"ustar\00000"
    head[329:345] = b"0000000\0" * 2
    head[148:156] = b"%06o\0 " % (sum(head) if checksum is None else checksum)
    return bytes(head)


def pad(data):
    return data + bytes(-len(data) % 512)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def text(raw):
    return varint(len(raw)) + raw


class Build:
    """A shard. samples: per frame a list of (key, [(field, data, path)]); path None: made, b"=": the member's name."""

    def __init__(self, frames, **change):
        self.change = change
        stored = {f: b"" if e == b"identity" else b"." + e for f, e in change.get("pairs") or ()}
        self.tars = [
            b"".join(
                header(k + b"." + f + stored.get(f, b""), len(d)) + pad(d) for k, members in samples for f, d, _ in members
            )
            for samples in frames
        ]
        self.tars[-1] += bytes(1024)
        self.counts = [len(samples) for samples in frames]
        pairs = change.get("pairs") or list(
            dict.fromkeys((f, b"identity") for s in frames for _, ms in s for f, _, _ in ms)
        )
        numbers = {f: i for i, (f, _) in enumerate(pairs)}
        self.list = varint(len(pairs)) + b"".join(text(f) + text(e) for f, e in pairs)
        for key, members in (sample for samples in frames for sample in samples):
            self.list += text(key) + varint(len(members))
            for f, d, path in members:
                origin = b"\0" if path is None else b"\1" if path == b"=" else varint(len(path) + 1) + path
                self.list += varint(numbers[f]) + varint(len(d))
                if pairs[numbers[f]][1] != b"identity":
                    self.list += varint(change.get("original", 1000))
                self.list += origin
        self.frames = [frame(t) for t in self.tars]

    def index(self, **change):
        get = {**self.change, **change}.get
        samples = self.list if get("list") is None else get("list")
        packed = get("packed") or frame(samples)
        counts = get("counts") or self.counts
        digests = get("digests") or [hashlib.sha256(f).digest()[:16] for f in self.frames]
        per_frame = b"".join(struct.pack("<I", n) + d for n, d in zip(counts, digests))
        rest = per_frame + packed + get("more", b"")
        body = (
            struct.pack(
                "<8sIIIIQII16s",
                get("magic", b"SPKINDEX"),
                get("version", 1),
                get("flags", 0),
                get("f", len(self.frames)),
                get("n", sum(counts)),
                get("tar", sum(map(len, self.tars))),
                get("l", len(packed)),
                get("u", len(samples)),
                get("digest") or hashlib.sha256(rest).digest()[:16],
            )
            + rest
        )
        return struct.pack("<II", get("skip", 0x184D2A5B), len(body) + get("extra", 0)) + body

    def entries(self, index):
        rows = [[len(f), len(t), low32(t)] for f, t in zip(self.frames, self.tars)]
        return rows + [[len(index), 0, EMPTY_XXH]]

    def bytes(self, edit=None, descriptor=0x80, magic=0x8F92EAB1, count=None, size=None, **change):
        """edit: called with the list of seek table entries."""
        index = self.index(**change)
        rows = self.entries(index)
        if edit:
            edit(rows)
        table = b"".join(struct.pack("<III", *r) for r in rows)
        n = len(rows) if count is None else count
        size = len(table) + 9 if size is None else size
        return (
            b"".join(self.frames)
            + index
            + struct.pack("<II", 0x184D2A5E, size)
            + table
            + struct.pack("<IBI", n, descriptor, magic)
        )


ONE = [[(b"a", [(b"txt", b"hello", b"=")])]]
TWO = [
    [
        (b"cat/7", [(b"cls", b"0", None), (b"jpg", b"\xff\xd8 no real picture \xff\xd9", b"cat/7.JPEG")]),
        (b"cat/8", [(b"cls", b"0", None), (b"jpg", bytes(range(256)) * 2, b"=")]),
    ],
    [(b"dog/n__1-2e36458607e71107", [(b"cls", b"1", None), (b"seg.png", b"", b"dog/n\xe9\n1.seg.png")])],
]
PAIR = [[(b"a", [(b"txt", b"hello", b"=")])], [(b"b", [(b"txt", b"world", b"=")])]]


def jpeg_vector():
    """The blob of a small JPEG file, and the file's size."""
    name = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "jpeg-vectors", "good-8")
    with open(name + ".blob", "rb") as blob:
        return blob.read(), os.path.getsize(name + ".jpg")


JPEG = jpeg_vector()


def coefficients(blob=JPEG[0], encoding=b"jpeg_coefficients", original=JPEG[1]):
    """A shard with one JPEG file, stored in an encoding."""
    return Build([[(b"a", [(b"jpg", blob, b"=")])]], pairs=[(b"jpg", encoding)], original=original)


def write(folder, name, data):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def shard(folder, name, data, rule, what):
    name += ".tar.zst"
    write(folder, name, data)
    EXPECTED.append((name, rule, what))


def flip(data, at, bit=1):
    return data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
