"""Scans of JPEG files and how their blocks are coded, for jpeg_coefficients.py; slow and plain.

Sources: ITU-T T.81, B.2.3 (SOS), F.1.2 (sequential), G.1.2 (progressive), K.2 (Huffman tables); jpeg_coefficients.md.
"""

ZIGZAG = [0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14,
          21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53,
          60, 61, 54, 47, 55, 62, 63]  # fmt: skip


class Bad(Exception):
    pass


def require(ok, text, *args):
    if not ok:
        raise Bad(text % args)


class Scan:
    """What SOS says. parts: numbers of the components, dc and ac: of their tables; interval: of restart markers."""

    def __init__(self, body, header):
        names = [p["id"] for p in header.parts or []]
        n = body[0] if body else 0
        require(0 < n <= len(names) and len(body) == 4 + 2 * n, "SOS")
        self.first, self.last, self.high, self.low = body[-3], body[-2], body[-1] >> 4, body[-1] & 15
        self.progressive, self.interval = header.progressive, header.interval
        self.parts, self.dc, self.ac = [], [], []
        for i in range(n):
            require(body[1 + 2 * i] in names[self.parts[-1] + 1 if i else 0 :], "SOS: components")
            self.parts.append(names.index(body[1 + 2 * i], self.parts[-1] + 1 if i else 0))
            self.dc.append(body[2 + 2 * i] >> 4)
            self.ac.append(0x10 | body[2 + 2 * i] & 15)
            require(self.dc[-1] < 4 and self.ac[-1] < 0x14, "SOS: tables")
        require(self.is_good(), "SOS: not a scan of such a file")
        require(all(t in header.tables for t in self.tables()), "SOS: tables that are not there")

    def is_good(self):
        if not self.progressive:
            return (self.first, self.last, self.high, self.low) == (0, 63, 0, 0)
        band = self.last == 0 if self.first == 0 else self.first <= self.last <= 63 and len(self.parts) == 1
        return band and self.low <= 13 and self.high in (0, self.low + 1)

    def tables(self):
        """Those that it uses."""
        return (self.dc if self.first == 0 and self.high == 0 else []) + (self.ac if self.last > 0 else [])


def tables_of(body):
    """The tables in a segment DHT: counts of codes of each length, symbols."""
    tables = {}
    while body:
        require(len(body) >= 17 and body[0] >> 4 < 2 and body[0] & 15 < 4, "DHT")
        n = sum(body[1:17])
        require(n <= 256 and n <= len(body) - 17, "DHT of %d codes", n)
        tables[body[0]] = body[1:17], body[17 : 17 + n]
        body = body[17 + n :]
    return tables


class Bits:
    """Symbols in the codes of their tables and plain bits, to bytes."""

    def __init__(self, tables, names):
        self.codes = {name: codes(tables[name]) for name in names}
        self.out, self.bits, self.n = bytearray(), 0, 0

    def symbol(self, table, symbol):
        require(symbol in self.codes[table], "a coefficient for which there is no Huffman code")
        self.put(*self.codes[table][symbol])

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

    def marker(self, byte):
        self.out += bytes([0xFF, byte])


class Counts:
    """In the place of Bits: how often each symbol comes."""

    def __init__(self, names):
        self.of = {name: [0] * 256 for name in names}

    def symbol(self, table, symbol):
        self.of[table][symbol & 255] += 1

    def put(self, bits, n):
        pass

    fill = marker = lambda self, _: None


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


def best_table(counts):
    """T.81, K.2; one more symbol takes the code of nothing but ones."""
    left = {symbol: (n, [symbol]) for symbol, n in enumerate(counts + [1]) if n}
    sizes = dict.fromkeys(left, 0)
    while len(left) > 1:
        one, two = sorted(left, key=lambda symbol: (left[symbol][0], -symbol))[:2]
        (n, members), (more, others) = left[one], left.pop(two)
        left[one] = n + more, members + others
        for symbol in left[one][1]:
            sizes[symbol] += 1
    bits = [0] * 258
    for size in sizes.values():
        bits[size] += 1
    for i in range(257, 16, -1):
        while bits[i]:
            j = max(k for k in range(1, i - 1) if bits[k])
            bits[i] -= 2
            bits[i - 1] += 1
            bits[j + 1] += 2
            bits[j] -= 1
    bits[max(i for i in range(1, 17) if bits[i])] -= 1
    order = sorted((size, symbol) for symbol, size in sizes.items() if symbol < 256)
    return bytes(bits[1:17]), bytes(symbol for _, symbol in order)


def put_number(sink, table, run, v):
    size = abs(v).bit_length()
    require(size < 16 or isinstance(sink, Counts), "a coefficient for which there is no Huffman code")
    sink.symbol(table, run << 4 | size)
    sink.put((v if v > 0 else v - 1) & (1 << size) - 1, size)


class Coder:
    """Codes the blocks of a scan: T.81, F.1.2 and G.1.2."""

    def __init__(self, scan, sink):
        self.scan, self.sink = scan, sink
        self.begin()
        if not scan.progressive:
            self.block = self.all_at_once
        elif scan.first == 0:
            self.block = self.dc_more if scan.high else self.dc_first
        else:
            self.block = self.ac_more if scan.high else self.ac_first

    def begin(self):
        self.last, self.run, self.held = [0] * len(self.scan.parts), 0, []

    def all_at_once(self, i, block):
        ac, before = self.scan.ac[i], 0
        put_number(self.sink, self.scan.dc[i], 0, block[0] - self.last[i])
        self.last[i] = block[0]
        for k in range(1, 64):
            if block[ZIGZAG[k]]:
                zeros = k - before - 1
                for _ in range(zeros // 16):
                    self.sink.symbol(ac, 0xF0)
                put_number(self.sink, ac, zeros % 16, block[ZIGZAG[k]])
                before = k
        if before < 63:
            self.sink.symbol(ac, 0)

    def dc_first(self, i, block):
        v = block[0] >> self.scan.low
        put_number(self.sink, self.scan.dc[i], 0, v - self.last[i])
        self.last[i] = v

    def dc_more(self, i, block):
        self.sink.put(block[0] >> self.scan.low & 1, 1)

    def band(self, block):
        """Coefficients of the scan without their lower bits; signs stay."""
        for k in range(self.scan.first, self.scan.last + 1):
            v = block[ZIGZAG[k]]
            yield k, v >> self.scan.low if v > 0 else -(-v >> self.scan.low)

    def ac_first(self, _, block):
        zeros = 0
        for _, v in self.band(block):
            if v == 0:
                zeros += 1
                continue
            self.end_run()
            for _ in range(zeros // 16):
                self.sink.symbol(self.scan.ac[0], 0xF0)
            put_number(self.sink, self.scan.ac[0], zeros % 16, v)
            zeros = 0
        self.run += zeros > 0
        if self.run == 0x7FFF:
            self.end_run()

    def ac_more(self, _, block):
        last = max([k for k, v in self.band(block) if abs(v) == 1], default=0)
        zeros, more = 0, []
        for k, v in self.band(block):
            while v and zeros > 15 and k <= last:
                self.end_run()
                self.sink.symbol(self.scan.ac[0], 0xF0)
                more = self.put_bits(more)
                zeros -= 16
            if v == 0:
                zeros += 1
            elif abs(v) > 1:
                more.append(abs(v) & 1)
            else:
                self.end_run()
                self.sink.symbol(self.scan.ac[0], zeros << 4 | 1)
                self.sink.put(v > 0, 1)
                more = self.put_bits(more)
                zeros = 0
        if zeros or more:
            self.run += 1
            self.held += more
            if self.run == 0x7FFF or len(self.held) > 937:
                self.end_run()

    def put_bits(self, bits):
        for bit in bits:
            self.sink.put(bit, 1)
        return []

    def end_run(self):
        if self.run:
            size = self.run.bit_length() - 1
            self.sink.symbol(self.scan.ac[0], size << 4)
            self.sink.put(self.run & (1 << size) - 1, size)
            self.held = self.put_bits(self.held)
            self.run = 0


def mcus(scan, header, rows):
    """The blocks of each MCU, with the number of their component in the scan."""
    if len(scan.parts) == 1:
        part = scan.parts[0]
        p = header.parts[part]
        for y in range(p["high"]):
            for x in range(p["wide"]):
                yield [(0, rows[y // p["v"]][part][y % p["v"] * header.wide * p["h"] + x])]
        return
    for row in rows:
        for x in range(header.wide):
            mcu = []
            for i, part in enumerate(scan.parts):
                p = header.parts[part]
                for y in range(p["v"]):
                    for k in range(p["h"]):
                        mcu.append((i, row[part][(y * header.wide + x) * p["h"] + k]))
            yield mcu


def code_scan(scan, header, rows, padding, sink):
    coder = Coder(scan, sink)
    for number, mcu in enumerate(mcus(scan, header, rows)):
        if scan.interval and number and number % scan.interval == 0:
            coder.end_run()
            sink.fill(padding)
            sink.marker(0xD0 + (number // scan.interval - 1) % 8)
            coder.begin()
        for i, block in mcu:
            coder.block(i, block)
    coder.end_run()
    sink.fill(padding)
