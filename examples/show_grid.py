#!/usr/bin/env python3
"""A look at a dataset, in cells as of a notebook: what is in it, and a grid of what a model would see as a PNG.

    python3 examples/show_grid.py photos.shards grid.png        (needs Pillow)
"""
# %% The dataset
import sys

import numpy as np
from PIL import Image

import shardpack

path, target = (sys.argv[1:] + ["photos.shards", "grid.png"][len(sys.argv) - 1 :])[:2]
dataset = shardpack.Dataset(path)
print(dataset)
print("classes:", ", ".join(dataset.classes))

# %% One sample, by its number and by its key
sample = dataset[0]
print(sample)
print("packed from", sample.path(), "with", sample.image().size, "pixels")
assert dataset[sample.key].index == 0

# %% A batch as it comes in training: random crops, mirrored now and then
with shardpack.Loader(path, batch_size=24, shuffle=True, seed=1, num_workers=0, output="numpy", dtype="uint8",
                      layout="NHWC", image=shardpack.RandomResizedCrop(128), hflip=0.5) as loader:
    images, labels = next(iter(loader))

# %% The grid
columns = 6
rows = -(-len(images) // columns)
grid = np.full((rows * 132 - 4, columns * 132 - 4, 3), 255, np.uint8)
for i, image in enumerate(images):
    y, x = divmod(i, columns)
    grid[y * 132 : y * 132 + 128, x * 132 : x * 132 + 128] = image
Image.fromarray(grid).save(target)
print(f"{target}: {len(images)} images:", " ".join(dataset.classes[label] for label in labels[:columns]), "...")
