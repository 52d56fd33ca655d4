#!/usr/bin/env python3
"""From webdataset to shardpack: two lines. The shards stay readable by webdataset (pip install webdataset).

    python3 -m shardpack pack build/demo/photos photos.shards
    python3 examples/from_webdataset.py photos.shards

A dataset that was packed with --jpeg fast is for shardpack alone: its shards hold JPEG files in another form.

What falls away: shuffle buffers, with_epoch, splitting by node and worker, and ranks with different numbers of batches.
"""
import glob
import importlib.util
import sys

import numpy as np
import torch

import shardpack


def prepare(image):
    return torch.from_numpy(np.array(image.convert("RGB").resize((64, 64)))).permute(2, 0, 1)


def before(packed):
    import webdataset as wds

    shards = [f"pipe:zstd -dc {path}" for path in sorted(glob.glob(f"{packed}/*.tar.zst"))]
    dataset = wds.WebDataset(shards, shardshuffle=100).shuffle(1000).decode("pil").to_tuple("jpg", "cls")
    dataset = dataset.map_tuple(prepare, int).batched(32)
    return torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=min(2, len(shards)))


def after(packed):
    dataset = shardpack.ShardDataset(packed, batch_size=32, shuffle=True, transform=prepare)
    return torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)


def after_without_dataloader(packed):
    """Where the transform is one of the loader's, it decodes by itself, several times as fast."""
    return shardpack.Loader(packed, batch_size=32, shuffle=True, num_workers=2, dtype="uint8",
                            image=shardpack.Resize((64, 64)))


def is_fast(packed):
    return any(field.get("stored") for field in shardpack.Dataset(packed).manifest["fields"])


def run(name, loader):
    count = labels_sum = 0
    for images, labels in loader:  # the training loop stays as it is
        count += len(images)
        labels_sum += int(labels.sum())
    print(f"{name}: {count} images, {tuple(images.shape[1:])} {images.dtype}, sum of labels {labels_sum}")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    if is_fast(sys.argv[1]):
        print("webdataset: cannot decode these shards, they were packed with --jpeg fast")
    elif importlib.util.find_spec("webdataset"):
        run("webdataset", before(sys.argv[1]))
    else:
        print("webdataset: is not installed")
    run("shardpack.ShardDataset", after(sys.argv[1]))
    run("shardpack.Loader", after_without_dataloader(sys.argv[1]))


if __name__ == "__main__":
    main()
