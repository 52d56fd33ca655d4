"""epoch-order.tsv and augment.tsv, from ../epoch_order.py. README.md explains them."""

import hashlib
import os
import struct
import sys

from pieces import write

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import epoch_order  # noqa: E402

ALL = (1 << 64) - 1  # written as "all" where it is a count
COLUMNS = "seed epoch batch chunk groups buffer span echo shuffle from count".split()
DEFAULTS = dict(seed=1, epoch=0, batch=8, chunk=0, groups=0, buffer=0, span=0, echo=0, shuffle=1, count=ALL)
DEFAULTS["from"] = 0


def window(begin, count):
    return {"from": begin, "count": count}


MILLIARD, HUGE, MOST = "100000*10000", "64*4294967295", "4611686018427387903"
ORDERS = [
    # the worked examples of the text
    ("10,0,6,9", dict(batch=8, chunk=3, groups=2, buffer=2)),
    ("10,0,6,9", dict(batch=8, chunk=3, groups=2, buffer=2, echo=2)),
    # nothing, next to nothing, and batches larger than all
    ("0", {}),
    ("0,0,0", dict(echo=3)),
    ("1", {}),
    ("1", dict(batch=1, chunk=1, groups=1, buffer=1)),
    ("2", dict(batch=100)),
    ("3", dict(batch=256)),
    ("0,5,0,0,1,0", dict(batch=4)),
    ("100", dict(batch=1000, chunk=7)),
    # chunks and lanes
    ("100", dict(chunk=1)),
    ("100", dict(chunk=3)),
    ("100", dict(chunk=8)),
    ("100", dict(chunk=4000000000)),
    ("100", dict(batch=1)),
    ("97", dict(batch=7, chunk=2, groups=1)),
    ("97", dict(batch=7, chunk=2, groups=5)),
    ("97", dict(batch=7, chunk=2, groups=1000)),
    ("1000", dict(batch=512)),
    ("1000", dict(batch=513)),
    ("3000", dict(batch=1024)),
    ("3000", dict(batch=1536, chunk=16)),
    # buffers: the smallest, growing ones that never fill, exactly full, one more and one less
    ("97", dict(batch=4, groups=1, buffer=1)),
    ("97", dict(batch=4, groups=1, buffer=2)),
    ("97", dict(batch=4, groups=1, buffer=15)),
    ("97", dict(batch=4, groups=1, buffer=16)),
    ("7", dict(batch=4, groups=1, buffer=64)),
    ("8", dict(batch=4, groups=1, buffer=64)),
    ("9", dict(batch=4, groups=1, buffer=64)),
    ("64", dict(batch=4, groups=1)),
    ("119", dict(batch=4, groups=1)),
    ("120", dict(batch=4, groups=1)),
    ("121", dict(batch=4, groups=1)),
    ("200", dict(batch=4, groups=1, buffer=16777216)),
    # spans: single samples, their shortest length for more and more samples, then 16 a lane; whole shards, rounding
    ("320", dict(batch=32)),
    ("511", {}),
    ("512", {}),
    ("767", {}),
    ("768", {}),
    ("1023", {}),
    ("700,0,3,321", dict(batch=32)),
    ("700,0,3,321", dict(batch=32, buffer=1024)),
    ("3072", {}),
    ("3073", {}),
    ("500", dict(batch=4, groups=2, buffer=4)),
    ("11,12,13", dict(batch=4, groups=1, buffer=4)),
    ("20*50", {}),
    ("1000*5", dict(batch=32)),
    ("3*7,2*0,4*31,1000", dict(batch=64)),
    # spans of more samples: as many as asked for, as few as leave 256 of them, and one sample
    ("3072", dict(span=1)),
    ("3072", dict(span=6)),
    ("8000", dict(batch=256, span=36)),
    ("2000,0,2000,1,3999", dict(batch=256, span=28)),
    ("50000", dict(batch=256, span=4294967295)),
    # seeds and epochs
    ("1000", dict(batch=32, seed=0)),
    ("1000", dict(batch=32, seed=0, epoch=1)),
    ("1000", dict(batch=32, seed=1, epoch=0)),
    ("1000", dict(batch=32, seed=4294967296)),
    ("1000", dict(batch=32, seed=ALL, epoch=(1 << 30) - 1)),
    # echo: lanes that begin and end within a sample, lanes within one sample
    ("20", dict(echo=2)),
    ("97", dict(batch=7, chunk=2, groups=3, buffer=8, echo=3)),
    ("97", dict(batch=16, chunk=5, buffer=4, echo=5)),
    ("5", dict(batch=8, chunk=1, groups=3, echo=7)),
    ("3", dict(batch=4, echo=65536, **window(65530, 300))),
    # without shuffling
    ("10,5", dict(shuffle=0)),
    ("10,5", dict(shuffle=0, echo=3)),
    # entering in the middle
    ("50000", dict(batch=256, **window(12345, 1000))),
    ("50000", dict(batch=256, **window(49000, ALL))),
    ("1000*50", dict(batch=256, **window(20000, 1000))),
    ("50000", dict(batch=96, chunk=32, groups=1, buffer=512, **window(30000, 500))),
    ("50000", dict(batch=1, chunk=1, groups=1, buffer=300, echo=3, **window(77777, 500))),
    # whole and large, and windows into what nobody can list
    ("20000", dict(batch=256)),
    ("400*50", dict(batch=256, seed=7, epoch=3)),
    (MILLIARD, dict(batch=256, **window(0, 256))),
    (MILLIARD, dict(batch=2048, **window(777777777, 512))),
    (HUGE, dict(batch=256, **window(250000000000, 512))),
    (HUGE, dict(batch=64, chunk=5, buffer=200, echo=9, seed=3, **window(2000000000000, 512))),
    (MOST, dict(batch=16777216, chunk=131072, echo=2, **window(9223372036854775000, ALL))),
]

CROPS = [
    dict(width=500, height=375),
    dict(width=500, height=375, repeat=1),
    dict(width=500, height=375, epoch=1),
    dict(width=500, height=375, index=1281166),
    dict(width=375, height=500, index=2, seed=ALL, epoch=(1 << 30) - 1, repeat=65535),
    dict(width=1, height=1),
    dict(width=2, height=1, index=5),
    dict(width=1000, height=30, index=6),
    dict(width=30, height=1000, index=7),
    dict(width=65535, height=65535, index=1 << 40),
    dict(width=500, height=375, index=8, scale=(1.0, 1.0)),
    dict(width=500, height=375, index=9, scale=(0.0, 0.0)),
    dict(width=224, height=224, index=10, scale=(0.2, 1.0), ratio=(1.0, 1.0)),
    dict(width=640, height=427, index=11, scale=(0.9, 1.0), ratio=(0.25, 0.5)),
    dict(width=100, height=1, index=12, scale=(1.0, 1.0), ratio=(0.01, 0.02)),
]
CROPS += [dict(width=320 + 7 * i, height=240 + 5 * i, index=100 + i, seed=42, epoch=i % 3) for i in range(25)]


def digest(items, echo):
    """SHA-256 of the delivery numbers, and the first 16 of them."""
    numbers = [sample * echo + repeat for sample, repeat in items]
    return hashlib.sha256(struct.pack("<%dQ" % len(numbers), *numbers)).hexdigest(), numbers[:16]


def order_line(shards, given):
    keys = dict(DEFAULTS, **given)
    line = [shards] + ["all" if c == "count" and keys[c] == ALL else str(keys[c]) for c in COLUMNS]
    begin, count = keys.pop("from"), keys.pop("count")
    plan = epoch_order.Plan(epoch_order.shard_list(shards), **keys)
    sha, first = digest(plan.order(begin, begin + count), plan.e)
    return "\t".join(line + [sha, ",".join(map(str, first)) or "-"])


def crop_line(given):
    keys = dict(dict(seed=1, epoch=0, index=0, repeat=0, scale=(0.08, 1.0), ratio=(3 / 4, 4 / 3)), **given)
    crop, *flips = epoch_order.augmentation(hflip=0.5, vflip=0.25, **keys)
    numbers = [str(keys[k]) for k in ("seed", "epoch", "index", "repeat", "width", "height")]
    numbers += [repr(v) for v in keys["scale"] + keys["ratio"]]
    return "\t".join(numbers + list(map(str, crop)) + [str(int(f)) for f in flips])


def orders(out):
    lines = "#shards\t" + "\t".join(COLUMNS) + "\tsha256\tfirst\n"
    lines += "".join(order_line(shards, given) + "\n" for shards, given in ORDERS)
    write(out, "epoch-order.tsv", lines.encode())


def crops(out):
    lines = "#seed\tepoch\tindex\trepeat\twidth\theight\tscale_from\tscale_to\tratio_from\tratio_to"
    lines += "\tleft\ttop\tcrop_width\tcrop_height\thflip\tvflip\n"
    lines += "".join(crop_line(given) + "\n" for given in CROPS)
    write(out, "augment.tsv", lines.encode())
