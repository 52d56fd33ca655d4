"""What run.sh runs: see there. Prints a table; a row that must hold and does not counts as failed."""
import argparse
import contextlib
import ctypes
import os
import pathlib
import random
import subprocess
import time
import warnings

import torch

import shardpack
from shardpack import gpu

MIB = 1 << 20
rows = []


def row(name, value, wanted=None, good=True):
    rows.append(bool(good))
    print(f"{name:<58} {value:<30} {'' if wanted is None else 'wanted: ' + wanted:<28} {'' if good else 'FAILED'}",
          flush=True)


class Device:
    """A GPU through PyTorch."""

    name = "cuda:0"
    real = True

    def __init__(self):
        self.title = torch.cuda.get_device_name(0)
        torch.cuda._sleep(1000)
        torch.cuda.synchronize()
        start = time.monotonic()
        torch.cuda._sleep(200_000_000)
        torch.cuda.synchronize()
        self.cycles = 200_000_000 / (time.monotonic() - start)

    def synchronize(self):
        torch.cuda.synchronize()

    def busy(self, seconds):
        """Queues work of that length on the current stream."""
        torch.cuda._sleep(int(self.cycles * seconds))

    def empty_like(self, tensor):
        return torch.empty_like(tensor, device=self.name)

    def copy(self, out, tensor, stream=None):
        with torch.cuda.stream(stream) if stream is not None else contextlib.nullcontext():
            out.copy_(tensor, non_blocking=True)

    def stream(self):
        return torch.cuda.Stream()

    def is_pinned(self, tensor):
        return tensor.is_pinned()

    def pinned(self, tensor):
        return torch.empty_like(tensor, pin_memory=True)


class StandInDevice:
    """No GPU: see tests/cudart_standin.c."""

    name = "cuda:0"
    real = False
    title = "STAND-IN, no GPU: figures mean nothing"

    def __init__(self, library):
        from standin_cuda import StandInCuda

        os.environ["SHARDPACK_CUDART"] = str(library)
        self.lib = ctypes.CDLL(str(library))
        self.lib.standin_is_locked.argtypes = [ctypes.c_void_p]
        self.cuda = StandInCuda(self.lib)
        self.lib.standin_allow_pageable(1)
        gpu.cuda = lambda: self.cuda

    def synchronize(self):
        for stream in [None, *self.cuda.streams]:
            self.lib.cudaStreamSynchronize(stream)

    def busy(self, seconds):
        pass

    def empty_like(self, tensor):
        return self.cuda.empty(tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2], 0)

    def copy(self, out, tensor, stream=None):
        size = tensor.numel() * tensor.element_size()
        code = self.lib.cudaMemcpyAsync(ctypes.c_void_p(out.data_ptr()), ctypes.c_void_p(tensor.data_ptr()),
                                        ctypes.c_size_t(size), 1, ctypes.c_void_p(stream.cuda_stream if stream else 0))
        assert code == 0, code

    def stream(self):
        return self.cuda.new_stream(0)

    def is_pinned(self, tensor):
        return bool(self.lib.standin_is_locked(tensor.data_ptr()))

    def pinned(self, tensor):
        return torch.empty_like(tensor)


def loader(options, **more):
    return shardpack.Loader(options.kit / "photos.shards", **{
        "batch_size": options.batch, "shuffle": True, "num_workers": options.workers, "dtype": "uint8", "layout": "NHWC",
        "image": shardpack.RandomResizedCrop(options.side), "output": "torch", "drop_last": True, **more})


def some(batches, n):
    """n batches, over as many epochs as it takes."""
    while n > 0:
        for batch in batches:
            yield batch
            n -= 1
            if n == 0:
                return


def bytes_are_right(device, options):
    """200 batches, with little memory to spare: blocks come and go on the device, and slots are as few as can be."""
    wrong = 0
    ballast = [torch.ones(64 * MIB, dtype=torch.uint8) for _ in range(options.ballast)]
    with loader(options) as host, loader(options, device=device.name, prefetch=1) as fed:
        for i, (mine, theirs) in enumerate(zip(some(host, options.batches), some(fed, options.batches))):
            if device.real:
                block = torch.empty(random.Random(i).randrange(1, 64) * MIB, dtype=torch.uint8, device=device.name)
                block.fill_(i % 256)
                del block
                theirs = [tensor.cpu() for tensor in theirs]
            else:
                device.synchronize()
            wrong += sum(not torch.equal(a, b) for a, b in zip(mine, theirs))
        stats = fed.stats()
    del ballast
    row(f"columns of {options.batches} batches with other bytes than the host's", wrong, "0", wrong == 0)
    row("uploaded", f"{stats['upload_bytes'] / MIB:.0f} MiB, {stats['copies']} private copies")


def slots_wait(device, options):
    """Copies are queued behind work, then the tensors are dropped: their memory must not be filled meanwhile."""
    for name, stream in (("current stream", None), ("another stream, release_after", device.stream())):
        kept, want, pinned = [], [], True
        with loader(options, pin_memory=True, prefetch=1) as host:
            for batch in some(host, 12):
                images = batch[0]
                pinned = pinned and device.is_pinned(images)
                want.append(images.clone())
                out = device.empty_like(images)
                device.busy(0.02)
                if stream is not None and device.real:
                    stream.wait_stream(torch.cuda.current_stream())
                device.copy(out, images, stream)
                if stream is not None:
                    batch.release_after(stream)
                kept.append(out)
                del batch, images
            device.synchronize()
        row(f"is_pinned(), {name}", pinned, "True", pinned)
        wrong = sum(not torch.equal(a, b.cpu()) for a, b in zip(want, kept))
        row(f"batches that were overwritten early, {name}", wrong, "0", wrong == 0)


def rate(device, source, times=20):
    out, best = device.empty_like(source), 0.0
    for _ in range(5):
        device.synchronize()
        start = time.monotonic()
        for _ in range(times):
            device.copy(out, source)
        device.synchronize()
        best = max(best, source.numel() * source.element_size() * times / (time.monotonic() - start))
    return best / 1e9


def bandwidth(device, options):
    with loader(options, pin_memory=True, batch_size=options.big) as host:
        images = next(iter(host))[0]
        slot, plain, pageable = rate(device, images), rate(device, device.pinned(images)), rate(device, images.clone())
        stats = host.stats()
        size = images.numel() * (4 + 2) / MIB
    row("upload from a slot", f"{slot:.2f} GB/s")
    row("plain pinned memory", f"{plain:.2f} GB/s")
    row("pageable memory", f"{pageable:.2f} GB/s")
    row("slot / plain pinned", f"{slot / plain:.3f}", "at least 0.9", not device.real or slot / plain >= 0.9)
    row("page-locking when the loader opens", f"{stats['pin_seconds'] * 1e3:.0f} ms for {size:.0f} MiB")


def overlap(device, options):
    def epoch(batches, step):
        device.synchronize()
        start = time.monotonic()
        for _ in some(batches, options.steps) if batches is not None else range(options.steps):
            if step:
                device.busy(step)
        device.synchronize()
        return time.monotonic() - start

    with loader(options, device=device.name) as fed:
        next(iter(fed))
        upload = epoch(fed, 0)
        for factor in (0.7, 1.5):
            step = upload / options.steps * factor
            alone, both = epoch(None, step), epoch(fed, step)
            longer = max(alone, upload)
            row(f"epoch: upload {upload:.2f} s, step {alone:.2f} s, both", f"{both:.2f} s, {both / longer:.3f} of the longer",
                "at most 1.05", not device.real or both <= 1.05 * longer)


def train(device, options):
    """Images per second of a training step, the same model and images."""
    import torchvision
    from torchvision import transforms

    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    folder = options.work / "photos"
    subprocess.run([options.work / "site/shardpack/_bin/shardpack", "extract", "--quiet", options.kit / "photos.shards",
                    folder], check=True)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 8, 8), torch.nn.Flatten(), torch.nn.Linear(8 * (options.side // 8) ** 2, 8))
    if device.real:
        model = torchvision.models.resnet50(num_classes=8).to(device.name, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loss_of = torch.nn.CrossEntropyLoss()

    def step(images, labels):
        with torch.autocast("cuda", torch.bfloat16) if device.real else contextlib.nullcontext():
            loss = loss_of(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def measure(batches, prepare):
        n, start = 0, 0.0
        for i, (images, labels) in enumerate(some(batches, options.train + options.warm)):
            if i == options.warm:
                device.synchronize()
                start = time.monotonic()
            step(*prepare(images, labels))
            n += len(labels) * (i >= options.warm)
        device.synchronize()
        return n / (time.monotonic() - start)

    def from_uint8(images, labels):
        if not device.real:
            device.synchronize()
        return gpu.normalize(images, mean, std, layout="channels_last"), labels

    def move(images, labels):
        if not device.real:
            return images, labels
        return (images.to(device.name, non_blocking=True, memory_format=torch.channels_last),
                labels.to(device.name, non_blocking=True))

    with loader(options, device=device.name, hflip=0.5) as fed:
        ours = measure(fed, from_uint8)
    transform = transforms.Compose([transforms.RandomResizedCrop(options.side), transforms.RandomHorizontalFlip(),
                                    transforms.ToTensor(), transforms.Normalize(mean, std)])
    data = torchvision.datasets.ImageFolder(folder, transform)
    theirs = measure(torch.utils.data.DataLoader(data, batch_size=options.batch, shuffle=True, drop_last=True,
                                                 num_workers=options.workers, pin_memory=device.real), move)
    row(f"training step, shardpack.Loader, {options.workers} workers", f"{ours:.0f} images/s")
    row(f"training step, DataLoader, {options.workers} workers", f"{theirs:.0f} images/s")
    row("Loader / DataLoader", f"{ours / theirs:.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kit", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--stand-in", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("error", shardpack.ShardpackWarning)
    warnings.filterwarnings("ignore", message=".*lanes over.*", category=shardpack.ShardpackWarning)
    small = options.stand_in
    options.side, options.workers = (64, 2) if small else (224, 16)
    options.batch, options.big, options.batches = (32, 64, 60) if small else (64, 256, 200)
    options.ballast, options.steps, options.train, options.warm = (1, 20, 2, 1) if small else (32, 120, 60, 10)
    device = StandInDevice(options.kit / "libcudart_standin.so") if small else Device()
    row("device", device.title)
    row("PyTorch", f"{torch.__version__}, CUDA {torch.version.cuda}")
    for part in (bytes_are_right, slots_wait, bandwidth, overlap, train):
        start = time.monotonic()
        try:
            part(device, options)
        except Exception as problem:
            row(part.__name__, f"{type(problem).__name__}: {problem}", "no error", False)
        print(f"    ({part.__name__}: {time.monotonic() - start:.1f} s)", flush=True)
    failed = rows.count(False)
    if small:
        device.lib.standin_violations.restype = ctypes.c_uint64
        broken = device.lib.standin_violations(None)
        row("rules broken that the stand-in checks", broken, "0", broken == 0)
        failed = rows.count(False)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
