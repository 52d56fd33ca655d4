#!/usr/bin/env python3
"""How well the order of an epoch mixes, beside a full shuffle: the tables of format-spec/epoch-order.md section 15.

    quality.py PLAN_DUMP [--seeds N]     PLAN_DUMP: the built tests/order/plan_dump

50,000 samples of 100 classes in batches of 256: one shard, or 1,000 shards of 50; for the classes only, 1,000,000
samples of 1,000 classes in 1,000 shards; and, with default settings, one small shard (SMALL, 10 times as many seeds).
Labels are those of a dataset packed in shuffled order (drawn at random over the stored order) and of one sorted by
class. Figures are means over seeds, correlations the largest of them, and what follows ± is the standard deviation
within an epoch.
"""
import argparse
import random
import statistics
import struct
import subprocess

SAMPLES, LARGE, BATCH, BLOCK, PARTS = 50_000, 1_000_000, 256, 500, 20
CLASSES, LARGE_CLASSES = 100, 1_000
SHARDS = {"one shard": "50000", "1,000 shards": "1000*50"}
SETTINGS = {
    "default: C 16, m 3, K 64": {},
    "d 400": {"span": 400},
    "C 16, m 3, K 1024": {"buffer": 1024},
    "C 4, m 1, K 64": {"chunk": 4},
    "C 2, m 1, K 64": {"chunk": 2},
    "C 1, m 1, K 64": {"chunk": 1},
}
SMALL = ((320, 8, 32), (5_000, 100, 256))  # samples, classes, batch
FULL = "full shuffle"


def planned(program, shards, seed, epoch, setting, batch=BATCH):
    words = dict(setting, shards=shards, batch=batch, seed=seed, epoch=epoch)
    raw = subprocess.run([program] + [f"{k}={v}" for k, v in words.items()], check=True, stdout=subprocess.PIPE).stdout
    order = list(struct.unpack(f"={len(raw) // 8}Q", raw))
    if sorted(order) != list(range(len(order))) or not order:
        raise SystemExit(f"{words}: not every sample once")
    return order


def shuffled(samples, seed, epoch):
    order = list(range(samples))
    random.Random(f"{seed} {epoch}").shuffle(order)
    return order


def positions(order):
    at = [0] * len(order)
    for x, sample in enumerate(order):
        at[sample] = x
    return at


def spearman(a, b):
    """Of two permutations."""
    n = len(a)
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(a, b)) / (n * (n * n - 1))


def neighbours(at, batch=BATCH):
    """Share of stored neighbours that land in the same batch."""
    return sum(a // batch == b // batch for a, b in zip(at, at[1:])) / (len(at) - 1)


def mates(first, second_at, batch=BATCH):
    """Share of the pairs of a batch that share a batch in the other epoch too."""
    again = pairs = 0
    for at in range(0, len(first), batch):
        here, counts = first[at : at + batch], {}
        for sample in here:
            there = second_at[sample] // batch
            counts[there] = counts.get(there, 0) + 1
        again += sum(n * (n - 1) for n in counts.values())
        pairs += len(here) * (len(here) - 1)
    return again / pairs


def classes(order, number, seed, batch=BATCH):
    """Distinct classes of each whole batch, for both kinds of labels; (name -> counts)."""
    whole, by_class = len(order) // batch * batch, [i * number // len(order) for i in range(len(order))]
    drawn = list(by_class)
    random.Random(f"labels {seed}").shuffle(drawn)
    return {
        name: [len({label[s] for s in order[at : at + batch]}) for at in range(0, whole, batch)]
        for name, label in (("shuffled", drawn), ("sorted", by_class))
    }


def chi_square(at):
    """Of where a block of stored samples lands in equal parts of the epoch, per degree of freedom; mean of all."""
    total = 0.0
    for block in range(0, SAMPLES, BLOCK):
        counts = [0] * PARTS
        for sample in range(block, block + BLOCK):
            counts[at[sample] * PARTS // SAMPLES] += 1
        total += sum((n - BLOCK / PARTS) ** 2 for n in counts) / (BLOCK / PARTS)
    return total / (SAMPLES // BLOCK) / (PARTS - 1)


def measure(first, second):
    """Figures of two epochs that need no labels."""
    at = [positions(first), positions(second)]
    return {
        "epochs": abs(spearman(at[0], at[1])),
        "stored": abs(spearman(at[0], range(SAMPLES))),
        "neighbours": neighbours(at[0]),
        "mates": mates(first, at[1]),
        "chi": chi_square(at[0]),
    }


def order_row(pairs):
    figures = [measure(*pair) for pair in pairs]

    def values(key):
        return [f[key] for f in figures]

    return (
        [f"{max(values(key)):.3f}" for key in ("epochs", "stored")]
        + [f"{statistics.mean(values(key)) * 100:.2f} %" for key in ("neighbours", "mates")]
        + [f"{statistics.mean(values('chi')):.2f}"]
    )


def class_row(orders, number, batch=BATCH):
    counts = [classes(order, number, seed, batch) for seed, order in enumerate(orders)]
    cells = []
    for name in ("shuffled", "sorted"):
        per_seed = [c[name] for c in counts]
        mean = statistics.mean(map(statistics.mean, per_seed))
        spread = statistics.mean(map(statistics.pstdev, per_seed))
        cells.append(f"{mean:.1f} ± {spread:.1f}, {min(map(min, per_seed))} to {max(map(max, per_seed))}")
    return cells


def table(heads, rows):
    print("\n| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


def middling(program, seeds):
    """Rows of both tables for 50,000 samples."""
    pairs = [(shuffled(SAMPLES, s, 0), shuffled(SAMPLES, s, 1)) for s in seeds]
    orders, labels = [[FULL] + order_row(pairs)], [[FULL] + class_row([p[0] for p in pairs], CLASSES)]
    for shards, text in SHARDS.items():
        for name, setting in SETTINGS.items():
            pairs = [[planned(program, text, s, epoch, setting) for epoch in (0, 1)] for s in seeds]
            orders.append([f"{shards}; {name}"] + order_row(pairs))
            labels.append([f"{shards}; {name}"] + class_row([p[0] for p in pairs], CLASSES))
    return orders, labels


def small(program, seeds):
    rows = []
    for samples, number, batch in SMALL:
        full = [[shuffled(samples, s, epoch) for epoch in (0, 1)] for s in seeds]
        ours = {
            name: [[planned(program, samples, s, epoch, setting, batch) for epoch in (0, 1)] for s in seeds]
            for name, setting in (("default", {}), ("d 36", {"span": 36}))
        }
        for name, pairs in {FULL: full, **ours}.items():
            near = statistics.mean(neighbours(positions(first), batch) for first, _ in pairs)
            again = statistics.mean(mates(first, positions(second), batch) for first, second in pairs)
            row = [f"{samples:,}, {number} classes, batches of {batch}; {name}", f"{near * 100:.2f} %", f"{again * 100:.2f} %"]
            rows.append(row + class_row([p[0] for p in pairs], number, batch))
    return rows


def large(program, seed):
    rows = [[FULL] + class_row([shuffled(LARGE, seed, 0)], LARGE_CLASSES)]
    for name, setting in SETTINGS.items():
        rows.append([name] + class_row([planned(program, "1000*1000", seed, 0, setting)], LARGE_CLASSES))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    seeds = range(1, options.seeds + 1)
    kinds = ["classes in a batch, packed shuffled", "classes in a batch, sorted"]
    heads = ["samples", "stored neighbours in one batch", "batch mates meet again"]
    table(heads + kinds, small(options.program, range(1, 10 * options.seeds + 1)))
    orders, labels = middling(options.program, seeds)
    heads = ["two epochs", "epoch and stored order", "stored neighbours in one batch", "batch mates meet again"]
    heads.append("blocks")
    table(["50,000 samples"] + heads, orders)
    table(["50,000 samples, 100 classes"] + kinds, labels)
    table(["1,000,000 samples, 1,000 classes"] + kinds, large(options.program, seeds[0]))


if __name__ == "__main__":
    main()
