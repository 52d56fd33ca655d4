"""Checks of format-spec/epoch_order.py by itself; run.py runs them. That it agrees with the library is the business of
tests/unit/test_plan_vectors.c, which reads the vectors that it made."""

import random

import epoch_order

KNOWN = [  # counter, key, block: known answers of the authors' Random123 library for philox4x32-10
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def random_plan(rng):
    most = rng.choice((40, 40, 40, 900))
    shards = [rng.choice((0, rng.randrange(most), rng.randrange(most))) for _ in range(rng.randrange(1, 6))]
    return epoch_order.Plan(
        shards,
        rng.randrange(1, 24),
        seed=rng.randrange(9),
        epoch=rng.randrange(3),
        chunk=rng.choice((0, 1, 2, 3, 4, 16)),
        groups=rng.randrange(5),
        buffer=rng.choice((0, 1, 2, 3, 5, 8, 16, 64)),
        span=rng.choice((0, 0, 1, 3, 100)),
        echo=rng.choice((1, 1, 1, 2, 3, 5)),
        shuffle=rng.randrange(8) > 0,
    )


def order_is_exact(plan, rng):
    """Each sample e times, its repeats in their order, and the same rest from everywhere."""
    order, e = list(plan.order()), plan.e
    entries = {0, plan.total // 2, rng.randrange(plan.total + 1), rng.randrange(plan.total + 1)}
    return sorted(order) == [(s, r) for s in range(plan.N) for r in range(e)] and all(
        list(plan.order(begin)) == order[begin:] for begin in entries
    )


def batches_are_exact(plan, rng):
    """For some ranks, rows and cut: valid rows are E in order, and each rank has as many rows as every other."""
    world, rows, tail = rng.randrange(1, 5), rng.randrange(1, 9), rng.choice(("drop", "pad", "keep"))
    if tail == "keep":
        world = 1
    limit, start = rng.choice((0, rng.randrange(1, plan.total + 2))), rng.choice((0, rng.randrange(plan.total + 1)))
    end, step = min(limit or plan.total, plan.total), world * rows
    made = list(epoch_order.batches(plan, world, rows, tail, limit, start))
    wanted = list(plan.order(start, end))
    if tail == "drop":
        wanted = wanted[: len(wanted) // step * step]
    padded = [(x, (sample, repeat)) for _, _, _, x, sample, repeat, valid in made if not valid]
    delivered = set(plan.order(0, end)) | {(-1, 0)}
    return (
        [row[4:6] for row in made if row[6]] == wanted
        and (tail == "keep" or len({sum(row[1] == rank for row in made) for rank in range(world)}) == 1)
        and (not padded or tail == "pad" and 0 < len(padded) < step)
        and all(item in delivered for _, item in padded)
    )


def test_orders(result):
    for counter, key, block in KNOWN:
        made = epoch_order.philox(counter, key)
        result(made == block, "philox of %x" % counter[0], "%s" % (made,))
    rng, bad = random.Random(1), {order_is_exact: [], batches_are_exact: []}
    for case in range(200):
        plan = random_plan(rng)
        for check, cases in bad.items():
            if not check(plan, rng):
                cases.append(case)
    for check, cases in bad.items():
        result(not cases, "epoch_order.py: " + check.__name__.replace("_", " "), "cases %s" % cases)
