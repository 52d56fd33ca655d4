"""Runs shardpack.Loader over a dataset and prints what it reached as JSON, as load_bench does for the C library.

    python_loader.py epochs|overhead|images DATASET [NAME=VALUE ...]     workers, batch, epochs, type, layout, output,
                                                                         api, decode, images

epochs    as load_bench: images/s from the first to the last batch of the first epoch, CPU seconds of all processes
overhead  CPU time of the trainer's thread per batch, which is ready when asked for and dropped at once: after a rest, in
          which others used the caches, and directly after another one; and of the extension's call alone
images    images per second of CPU time, decoded whole in this process: Dataset (api=random), one after another in random
          order, or ShardDataset (api=batches), batches of 64 of a shuffled epoch
"""
import json
import random
import resource
import statistics
import sys
import time

import shardpack

DEFAULTS = {"workers": 2, "batch": 256, "epochs": 2, "type": "uint8", "layout": "NHWC", "output": "torch",
            "api": "random", "decode": "array", "images": 1000}


def make(path, options):
    return shardpack.Loader(path, batch_size=int(options["batch"]), num_workers=int(options["workers"]), shuffle=True,
                            dtype=options["type"], layout=options["layout"].upper(), output=options["output"],
                            hflip=0.5)


def cpu_seconds():
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, (
        resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def epochs(path, options):
    begin, cpu = time.monotonic(), cpu_seconds()
    images = first = first_images = batches = 0
    with make(path, options) as loader:
        for epoch in range(int(options["epochs"])):
            for columns in loader:
                now = time.monotonic()
                if epoch == 0:
                    first, first_images = (first, first_images) if batches else (now, len(columns[1]))
                    last, batches, images = now, batches + 1, images + len(columns[1])
                del columns
    took = max(last - first, 1e-9)
    return {"images": images, "batches": batches, "rate": (images - first_images) / took, "first_batch": first - begin,
            "cpu": cpu_seconds() - cpu, "epochs": int(options["epochs"])}


def timed(call):
    """CPU seconds of this thread for a call and for dropping the batch that it gives."""
    before = time.thread_time_ns()
    batch = call()
    del batch
    return (time.thread_time_ns() - before) / 1e9


def overhead(path, options):
    """Of one loader, in turn: a batch through Python after a rest, one more at once, and one through the extension."""
    rested, again, bare = [], [], []
    with make(path, options) as loader:
        for _ in range(int(options["epochs"])):
            steps = iter(loader)
            ways = (rested, lambda: next(steps, None)), (again, lambda: next(steps, None)), (bare, loader._core.next)
            for i in range(len(loader)):
                seconds, call = ways[i % 3]
                if i % 3 != 1:
                    time.sleep(float(options.get("wait", 0.3)))  # until batches are ready
                seconds.append(timed(call))
            loader.set_epoch(loader.epoch + 1)
    return {"calls": len(rested), "python": statistics.median(rested), "again": statistics.median(again),
            "extension": statistics.median(bare)}


def in_random_order(path, decode, most):
    dataset = shardpack.Dataset(path, decode=decode)
    numbers = random.Random(1).sample(range(len(dataset)), min(most, len(dataset)))
    before = cpu_seconds()
    for number in numbers:
        dataset[number]
    return len(numbers), cpu_seconds() - before


def in_batches(path, decode, most):
    import torch

    torch.set_num_threads(1)
    dataset = shardpack.ShardDataset(path, batch_size=64, shuffle=True, decode=decode, transform=id, limit=most)
    before = cpu_seconds()
    images = sum(len(labels) for _, labels in dataset)
    return images, cpu_seconds() - before


def whole_images(path, options):
    images, cpu = {"random": in_random_order, "batches": in_batches}[options["api"]](
        path, options["decode"], int(options["images"]))
    return {"images": images, "cpu": cpu, "rate": images / cpu}


def main():
    mode, path, *given = sys.argv[1:]
    options = {**DEFAULTS, **dict(word.split("=", 1) for word in given)}
    print(json.dumps({"epochs": epochs, "overhead": overhead, "images": whole_images}[mode](path, options)))


if __name__ == "__main__":
    main()
