#!/usr/bin/env python3
"""Trains a ResNet-50 on a GPU, fed by shardpack.

    python3 -m shardpack pack photos photos.shards
    python3 examples/train_gpu.py photos.shards --epochs 2

Images go up as uint8, one batch ahead of the step, and become normalised float16 on the device.
"""
import argparse
import time

import torch
import torchvision

import shardpack
from shardpack.gpu import normalize

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--device", default="cuda:0")
    options = parser.parse_args()

    loader = shardpack.Loader(options.dataset, batch_size=options.batch_size, shuffle=True, drop_last=True,
                              num_workers=options.workers, image=shardpack.RandomResizedCrop(224), hflip=0.5,
                              dtype="uint8", layout="channels_last", device=options.device)
    classes = max(2, len(loader.dataset.classes))
    model = torchvision.models.resnet50(num_classes=classes).to(options.device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)()  # the second one before PyTorch 2.3
    for epoch in range(options.epochs):
        start, images_seen, total = time.monotonic(), 0, torch.zeros((), device=options.device)
        for images, labels in loader:  # both are on the device
            with torch.autocast("cuda", torch.float16):
                inputs = normalize(images, MEAN, STD, dtype="float16", layout="channels_last")
                loss = loss_of(model(inputs), labels)
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.detach()  # without waiting for it
            images_seen += len(labels)
        mean = total.item() / max(1, len(loader))
        print(f"epoch {epoch}: loss {mean:.3f}, {images_seen / (time.monotonic() - start):.0f} images/s")
    stats = loader.stats()
    print(f"waited {stats['wait_seconds']:.2f} s for batches, {stats['upload_wait_seconds']:.2f} s for the device")
    loader.close()


if __name__ == "__main__":
    main()
