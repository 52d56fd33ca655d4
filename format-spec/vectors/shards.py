"""The vectors that are shards: shard.md."""

import hashlib
import struct

from pieces import JPEG, ONE, PAIR, TWO, Build, coefficients, flip, frame, header, low32, shard, varint


def good_shards(out):
    shard(out, "good-one", Build(ONE).bytes(), "ok", "one frame, one sample, one member; explained in README.md")
    shard(
        out, "good-two", Build(TWO).bytes(), "ok", "two frames; made members, original paths, data of 0 and 512 bytes"
    )
    b = Build(ONE)
    b.frames = [frame(b.tars[0], flags=0x84, window=b"\x08")]
    shard(out, "good-window", b.bytes(), "ok", "a data frame with a window of 2 KiB instead of a single segment")
    long = [[(b"k" * 72, [(b"f" * 27, b"", b"=")]), (b"Up/_x-Y", [(b"a_0.b", b"x" * 513, b"\x01" * 300)])]]
    shard(out, "good-long", Build(long).bytes(), "ok", "a member name of 100 bytes, an original path of 300")
    pairs = [(b"txt", b"later-1")]
    shard(out, "good-encoding", Build(ONE, pairs=pairs).bytes(), "ok", "an encoding that nobody knows is well-formed")


def encodings(out):
    blob, size = JPEG
    for name, encoding, what in (
        ("jpeg", b"jpeg_coefficients", "a JPEG file as its coefficients"),
        ("pixels", b"jpeg_pixels", "coefficients that stand for another file than the one packed"),
    ):
        shard(out, "good-encoding-" + name, coefficients(encoding=encoding).bytes(), "ok", what)
    shard(out, "bad-encoding-size", coefficients(original=size + 1).bytes(), "blob", "original size too large by one")
    shard(out, "bad-encoding-huge", coefficients(original=(1 << 30) + 1).bytes(), "original", "original size 2^30 + 1")
    shard(out, "bad-encoding-blob", coefficients(flip(blob, 0)).bytes(), "blob", "a blob that is no zstd frame")
    shard(out, "bad-encoding-cut", coefficients(blob[:-1]).bytes(), "blob", "a blob without its last byte")


def bad_cuts(out):
    one, two = Build(ONE), Build(PAIR)
    good, both = one.bytes(), two.bytes()
    first = len(two.frames[0])
    data = sum(map(len, two.frames))
    for name, cut, what in (
        ("frame-border", first, "cut at the end of data frame 0"),
        ("in-frame", first // 2, "cut inside a frame"),
        ("before-tail", data, "cut before the index"),
        ("in-index", data + 30, "cut inside the index"),
        ("in-table", len(both) - 12, "cut inside the seek table"),
        ("last-byte", len(both) - 1, "last byte cut off"),
        ("empty", 0, "no bytes at all"),
    ):
        shard(out, "bad-cut-" + name, both[:cut], "tail", what)
    shard(out, "bad-zeros-after", good + bytes(512), "tail", "512 zero bytes behind the seek table")
    shard(out, "bad-byte-after", good + b"\n", "tail", "a line feed behind the seek table")
    shard(out, "bad-two-shards", good + good, "seek-sum", "two shards, one after the other")


def changed(at, column, value):
    """An edit of one number in a seek table."""

    def edit(rows):
        rows[at][column] = value

    return edit


def bad_seek_tables(out):
    one, two = Build(ONE), Build(PAIR)
    size, empty = len(one.frames[0]), bytes.fromhex("5e2a4d18090000000000000080b1ea928f")

    def wrap(rows):  # adds 2^32 to the sum
        rows[0][0] = 0x50000000
        rows[1][0] = 0xB0000000 + rows[1][0] + len(two.frames[0]) & 0xFFFFFFFF

    for name, data, rule, what in (
        ("seek-magic", one.bytes(magic=0x8F92EAB0), "tail", "seek table magic with a flipped bit"),
        ("no-checksums", one.bytes(descriptor=0), "seek-descriptor", "seek table says it has no checksums"),
        ("reserved-bit", one.bytes(descriptor=0x84), "seek-descriptor", "reserved bit of the descriptor set"),
        ("unused-bit", one.bytes(descriptor=0x81), "seek-descriptor", "unused bit of the descriptor set"),
        ("entries-2e27", one.bytes(count=1 << 27), "seek-entries", "2^27 entries in a tiny file"),
        ("entries-wrap", one.bytes(count=2 + (1 << 30)), "seek-entries", "12 n wraps around 2^32 to the true size"),
        ("entries-0", one.frames[0] + one.index() + empty, "seek-entries", "a seek table without entries"),
        ("table-size", one.bytes(size=34), "seek-header", "size in the table's header is one too large"),
        ("sum-short", one.bytes(edit=changed(0, 0, size - 1)), "seek-sum", "sizes add up to one byte less"),
        ("sum-wrap", two.bytes(edit=wrap), "seek-sum", "sizes add up to the file's size plus 2^32"),
        ("content-odd", one.bytes(edit=changed(0, 1, 2047)), "frame-size", "content is no multiple of 512"),
        ("content-large", one.bytes(edit=changed(0, 1, (1 << 30) + 512)), "frame-size", "content above 1 GiB"),
        ("content-0", one.bytes(edit=changed(0, 1, 0)), "frame-size", "a data frame without content"),
        ("index-content", one.bytes(edit=changed(1, 1, 512)), "index-entry", "the index's entry has content"),
        ("index-checksum", one.bytes(edit=changed(1, 2, 0)), "index-entry", "the index's entry has checksum 0"),
    ):
        shard(out, "bad-" + name, data, rule, what)


def bad_index(out):
    one, two = Build(ONE), Build(PAIR)
    for name, data, rule, what in (
        ("skip-magic", one.bytes(skip=0x184D2A5A), "index-header", "another skippable frame in the index's place"),
        ("size", one.bytes(extra=1), "index-header", "size of the index frame is not that of its entry"),
        ("magic", one.bytes().replace(b"SPKINDEX", b"SPKINDEY"), "index-magic", "SPKINDEY"),
        ("version", one.bytes(version=2), "index-version", "version 2"),
        ("flags", one.bytes(flags=1), "index-version", "a flag set"),
        ("frames", one.bytes(f=2), "index-frames", "says two frames, there is one"),
        ("frames-0", one.bytes(f=0), "index-frames", "says no frames"),
        ("samples", one.bytes(n=2), "index-samples", "says two samples, the frame has one"),
        ("samples-0", one.bytes(counts=[0]), "index-samples", "no samples"),
        (
            "samples-huge",
            one.bytes(n=0xFFFFFFFF, counts=[0xFFFFFFFF]),
            "list-varint",
            "2^32 - 1 samples, the list has one",
        ),
        ("frame-without", two.bytes(counts=[2, 0]), "index-samples", "a frame without samples"),
        ("tar-bytes", one.bytes(tar=2560), "index-tar", "another number of tar bytes than the frames"),
        ("digest", one.bytes(digest=bytes(16)), "index-digest", "index digest of zeros"),
        ("list-size", one.bytes(l=20), "list-size", "size of the list does not fit"),
        ("list-more", one.bytes(more=b"\0"), "list-size", "a byte behind the list's frame"),
        ("list-bomb", one.bytes(u=(1 << 30) + 1), "list-size", "list of more than 1 GiB"),
        ("list-content", one.bytes(u=len(one.list) + 1), "list-frame", "list's frame has another content size"),
        (
            "list-checksum",
            one.bytes(packed=frame(one.list, checksum=1)),
            "list-frame",
            "list's frame has a wrong checksum",
        ),
        ("list-plain", one.bytes(packed=frame(one.list, flags=0xA0)), "list-frame", "list's frame has no checksum"),
        ("list-two", one.bytes(packed=frame(one.list) + frame(b"x")), "list-frame", "two frames in the list's place"),
        ("list-no-frame", one.bytes(packed=one.list), "list-frame", "the list is not compressed"),
    ):
        shard(out, "bad-index-" + name, data, rule, what)


def bad_list(out):
    """Shards whose list alone is wrong; tar and frames fit what the list says as far as that can be."""
    one = Build(ONE)
    table, sample = b"\1\3txt\x08identity", b"\1a\1\0\5\1"
    for name, data, rule, what in (
        ("cut", table + sample[:-1], "list-varint", "list ends inside the last member"),
        ("string-cut", table + b"\x7fa\1\0\5\1", "list-varint", "a key reaches beyond the list"),
        ("long-varint", table + b"\1a\1\0\x85\0\1", "list-varint", "5 as two bytes"),
        ("big-varint", table + b"\1a\1\0" + b"\xff" * 9 + b"\2\1", "list-varint", "a number above 64 bits"),
        ("endless-varint", table + b"\1a\1\0" + b"\x80" * 12 + b"\1\1", "list-varint", "a number of 13 bytes"),
        ("more", table + sample + b"\0", "list-end", "a byte behind the last sample"),
        ("no-fields", b"\0" + sample, "field-table", "no fields"),
        (
            "fields-huge",
            b"\xff\xff\xff\xff\x0f\3txt\x08identity" + sample,
            "list-varint field-table",
            "2^32 - 1 fields in a short list",
        ),
        ("field-twice", b"\2" + table[1:] + table[1:] + sample, "field-table", "the same pair twice"),
        ("field-upper", table.replace(b"txt", b"tXt") + sample, "field-table", "a field with an upper-case letter"),
        ("field-dots", table.replace(b"\3txt", b"\4t..t") + sample, "field-table", "a field with two dots in a row"),
        (
            "field-underscores",
            table.replace(b"\3txt", b"\5__txt") + sample,
            "field-table",
            "a field that starts with __",
        ),
        ("field-long", table.replace(b"\3txt", b"\x1c" + b"t" * 28) + sample, "field-table", "a field of 28 bytes"),
        ("field-empty", table.replace(b"\3txt", b"\0") + sample, "field-table", "an empty field name"),
        ("encoding-empty", b"\1\3txt\0" + sample, "field-table", "an empty encoding name"),
        ("encoding-space", b"\1\3txt\3a b" + sample, "field-table", "an encoding name with a space"),
        ("members-0", table + b"\1a\0", "members", "a sample without members"),
        ("members-1025", table + b"\1a" + varint(1025) + b"\0\0\1" * 1025, "members fill", "a sample of 1025 members"),
        ("field-number", table + b"\1a\1\1\5\1", "members", "a field number outside the table"),
        ("path-absolute", table + b"\1a\1\0\5\x0b/etc/a.txt", "path", "an absolute original path"),
        ("path-parent", table + b"\1a\1\0\5\x09../a.txt", "path", "an original path that leaves the folder"),
        ("path-parent-inside", table + b"\1a\1\0\5\x0bx/../a.txt", "path", "an original path with .. inside"),
        ("path-zero", table + b"\1a\1\0\5\x06a\0txt", "path", "an original path with a zero byte"),
        ("size-small", table + b"\1a\1\0\0\1", "fill", "members do not fill the frame"),
        ("size-large", table + b"\1a\1\0\x81\x0c\1", "fill", "a member reaches into the end marker"),
        ("size-wrap", table + b"\1a\1\0" + b"\xff" * 9 + b"\1\1", "fill", "a member of 2^64 - 1 bytes"),
    ):
        shard(out, "bad-list-" + name, one.bytes(list=data), rule, what)
    swapped = Build([[(b"a", [(b"txt", b"hello", b"="), (b"cls", b"0", None)])]])
    shard(out, "bad-list-fields-order", swapped.bytes(), "members", "fields of a sample not ascending")
    same = Build([[(b"a", [(b"txt", b"0", b"="), (b"txt", b"1", b"=")])]])
    shard(out, "bad-list-field-again", same.bytes(), "members", "a sample with the same field twice")
    for name, key, what in (
        ("parent", b"../a", "a key that leaves the folder"),
        ("absolute", b"/a", "a key that starts with a slash"),
        ("dot", b"a.b", "a key with a dot"),
        ("empty", b"", "an empty key"),
        ("slashes", b"a//b", "an empty component"),
        ("slash-end", b"a/", "a slash at the end"),
        ("underscores", b"a/__b", "a component that starts with __"),
        ("space", b"a b", "a space"),
        ("high", b"a\xc3\xa9", "a letter outside ASCII"),
        ("zero", b"a\0b", "a zero byte"),
        ("long", b"k" * 73, "a key of 73 bytes"),
    ):
        shard(out, "bad-key-" + name, Build([[(key, [(b"txt", b"hello", b"=")])]]).bytes(), "key", what)
    for name, second, what in (("twice", b"a", "a key twice"), ("case", b"A", "two keys that differ in case only")):
        b = Build([[(b"a", [(b"txt", b"hello", b"=")])], [(second, [(b"txt", b"world", b"=")])]])
        shard(out, "bad-key-" + name, b.bytes(), "key-twice", what)


def with_tar(data, **change):
    b = Build(ONE)
    b.tars, b.frames = [data], [frame(data, **change)]
    return b.bytes()


def with_frame(raw):
    b = Build(ONE)
    b.frames = [raw]
    return b.bytes()


def bad_frames(out):
    two = Build(PAIR)
    tar, good = Build(ONE).tars[0], two.bytes()
    table = sum(map(len, two.frames)) + 8 + 56
    packed = table + 2 * 20
    checksum = changed(0, 2, low32(two.tars[0]) ^ 1)
    for name, data, rule, what in (
        ("data", flip(good, good.index(b"hello")), "digest", "a flipped bit in the data of frame 0"),
        ("frame-header", flip(good, 5), "digest", "a flipped bit in the header of frame 0"),
        ("frame-digest", flip(good, table + 4), "index-digest", "a flipped bit in a frame digest"),
        ("index-digest", flip(good, table - 16), "index-digest", "a flipped bit in the index digest"),
        ("list", flip(good, good.index(b"identity")), "index-digest", "a flipped bit in the sample list"),
        (
            "list-unused",
            flip(good, packed + 4, 0x10),
            "index-digest",
            "a flipped bit that zstd ignores (Unused_bit in the header of the list's frame)",
        ),
        ("seek-checksum", two.bytes(edit=checksum), "checksum", "a flipped bit in the checksum of frame 0"),
    ):
        shard(out, "bad-bit-" + name, data, rule, what)
    digests = [bytes(16), hashlib.sha256(two.frames[1]).digest()[:16]]
    shard(out, "bad-frame-digest", two.bytes(digests=digests), "digest", "another digest of frame 0 in a sound index")
    two.frames[1] = frame(two.tars[1], checksum=1)
    shard(out, "bad-frame-checksum", two.bytes(), "frame-data", "wrong checksum at the end of frame 1")
    short = frame(tar[:512], size=2048)[:-4] + struct.pack("<I", low32(tar[:512]))
    for name, raw, rule, what in (
        ("no-checksum", frame(tar, flags=0xA0), "frame-header", "data frame without checksum"),
        ("no-size", frame(tar, flags=0x04, window=b"\x58"), "frame-header", "data frame without content size"),
        ("size", frame(tar, size=2560), "frame-header", "data frame records another content size"),
        ("dictionary", frame(tar, flags=0xA5, dictionary=b"\x07"), "frame-header", "data frame asks for a dictionary"),
        ("window", frame(tar, flags=0x84, window=b"\x90"), "frame-header", "window of 256 MiB"),
        ("reserved", frame(tar, flags=0xAC), "frame-header", "reserved bit of the zstd header set"),
        ("unused", frame(tar, flags=0xB4), "frame-header", "unused bit of the zstd header set"),
        ("skippable", b"\x50\x2a\x4d\x18\0\0\0\0" + frame(tar), "frame-header", "a skippable frame in front"),
        ("short", short, "frame-data", "data frame ends early"),
        ("long", frame(tar) + b"\0\0\0\0", "frame-end", "bytes behind the data frame in its range"),
        ("two", frame(tar[:1024]) + frame(tar[1024:]), "frame-header", "two zstd frames in one range"),
    ):
        shard(out, "bad-frame-" + name, with_frame(raw), rule, what)


def bad_tars(out):
    tar = Build(ONE).tars[0]
    for name, head, what in (
        ("checksum", header(b"a.txt", 5, checksum=0), "wrong checksum in a tar header"),
        ("name", header(b"b.txt", 5), "tar header has another name"),
        ("parent", header(b"../a.txt", 5), "tar header with ../"),
        ("absolute", header(b"/a.txt", 5), "tar header with an absolute name"),
        ("size", header(b"a.txt", 6), "tar header has another size"),
        ("mode", header(b"a.txt", 5, mode=b"0000644\0"), "tar header with another mode"),
        ("symlink", header(b"a.txt", 5, kind=b"2"), "tar header of a symbolic link"),
        ("pax", header(b"a.txt", 5, kind=b"x"), "tar header of pax records"),
        ("zeros", bytes(512), "a zero block in place of a header"),
    ):
        shard(out, "bad-tar-" + name, with_tar(head + tar[512:]), "tar-header", what)
    shard(out, "bad-tar-behind-name", with_tar(flip(tar, 99)), "tar-header", "a byte behind the name's zero byte")
    shard(out, "bad-tar-padding", with_tar(flip(tar, 1023)), "tar-padding", "padding that is not zero")
    shard(out, "bad-tar-end", with_tar(flip(tar, 2047)), "tar-end", "end marker that is not zero")
    shard(out, "bad-tar-no-end", with_tar(tar[:1024]), "fill", "no end marker")
    shard(out, "bad-tar-half-end", with_tar(tar[:1536]), "fill", "half an end marker")
    shard(out, "bad-tar-long-end", with_tar(tar + bytes(1024)), "fill", "an end marker of 2048 bytes")
    b = Build(PAIR)
    b.tars[0] += bytes(1024)
    b.frames[0] = frame(b.tars[0])
    shard(out, "bad-tar-early-end", b.bytes(), "fill", "an end marker in frame 0 of 2")
