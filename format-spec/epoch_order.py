#!/usr/bin/env python3
"""The order of an epoch, written from epoch-order.md alone. Numbers in comments are its sections.

    epoch_order.py order KEY=VALUE...       a line per position of E: position, sample, repeat
    epoch_order.py batches KEY=VALUE...     a line per row: batch, rank, row, position, sample, repeat, valid
    epoch_order.py crop KEY=VALUE...        crop (left top width height) and flips of one delivery (12)

Keys of order and batches: shards (samples per shard: "50000", "1000*50", "7,0,3*5"), batch (G), and seed, epoch, chunk
(C), groups (m), buffer (K), span (d), echo (e), shuffle (1 or 0), from and count (positions; default all). batches has also
world, rows (per rank and batch; batch is world * rows unless given), tail (drop, pad, keep), limit and start (x0).
Keys of crop: seed, epoch, index, repeat, width, height, scale ("0.08,1"), ratio ("0.75,1.3333333333333333"), hflip,
vflip. Needs Python 3.8 and nothing else. Memory: a table of spans, and K numbers for each lane in use.
"""

import bisect
import math
import sys

M32 = 0xFFFFFFFF
LANE, SPANS, AUGMENT = 0, 1, 2


# ---- random words (3) ----


def philox(counter, key):
    """The block of Philox4x32-10: four words from four words of counter and two of key."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & M32, (a >> 32) ^ c3 ^ k1, a & M32
        k0, k1 = k0 + 0x9E3779B9 & M32, k1 + 0xBB67AE85 & M32
    return c0, c1, c2, c3


def word(seed, epoch, domain, lane, step):
    """64 random bits."""
    out = philox((step & M32, step >> 32 & M32, lane, epoch | domain << 30), (seed & M32, seed >> 32))
    return out[0] | out[1] << 32


def below(seed, epoch, domain, lane, step, bound):
    return word(seed, epoch, domain, lane, step) * bound >> 64


# ---- the plan (2, 4 to 8) ----


class Plan:
    def __init__(self, shards, batch, seed=0, epoch=0, chunk=0, groups=0, buffer=0, span=0, echo=0, shuffle=1):
        self.shards, self.G, self.seed, self.epoch, self.shuffle = shards, batch, seed, epoch, shuffle
        self.C, self.K, self.d, self.e = chunk or 16, buffer or 64, span or 4, echo or 1
        self.N = sum(shards)
        self.total = self.N * self.e
        if not 1 <= self.G <= 1 << 24 or self.K > 1 << 24 or self.e > 65536 or epoch >= 1 << 30:
            raise ValueError("a parameter is out of range")
        self.P = -(-self.G // self.C)
        self.m = groups or max(1, (48 + self.P // 2) // self.P)
        self.lanes = self.m * self.P
        if self.lanes > 1 << 24 or self.total >= 1 << 63:
            raise ValueError("too many lanes or deliveries")
        if shuffle:
            self.spans = self.permuted_spans()
            self.span_starts, at = [], 0
            for first, end in self.spans:
                self.span_starts.append(at)
                at += end - first
            self.lane_starts = [0]
            for lane in range(self.lanes):
                self.lane_starts.append(self.lane_starts[-1] + self.outputs_below(lane, self.total))

    def chunk_size(self, j):
        return min(self.C, self.G - j * self.C)

    def permuted_spans(self):  # 4
        target = max(-(-self.N // (16 * self.lanes)), min(self.d, max(1, self.N // 256)))
        spans, first = [], 0
        for n in self.shards:
            parts = max(1, (n + target // 2) // target) if n else 0
            spans += [(first + n * i // parts, first + n * (i + 1) // parts) for i in range(parts)]
            first += n
        for i in range(len(spans), 1, -1):
            k = below(self.seed, self.epoch, SPANS, 0, i - 1, i)
            spans[i - 1], spans[k] = spans[k], spans[i - 1]
        return spans

    def sequence(self, q):
        """Sample at place q of Q."""
        at = bisect.bisect_right(self.span_starts, q) - 1
        return self.spans[at][0] + q - self.span_starts[at]

    def outputs_below(self, lane, end):  # 5, with end in place of the total
        """How many of the positions below `end` a lane supplies."""
        a, j = divmod(lane, self.P)
        full, rest = divmod(end, self.G)
        count = len(range(a, full, self.m)) * self.chunk_size(j)
        if full % self.m == a:
            count += min(self.chunk_size(j), max(0, rest - j * self.C))
        return count

    def locate(self, x):  # 8
        """Position -> lane and its output."""
        g, offset = divmod(x, self.G)
        j, i = divmod(offset, self.C)
        return g % self.m * self.P + j, g // self.m * self.chunk_size(j) + i

    def lane_outputs(self, lane, begin=0):  # 5 to 7
        """(sample, repeat) of a lane's outputs from `begin` on."""
        start, end, e = self.lane_starts[lane], self.lane_starts[lane + 1], self.e
        first, last = -(-start // e), end // e
        head = min(first * e - start, end - start)
        n = max(0, last - first)
        for y in range(start + begin, start + head):
            yield self.sequence(y // e), y % e
        step, skip = divmod(max(0, begin - head), e)
        for i in self.buffer_outputs(lane, n, min(step, n)):
            sample = self.sequence(first + i)
            for repeat in range(skip, e):
                yield sample, repeat
            skip = 0
        for y in range(max(start + head + n * e, start + begin), end):
            yield self.sequence(y // e), y % e

    def buffer_outputs(self, lane, n, begin):  # 6
        """Input numbers in the order of the buffer, from step `begin` on."""
        if n == 0:
            return
        k0 = min(n, max(1, self.K // 8))
        step = min(begin, self.drain(n, k0))
        slots = self.slots_before(lane, n, k0, step)
        taken = k0 + step + min(step, self.K - k0)
        while slots:
            i = below(self.seed, self.epoch, LANE, lane, step, len(slots))
            out = slots[i]
            if taken < n:
                slots[i] = taken
                taken += 1
                if len(slots) < self.K and taken < n:
                    slots.append(taken)
                    taken += 1
            else:
                slots[i] = slots[-1]
                slots.pop()
            if step >= begin:
                yield out
            step += 1

    def drain(self, n, k0):  # 7
        return n - self.K if n >= 2 * self.K - k0 else (n - k0) // 2

    def slots_before(self, lane, n, k0, step):  # 7
        """What the slots hold before a step that is not behind the drain's first."""
        fill = min(self.K, k0 + step)
        slots, missing = [None] * fill, fill
        s = step
        while s > 0 and missing:
            s -= 1
            taken = k0 + s + min(s, self.K - k0)
            i = below(self.seed, self.epoch, LANE, lane, s, min(self.K, k0 + s))
            if slots[i] is None:
                slots[i] = taken
                missing -= 1
            if s < self.K - k0 and slots[k0 + s] is None:
                slots[k0 + s] = taken + 1
                missing -= 1
        return [i if held is None else held for i, held in enumerate(slots)]

    def order(self, begin=0, end=None):  # 8
        """(sample, repeat) of the positions from begin to end - 1."""
        lanes = {}
        for x in range(begin, self.total if end is None else min(end, self.total)):
            if not self.shuffle:
                yield divmod(x, self.e)
                continue
            lane, output = self.locate(x)
            if lane not in lanes:
                lanes[lane] = self.lane_outputs(lane, output)
            yield next(lanes[lane])

    def padding(self, x, end):  # 10
        """(sample, repeat) that a padded row at position x >= end repeats, or None."""
        if not self.shuffle:
            return divmod(end - 1, self.e) if end else None
        lane, _ = self.locate(x)
        outputs = self.outputs_below(lane, end)
        return next(self.lane_outputs(lane, outputs - 1)) if outputs else None


# ---- batches (9, 10) ----


def batches(plan, world, rows, tail, limit=0, start=0):
    """(batch, rank, row, position, sample, repeat, valid) of all rows; sample is -1 in an empty one."""
    end = min(limit, plan.total) if limit else plan.total
    if tail not in ("drop", "pad", "keep") or tail == "keep" and world > 1:
        raise ValueError("tail is drop, pad, or keep with a world of 1")
    step, left = world * rows, max(0, end - start)
    count = left // step if tail == "drop" else -(-left // step)
    items = plan.order(start, end)
    for b in range(count):
        for at in range(step):
            x = start + b * step + at
            if x >= end and tail == "keep":
                return
            item = next(items) if x < end else plan.padding(x, end) or (-1, 0)
            yield (b, at // rows, at % rows, x, *item, int(x < end))


# ---- augmentation (12) ----


def augmentation(seed, epoch, index, repeat, width, height, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3), hflip=0, vflip=0):
    """((left, top, width, height), flipped left-right, flipped upside down)."""

    def uniform(k):
        return (word(seed, epoch, AUGMENT, repeat, index * 64 + k) >> 11) * 2.0**-53

    return random_crop(uniform, width, height, scale, ratio), uniform(60) < hflip, uniform(61) < vflip


def random_crop(uniform, width, height, scale, ratio):
    area, low, high = float(width * height), math.log(ratio[0]), math.log(ratio[1])
    for k in range(0, 40, 4):
        target = area * (scale[0] + (scale[1] - scale[0]) * uniform(k))
        shape = math.exp(low + (high - low) * uniform(k + 1))
        w, h = round(math.sqrt(target * shape)), round(math.sqrt(target / shape))
        if 1 <= w <= width and 1 <= h <= height:
            top = int(uniform(k + 2) * (height - h + 1))
            return int(uniform(k + 3) * (width - w + 1)), top, w, h
    w, h = width, height
    if width / height < ratio[0]:
        h = min(height, max(1, round(width / ratio[0])))
    elif width / height > ratio[1]:
        w = min(width, max(1, round(height * ratio[1])))
    return (width - w) // 2, (height - h) // 2, w, h


# ---- command ----


def shard_list(text):
    """ "7,0,3*5" -> [7, 0, 5, 5, 5]"""
    out = []
    for part in text.split(","):
        times, star, n = part.rpartition("*")
        out += [int(n)] * (int(times) if star else 1)
    return out


PLAN_KEYS = ("seed", "epoch", "chunk", "groups", "buffer", "span", "echo")


def plan_of(keys):
    numbers = {k: int(keys.pop(k, 0)) for k in PLAN_KEYS}
    return Plan(shard_list(keys.pop("shards")), int(keys.pop("batch")), shuffle=int(keys.pop("shuffle", 1)), **numbers)


def print_order(keys):
    plan, begin = plan_of(keys), int(keys.pop("from", 0))
    end = begin + int(keys.pop("count", plan.total))
    for x, item in enumerate(plan.order(begin, end), begin):
        print(x, *item)


def print_batches(keys):
    world, rows = int(keys.pop("world", 1)), int(keys.pop("rows"))
    keys.setdefault("batch", world * rows)
    tail = keys.pop("tail", "keep" if world == 1 else "pad")
    limit, start = int(keys.pop("limit", 0)), int(keys.pop("start", 0))
    for row in batches(plan_of(keys), world, rows, tail, limit, start):
        print(*row)


def print_crop(keys):
    whole = {k: int(keys.pop(k, 0)) for k in ("seed", "epoch", "index", "repeat", "width", "height")}
    pairs = {k: tuple(map(float, keys.pop(k).split(","))) for k in ("scale", "ratio") if k in keys}
    flips = {k: float(keys.pop(k, 0)) for k in ("hflip", "vflip")}
    crop, *flipped = augmentation(**whole, **pairs, **flips)
    print(*crop, *map(int, flipped))


def main():
    commands = {"order": print_order, "batches": print_batches, "crop": print_crop}
    if len(sys.argv) < 2 or sys.argv[1] not in commands or not all("=" in a for a in sys.argv[2:]):
        sys.exit(__doc__)
    keys = dict(a.split("=", 1) for a in sys.argv[2:])
    try:
        commands[sys.argv[1]](keys)
    except (KeyError, ValueError) as e:
        sys.exit("epoch_order.py: %s" % ("missing: %s" % e if isinstance(e, KeyError) else e))
    if keys:
        sys.exit("epoch_order.py: unknown: " + ", ".join(keys))


if __name__ == "__main__":
    main()
