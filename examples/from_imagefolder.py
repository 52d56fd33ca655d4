#!/usr/bin/env python3
"""From torchvision's ImageFolder and DataLoader to shardpack: two lines.

    python3 -m shardpack pack build/demo/photos photos.shards
    python3 examples/from_imagefolder.py build/demo/photos photos.shards

Both give float32 tensors [64, 3, 224, 224] on the scale 0 to 1, and the same labels for the same classes.
"""
import sys
import time

import torch
import torchvision
from torchvision import transforms

import shardpack


def before(folder):
    transform = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(),
                                    transforms.ToTensor()])
    dataset = torchvision.datasets.ImageFolder(folder, transform)
    return torch.utils.data.DataLoader(dataset, batch_size=64, shuffle=True, num_workers=2)


def after(packed):
    transform = [shardpack.RandomResizedCrop(224), shardpack.RandomHorizontalFlip()]
    return shardpack.Loader(packed, image=transform, batch_size=64, shuffle=True, num_workers=2)


def after_with_any_transform(packed):
    """Where transforms are Python code, DataLoader stays and runs it; only the dataset is another one."""
    transform = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ColorJitter(0.4, 0.4, 0.4),
                                    transforms.ToTensor()])
    dataset = shardpack.ShardDataset(packed, transform=transform, batch_size=64, shuffle=True)
    return torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2)


def run(name, loader):
    start, count = time.monotonic(), 0
    for images, labels in loader:  # the training loop stays as it is
        count += len(labels)
    print(f"{name}: {count} images in {time.monotonic() - start:.2f} s, {tuple(images.shape)} {images.dtype}")


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    run("ImageFolder", before(sys.argv[1]))
    run("shardpack.Loader", after(sys.argv[2]))
    run("shardpack.ShardDataset", after_with_any_transform(sys.argv[2]))


if __name__ == "__main__":
    main()
