#!/usr/bin/env python3
"""JPEG files out of the stored encoding jpeg_coefficients, written from jpeg_coefficients.md; slow and plain.

jpeg_coefficients.py BLOB > JPEG. As a module: restore(blob) gives the file, coefficients(blob) the numbers in it.
Anything against the rules is a Bad, whose text says what.
"""

import struct
import sys

import zstandard

from jpeg_scans import ZIGZAG, Bad, Bits, Counts, Scan, best_table, code_scan, require, tables_of

# ITU-T T.81, annex K: quantisation in zigzag order, Huffman tables as in DHT.
LUMA = bytes.fromhex(
    "100b0c0e0c0a100e0d0e1211101318281a181616183123251d283a333d3c3933383740485c4e404457453738506d51575f626768673e4d71"
    "797064785c656763")  # fmt: skip
CHROMA = bytes.fromhex("1112121815182f1a1a2f634238426363") + b"\x63" * 48
DC_LUMA = bytes.fromhex("00010501010101010100000000000000") + bytes(range(12))
DC_CHROMA = bytes.fromhex("00030101010101010101010000000000") + bytes(range(12))
AC_LUMA = bytes.fromhex(
    "0002010303020403050504040000017d01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a16"
    "1718191a25262728292a3435363738393a434445464748494a535455565758595a636465666768696a737475767778797a83848586878889"
    "8a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9ea"
    "f1f2f3f4f5f6f7f8f9fa")  # fmt: skip
AC_CHROMA = bytes.fromhex(
    "00020102040403040705040400010277000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434"
    "e125f11718191a262728292a35363738393a434445464748494a535455565758595a636465666768696a737475767778797a828384858687"
    "88898a92939495969798999aa2a3a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9"
    "eaf2f3f4f5f6f7f8f9fa")  # fmt: skip
LISTS = [(b, c) for b, least in enumerate((1, 1, 2, 3)) for c in range(least, 5)]  # band, class


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        require(n <= len(self.data) - self.at, "%d bytes, only %d are left", n, len(self.data) - self.at)
        self.at += n
        return self.data[self.at - n : self.at]

    def varint(self):
        value = 0
        for i in range(10):
            byte = self.take(1)[0]
            value |= (byte & 127) << 7 * i
            if byte < 128:
                require((byte or i == 0) and value < 1 << 64, "varint not in its shortest form")
                return value
        raise Bad("varint too long")


def standard_segment(code, version):
    """Section 3: what a byte between two runs stands for."""
    if code < 4:
        name, table = ((0x00, DC_LUMA), (0x10, AC_LUMA), (0x01, DC_CHROMA), (0x11, AC_CHROMA))[code]
        return b"\xff\xc4" + struct.pack(">HB", 3 + len(table), name) + table
    if version > 1 and 204 <= code < 212:
        return b"\xff\xc4\x00\x13" + bytes([(code - 204) // 4 << 4 | code % 4]) + bytes(16)
    require(code < 204, "there is no table %d", code)
    quality, chroma = divmod(code - 4, 2)
    quality += 1
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    table = bytes(min(255, max(1, (v * percent + 50) // 100)) for v in (CHROMA if chroma else LUMA))
    return b"\xff\xdb\x00\x43" + bytes([chroma]) + table


def long_header(data, version):
    c, out = Cursor(data), b""
    while True:
        out += c.take(c.varint())
        if c.at == len(data):
            return out
        out += standard_segment(c.take(1)[0], version)


class Header:
    """What the header says. pieces: its bytes up to the end of each SOS, the tables in them, the scan that follows."""

    def __init__(self, data, version):
        require(data[:2] == b"\xff\xd8", "no SOI")
        self.interval, self.tables, self.parts, self.pieces = 0, {}, None, []
        self.progressive, begin, at, fresh = False, 0, 2, {}
        while at < len(data):
            require(len(data) - at >= 4 and data[at] == 0xFF, "header: no segment at byte %d", at)
            marker, size = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
            require(2 <= size <= len(data) - at - 2, "header: segment of %d bytes", size)
            body = data[at + 4 : at + 2 + size]
            at += 2 + size
            if marker in (0xC0, 0xC1, 0xC2):
                self.progressive = marker == 0xC2
                self.frame(body)
            elif marker == 0xC4:
                fresh.update(tables_of(body))
                self.tables.update(fresh)
            elif marker == 0xDD:
                require(len(body) == 2, "DRI of %d bytes", len(body))
                self.interval = struct.unpack(">H", body)[0]
            elif marker == 0xDA:
                self.pieces.append((data[begin:at], fresh, Scan(body, self)))
                begin, fresh = at, {}
            elif marker == 0xDB:
                require(not self.pieces, "header: DQT behind a scan")
            else:
                require(marker == 0xFE or 0xE0 <= marker <= 0xEF, "header: marker %02X", marker)
        require(self.pieces and begin == at, "header: bytes behind SOS")
        self.check_scans([scan for _, _, scan in self.pieces], version)

    def frame(self, body):
        require(self.parts is None and len(body) > 5 and body[0] == 8 and body[5] in (1, 3), "SOF")
        require(len(body) == 6 + 3 * body[5], "SOF of %d bytes", len(body))
        height, width = struct.unpack(">HH", body[1:5])
        self.parts = [{"id": body[i], "h": body[i + 1] >> 4, "v": body[i + 1] & 15} for i in range(6, len(body), 3)]
        for i, p in enumerate(self.parts):
            most = 2 if i == 0 else 1
            require(1 <= p["h"] <= most and 1 <= p["v"] <= most, "sampling %(h)d x %(v)d" % p)
        if len(self.parts) == 1:
            self.parts[0].update(h=1, v=1)
        require(width and height, "no pixels")
        most_h, most_v = self.parts[0]["h"], self.parts[0]["v"]
        self.wide, self.high = -(-width // (8 * most_h)), -(-height // (8 * most_v))
        for p in self.parts:
            p["wide"], p["high"] = -(-width * p["h"] // (8 * most_h)), -(-height * p["v"] // (8 * most_v))

    def check_scans(self, scans, version):
        """Version 1: one that tells all. Version 2: together they do, each bit once and in its turn."""
        if version == 1:
            require(len(scans) == 1 and not self.progressive and len(scans[0].parts) == len(self.parts), "scans")
            return
        blocks = self.wide * self.high * sum(p["h"] * p["v"] for p in self.parts)
        require(len(scans) <= 100 and blocks <= 1 << 22, "too many scans or blocks")
        low = [[None] * 64 for _ in self.parts]
        for scan in scans:
            for part in scan.parts:
                require(scan.first == 0 or low[part][0] is not None, "a scan of AC before DC")
                for k in range(scan.first, scan.last + 1):
                    require(low[part][k] == (scan.high or None), "a scan out of its turn")
                    low[part][k] = scan.low
        require(all(bits == 0 for part in low for bits in part), "scans that do not tell all")


def signed(byte):
    return byte - 256 if byte > 127 else byte


class Kind:
    """The streams of luma or chroma (section 4), and where reading stands in them."""

    def __init__(self, c, parts, header, ways):
        rows = [(header.wide * p["h"], p["v"]) for p in parts]
        blocks = header.high * sum(w * v for w, v in rows)
        self.dc = iter(c.take(blocks))
        high = c.data[c.at - blocks : c.at]
        self.low = iter(c.take(header.high * sum(-(-w // 4) * v for w, v in rows)))
        self.dc_escapes = struct.iter_unpack("<h", c.take(2 * high.count(0x80)))
        classes = c.take(header.high * sum((w * v + 1) // 2 for w, v in rows))
        self.classes = iter(classes)
        counts = self.count(classes, rows, header.high)
        self.masks, levels = {}, dict.fromkeys(LISTS, 0)
        for k in range(1, 5):
            planes = [c.take(counts[k]) for _ in range(2 * k)]
            require(not any(m & 1 for m in planes[0]), "a mask that counts DC")
            for g, plane in enumerate(planes):
                levels[band(g), k] += sum(bin(m).count("1") for m in plane)
            self.masks[k] = zip(*planes)
        stored = {x: c.take(levels[x] if way == 9 else (levels[x] + 1) // 2) for x, way in zip(LISTS, ways)}
        self.levels, escapes = {}, [0] * 5
        for (b, k), way in zip(LISTS, ways):
            n = levels[b, k]
            lows = c.take(0 if way == 9 else -(-n // 8) * way)
            values = unfold(stored[b, k], lows, way, n)
            escapes[k] += values.count(-128)
            self.levels[b, k] = iter(values)
        self.escapes = [struct.iter_unpack("<h", c.take(2 * n)) for n in escapes]

    @staticmethod
    def count(classes, rows, high):
        counts, at = [0] * 16, 0
        for _ in range(high):
            for w, v in rows:
                n = w * v
                for i in range(n + n % 2):
                    k = classes[at + i // 2] >> 4 * (i % 2) & 15
                    require(i < n or k == 0, "class of a block that does not exist")
                    counts[k] += i < n
                at += (n + 1) // 2
        require(not any(counts[5:]), "a block of a class above 4")
        return counts

    def block(self, k):
        """AC of the next block of class k, by rows; DC is left 0."""
        out = [0] * 64
        for g, mask in enumerate(next(self.masks[k]) if k else ()):
            for i in range(8):
                if mask >> i & 1:
                    level = next(self.levels[band(g), k])
                    out[ZIGZAG[8 * g + i]] = next(self.escapes[k])[0] if level == -128 else level
        return out


def band(g):
    return g if g < 2 else 2 if g < 4 else 3


def unfold(data, lows, way, n):
    if way == 9:
        return [signed(b) for b in data]
    out = []
    for i in range(n):
        q = data[i // 2] >> 4 * (i % 2) & 15
        eight = int.from_bytes(lows[i // 8 * way : i // 8 * way + way], "little")
        u = -128 if q == 8 else (q - 16 if q > 8 else q) << way
        u += eight >> way * (i % 8) & (1 << way) - 1
        out.append(signed((u + (u >= 0)) & 255))
    return out


def unpack(blob):
    """Version, header, tail, padding bit, and the rows of MCUs: per component a list of blocks."""
    limit = 65536 + 64 * len(blob)
    try:
        size = zstandard.frame_content_size(blob)
        require(0 <= size <= limit, "content of %d bytes", size)
        inflater = zstandard.ZstdDecompressor().decompressobj()
        content = inflater.decompress(blob)
    except zstandard.ZstdError as e:
        raise Bad(str(e)) from None
    require(len(content) == size and not inflater.unused_data, "not one whole frame")
    c = Cursor(content)
    version, padding = c.take(2)
    require(version in (1, 2), "version %d: unsupported", version)
    require(padding < 2, "padding %d", padding)
    header, tail = Header(long_header(c.take(c.varint()), version), version), c.take(c.varint())
    groups = [header.parts[:1]] + ([header.parts[1:]] if len(header.parts) > 1 else [])
    ways = c.take(13 * len(groups))
    require(all(w < 5 or w == 9 for w in ways), "levels in an unknown way")
    kinds = [Kind(c, parts, header, ways[13 * i : 13 * i + 13]) for i, parts in enumerate(groups)]
    require(c.at == len(content), "%d bytes too many", len(content) - c.at)
    return version, header, tail, padding, rows_of(header, kinds)


def rows_of(header, kinds):
    above = [0] * len(header.parts)
    for _ in range(header.high):
        row = []
        for i, p in enumerate(header.parts):
            kind, w, n = kinds[i > 0], header.wide * p["h"], header.wide * p["h"] * p["v"]
            dc = []
            for _ in range(p["v"]):
                lows = [next(kind.low) for _ in range(-(-w // 4))]
                for x in range(w):
                    high = signed(next(kind.dc))
                    d = next(kind.dc_escapes)[0] if high == -128 else 4 * high + (lows[x // 4] >> 2 * (x % 4) & 3)
                    before = above[i] if x == 0 else dc[-1]
                    dc.append((before + d + 32768) % 65536 - 32768)
                above[i] = dc[-w]
            pairs = [next(kind.classes) for _ in range((n + 1) // 2)]
            blocks = [kind.block(pairs[k // 2] >> 4 * (k % 2) & 15) for k in range(n)]
            for block, v in zip(blocks, dc):
                block[0] = v
            row.append(blocks)
        yield row


def coefficients(blob):
    """Per component its blocks, row by row, MCUs complete; each 64 numbers by rows."""
    _, header, _, _, rows = unpack(blob)
    out = [[] for _ in header.parts]
    for row in rows:
        for blocks, more in zip(out, row):
            blocks += more
    return out


def fill_tables(piece, tables):
    """Part of a header, its tables without codes replaced."""
    out, at = piece[:2] if piece[1] == 0xD8 else b"", 2 if piece[1] == 0xD8 else 0
    while at < len(piece):
        size = 2 + struct.unpack(">H", piece[at + 2 : at + 4])[0]
        segment = piece[at : at + size]
        at += size
        if segment[1] == 0xC4:
            body, left = b"", segment[4:]
            while left:
                n = 17 + sum(left[1:17])
                table = left[1:17] + left[17:n] if n > 17 else b"".join(tables[left[0]])
                require(any(table), "a Huffman table without codes that the next scan does not use")
                body, left = body + left[:1] + table, left[n:]
            require(len(body) < 65534, "too many Huffman tables")
            segment = b"\xff\xc4" + struct.pack(">H", 2 + len(body)) + body
        out += segment
    return out


def restore(blob):
    """The JPEG file."""
    version, header, tail, padding, rows = unpack(blob)
    out, tables, rows = b"", {}, list(rows)
    for piece, fresh, scan in header.pieces:
        tables.update(fresh)
        missing = [name for name in scan.tables() if version > 1 and not any(tables[name][0])]
        if missing:
            counts = Counts(scan.tables())
            code_scan(scan, header, rows, padding, counts)
            tables.update((name, best_table(counts.of[name])) for name in missing)
        bits = Bits(tables, scan.tables())
        code_scan(scan, header, rows, padding, bits)
        out += (fill_tables(piece, tables) if version > 1 else piece) + bytes(bits.out)
    return out + tail


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as source:
        sys.stdout.buffer.write(restore(source.read()))
