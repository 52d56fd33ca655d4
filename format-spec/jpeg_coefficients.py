#!/usr/bin/env python3
"""JPEG files out of the stored encoding jpeg_coefficients, written from jpeg_coefficients.md; slow and plain.

jpeg_coefficients.py BLOB > JPEG. As a module: restore(blob) gives the file, coefficients(blob) the numbers in it.
Anything against the rules is a Bad, whose text says what.
"""

import struct
import sys

import zstandard

ZIGZAG = [0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14,
          21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53,
          60, 61, 54, 47, 55, 62, 63]  # fmt: skip
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


class Bad(Exception):
    pass


def require(ok, text, *args):
    if not ok:
        raise Bad(text % args)


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


def standard_segment(code):
    """Section 3: what a byte between two runs stands for."""
    if code < 4:
        name, table = ((0x00, DC_LUMA), (0x10, AC_LUMA), (0x01, DC_CHROMA), (0x11, AC_CHROMA))[code]
        return b"\xff\xc4" + struct.pack(">HB", 3 + len(table), name) + table
    require(code < 204, "there is no table %d", code)
    quality, chroma = divmod(code - 4, 2)
    quality += 1
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    table = bytes(min(255, max(1, (v * percent + 50) // 100)) for v in (CHROMA if chroma else LUMA))
    return b"\xff\xdb\x00\x43" + bytes([chroma]) + table


def long_header(data):
    c, out = Cursor(data), b""
    while True:
        out += c.take(c.varint())
        if c.at == len(data):
            return out
        out += standard_segment(c.take(1)[0])


class Header:
    """What the header says of the scan."""

    def __init__(self, data):
        require(data[:2] == b"\xff\xd8", "no SOI")
        self.interval, self.tables, self.parts, at = 0, {}, None, 2
        while True:
            require(len(data) - at >= 4 and data[at] == 0xFF, "header: no segment at byte %d", at)
            marker, size = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
            require(2 <= size <= len(data) - at - 2, "header: segment of %d bytes", size)
            body = data[at + 4 : at + 2 + size]
            at += 2 + size
            if marker in (0xC0, 0xC1):
                self.frame(body)
            elif marker == 0xC4:
                self.huffman(body)
            elif marker == 0xDD:
                require(len(body) == 2, "DRI of %d bytes", len(body))
                self.interval = struct.unpack(">H", body)[0]
            elif marker == 0xDA:
                self.scan(body)
                require(at == len(data), "header: bytes behind SOS")
                return
            else:
                require(marker in (0xDB, 0xFE) or 0xE0 <= marker <= 0xEF, "header: marker %02X", marker)

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
        self.wide = -(-width // (8 * self.parts[0]["h"]))
        self.high = -(-height // (8 * self.parts[0]["v"]))

    def huffman(self, body):
        while body:
            require(len(body) >= 17 and body[0] >> 4 < 2 and body[0] & 15 < 4, "DHT")
            n = sum(body[1:17])
            require(n <= 256 and n <= len(body) - 17, "DHT of %d codes", n)
            self.tables[body[0]] = body[1:17], body[17 : 17 + n]
            body = body[17 + n :]

    def scan(self, body):
        require(self.parts and len(body) == 4 + 2 * len(self.parts) and body[0] == len(self.parts), "SOS")
        require(body[-3:] == b"\0\x3f\0", "SOS: not a baseline scan")
        for i, p in enumerate(self.parts):
            name, tables = body[1 + 2 * i], body[2 + 2 * i]
            p["dc"], p["ac"] = self.tables.get(tables >> 4), self.tables.get(0x10 | tables & 15)
            require(name == p["id"] and tables >> 4 < 4 and tables & 15 < 4 and p["dc"] and p["ac"], "SOS: component")


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
    """Header, tail, padding bit, and the rows of MCUs: per component a list of blocks."""
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
    require(version == 1, "version %d: unsupported", version)
    require(padding < 2, "padding %d", padding)
    raw = long_header(c.take(c.varint()))
    header, tail = Header(raw), c.take(c.varint())
    groups = [header.parts[:1]] + ([header.parts[1:]] if len(header.parts) > 1 else [])
    ways = c.take(13 * len(groups))
    require(all(w < 5 or w == 9 for w in ways), "levels in an unknown way")
    kinds = [Kind(c, parts, header, ways[13 * i : 13 * i + 13]) for i, parts in enumerate(groups)]
    require(c.at == len(content), "%d bytes too many", len(content) - c.at)
    return raw, header, tail, padding, rows_of(header, kinds)


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


class Bits:
    def __init__(self):
        self.out, self.bits, self.n = bytearray(), 0, 0

    def put(self, bits, n):
        self.bits, self.n = self.bits << n | bits, self.n + n
        while self.n >= 8:
            self.n -= 8
            byte = self.bits >> self.n & 255
            self.out += b"\xff\0" if byte == 255 else bytes([byte])
        self.bits &= (1 << self.n) - 1

    def fill(self, padding):
        if self.n:
            self.put((1 << 8 - self.n) - 1 if padding else 0, 8 - self.n)


def codes(table):
    counts, symbols = table
    out, code, at = {}, 0, 0
    for size, n in enumerate(counts, 1):
        for symbol in symbols[at : at + n]:
            require(code < 1 << size and symbol not in out, "Huffman codes that cannot be")
            out[symbol] = code, size
            code += 1
        at += n
        code <<= 1
    return out


def put_number(bits, table, run, v):
    size = abs(v).bit_length()
    symbol = run << 4 | size
    require(size < 16 and symbol in table, "a coefficient for which there is no Huffman code")
    bits.put(*table[symbol])
    bits.put((v if v > 0 else v - 1) & (1 << size) - 1, size)


def put_block(bits, dc, ac, block, last):
    put_number(bits, dc, 0, block[0] - last)
    run = 0
    places = [i for i in range(1, 64) if block[ZIGZAG[i]]]
    for i, before in zip(places, [0, *places]):
        run = i - before - 1
        while run > 15:
            require(0xF0 in ac, "no code for 16 zeros")
            bits.put(*ac[0xF0])
            run -= 16
        put_number(bits, ac, run, block[ZIGZAG[i]])
    if not places or places[-1] < 63:
        require(0 in ac, "no code for the end of a block")
        bits.put(*ac[0])


def restore(blob):
    """The JPEG file."""
    raw, header, tail, padding, rows = unpack(blob)
    tables = [(codes(p["dc"]), codes(p["ac"])) for p in header.parts]
    bits, last, mcu = Bits(), [0] * len(tables), 0
    for row in rows:
        for x in range(header.wide):
            if header.interval and mcu and mcu % header.interval == 0:
                bits.fill(padding)
                bits.out += bytes([0xFF, 0xD0 + (mcu // header.interval - 1) % 8])
                last = [0] * len(tables)
            mcu += 1
            for i, p in enumerate(header.parts):
                for y in range(p["v"]):
                    for k in range(p["h"]):
                        block = row[i][(y * header.wide + x) * p["h"] + k]
                        put_block(bits, *tables[i], block, last[i])
                        last[i] = block[0]
    bits.fill(padding)
    return raw + bytes(bits.out) + tail


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as source:
        sys.stdout.buffer.write(restore(source.read()))
