#!/usr/bin/env python3
"""Trains a small ResNet with PyTorch, with checkpoints from which it goes on exactly: killed at any moment and started
again, it ends with the same weights, bit for bit.

    python3 -m shardpack pack --split train=0.8,val=0.2 build/demo/photos photos.split
    python3 examples/train_torch.py photos.split --checkpoint run.pt
    torchrun --nproc_per_node 2 examples/train_torch.py photos.split --checkpoint two.pt     # two processes, gloo

With several processes `--batch-size` is that of all together, so that any number of them sees the same global batches.
"""
import argparse
import hashlib
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

import shardpack

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Block(nn.Module):
    """Two convolutions beside a shortcut. Group norm: no statistics that would depend on how a batch is split."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.one = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm_one, self.norm_two = nn.GroupNorm(4, outputs), nn.GroupNorm(4, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        y = self.norm_two(self.two(F.relu(self.norm_one(self.one(x)))))
        return F.relu(y + self.shortcut(x))


def make_model(classes):
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, classes))


def make_loaders(args, world_size):
    """Ranks are found by the loader itself: torch.distributed knows them."""
    if args.batch_size % world_size:
        raise SystemExit(f"--batch-size {args.batch_size} must be a multiple of {world_size} processes")
    common = {"batch_size": args.batch_size // world_size, "num_workers": args.workers, "mean": MEAN, "std": STD,
              "chunk": args.chunk}
    train = shardpack.Loader(os.path.join(args.data, "train"), shuffle=True, seed=args.seed, hflip=0.5,
                             image=shardpack.RandomResizedCrop(args.size, scale=(0.3, 1.0)), **common)
    val = shardpack.Loader(os.path.join(args.data, "val"), fields=["image", "label", "valid"],
                           image=[shardpack.Resize(args.size * 8 // 7), shardpack.CenterCrop(args.size)], **common)
    return train, val


def of_all_ranks(sums):
    total = sums.clone()
    if dist.is_initialized():
        dist.all_reduce(total)
    return total


def save(path, model, optimizer, train, sums):
    """The file is the old one or the new one, also if this process is killed just here."""
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": train.state_dict(),
                "sums": sums}, path + ".new")
    os.replace(path + ".new", path)


def evaluate(model, val):
    counts = torch.zeros(2)
    model.eval()
    with torch.no_grad():
        for batch in val:
            right = model(batch.image).argmax(1) == batch.label
            counts += torch.tensor([(right & batch.valid).sum(), batch.valid.sum()])
    model.train()
    counts = of_all_ranks(counts)
    return float(counts[0] / counts[1])


def digest(model):
    sums = hashlib.sha256()
    for tensor in model.state_dict().values():
        sums.update(tensor.numpy().tobytes())
    return sums.hexdigest()


def train_all(args, model, optimizer, train, val, rank, sums):
    """sums: of the losses and the rows of the epoch so far, so that its mean is right after a resume, too."""
    steps = nn.parallel.DistributedDataParallel(model) if dist.is_initialized() else model
    for epoch in range(train.epoch, args.epochs):
        done = len(train) - train.remaining
        for step, (images, labels) in enumerate(train, done + 1):
            # A sum over the rows that count (others have label -100), over the size of a whole batch: a batch may be
            # made of padding alone.
            loss = F.cross_entropy(steps(images), labels, reduction="sum") / train.batch_size
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sums += torch.tensor([loss.item() * train.batch_size, (labels >= 0).sum().item()])
            if args.checkpoint and step % args.every == 0:
                total = of_all_ranks(sums)
                if rank == 0:
                    save(args.checkpoint, model, optimizer, train, total)
            if rank == 0 and args.verbose:
                print(f"epoch {epoch} step {step} of {len(train)}: loss {loss.item():.4f}", flush=True)
        accuracy, total = evaluate(model, val), of_all_ranks(sums)
        sums.zero_()
        if rank == 0:
            print(f"epoch {epoch}: loss {total[0] / total[1]:.3f}, accuracy {accuracy:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="folder with the datasets train and val")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--chunk", type=int, default=16, help="divides the batch size of a process: reads the least")
    parser.add_argument("--size", type=int, default=64, help="of the images, in pixels")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, help="per process")
    parser.add_argument("--checkpoint", help="file; if it exists, training goes on from there")
    parser.add_argument("--every", type=int, default=5, help="steps between checkpoints")
    parser.add_argument("--verbose", action="store_true", help="a line per step")
    args = parser.parse_args()

    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        dist.init_process_group("gloo")
    rank, world_size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    torch.manual_seed(args.seed)
    torch.use_deterministic_algorithms(True)
    train, val = make_loaders(args, world_size)
    model = make_model(len(train.dataset.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    sums = torch.zeros(2, dtype=torch.float64)
    if args.checkpoint and os.path.exists(args.checkpoint):
        state = torch.load(args.checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        train.load_state_dict(state["loader"])
        if rank == 0:
            sums += state["sums"]
    if rank == 0:
        print(train, flush=True)
    train_all(args, model, optimizer, train, val, rank, sums)
    if rank == 0:
        if args.checkpoint:
            save(args.checkpoint, model, optimizer, train, sums)
        print("weights", digest(model))
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
