"""Loaders that stand on PyTorch's DataLoader: torchvision's ImageFolder, webdataset, MosaicML Streaming, LitData."""
import functools
import glob
import importlib.metadata
import io
import os
import random

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SHARDS = 16    # of a webdataset: a multiple of every worker count tried


def version_of(*names):
    return lambda: ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def files_of(source):
    """(path, class) of all images in random order; the same order for every loader."""
    classes = sorted(name for name in os.listdir(source) if os.path.isdir(os.path.join(source, name)))
    found = [(os.path.join(source, name, file), number) for number, name in enumerate(classes)
             for file in sorted(os.listdir(os.path.join(source, name)))]
    random.Random(0).shuffle(found)
    return found


def read(path):
    with open(path, "rb") as file:
        return file.read()


def transform(output):
    from torchvision import transforms
    first = [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip()]
    if output == "uint8":
        return transforms.Compose([*first, transforms.PILToTensor()])
    return transforms.Compose([*first, transforms.ToTensor(), transforms.Normalize(MEAN, STD)])


def from_bytes(data):
    from PIL import Image
    return Image.open(io.BytesIO(data)).convert("RGB")


def as_list(rows):
    """Raw files have no common shape: a batch is a list of them."""
    return rows


def data_loader(args, dataset, maker=None, **more):
    if maker is None:
        from torch.utils.data import DataLoader as maker
    if args.output == "raw":
        more["collate_fn"] = as_list
    return maker(dataset, batch_size=args.batch, num_workers=args.workers, persistent_workers=args.workers > 0, **more)


def epochs_of(loader, rows=len):
    def epoch(_number):
        for batch in loader:
            yield rows(batch[0])
    return epoch


# ---- torchvision ----

def open_torchvision(args):
    from torchvision.datasets import ImageFolder
    dataset = ImageFolder(args.source, transform(args.output))
    return epochs_of(data_loader(args, dataset, shuffle=True))


# ---- webdataset ----

def prepare_webdataset(source, store):
    import webdataset
    files = files_of(source)
    for shard in range(SHARDS):
        with webdataset.TarWriter(os.path.join(store, f"shard-{shard:06d}.tar")) as writer:
            for number, (path, label) in list(enumerate(files))[shard::SHARDS]:
                writer.write({"__key__": f"{number:08d}", "jpg": read(path), "cls": label})


def open_webdataset(args):
    import webdataset
    shards = sorted(glob.glob(os.path.join(args.store, "*.tar")))
    if args.url:
        shards = [f"pipe:curl -s -f -L {args.url}/{os.path.basename(shard)}" for shard in shards]
    dataset = webdataset.WebDataset(shards, shardshuffle=len(shards)).shuffle(1000)
    if args.output == "raw":
        dataset = dataset.to_tuple("jpg", "cls").batched(args.batch, collation_fn=as_list)
        return raw_epochs(web_loader(args, dataset) if args.workers else dataset)
    dataset = dataset.decode("pil").to_tuple("jpg", "cls").map_tuple(transform(args.output)).batched(args.batch)
    return epochs_of(web_loader(args, dataset))


def web_loader(args, dataset):
    import webdataset
    return webdataset.WebLoader(dataset, batch_size=None, num_workers=args.workers,
                                persistent_workers=args.workers > 0)


def raw_epochs(batches):
    def epoch(_number):
        for batch in batches:
            yield len(batch)
    return epoch


# ---- MosaicML Streaming ----

def prepare_mosaicml(source, store):
    from streaming import MDSWriter
    with MDSWriter(out=store, columns={"jpg": "bytes", "cls": "int"}, size_limit=1 << 26) as writer:
        for path, label in files_of(source):
            writer.write({"jpg": read(path), "cls": label})


def open_mosaicml(args):
    import streaming
    from streaming.base.util import clean_stale_shared_memory
    clean_stale_shared_memory()
    change = None if args.output == "raw" else transform(args.output)

    class Images(streaming.StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return sample["jpg"] if change is None else change(from_bytes(sample["jpg"])), sample["cls"]

    dataset = Images(local=args.store, shuffle=True, batch_size=args.batch)
    loader = data_loader(args, dataset)
    return raw_epochs(loader) if args.output == "raw" else epochs_of(loader)


# ---- LitData ----

def import_litdata():
    """It names number types that torch 1.13 lacks; nothing here uses them. Its own processes need this too."""
    import torch
    for name in ("uint16", "uint32", "uint64"):
        if not hasattr(torch, name):
            setattr(torch, name, object())
    import litdata
    return litdata


def sample_of(file):
    path, label = file
    return {"jpg": read(path), "cls": label}


def prepare_litdata(source, store):
    import_litdata().optimize(fn=sample_of, inputs=files_of(source), output_dir=store, chunk_bytes="64MB",
                              num_workers=1)


def open_litdata(args):
    litdata = import_litdata()
    change = None if args.output == "raw" else transform(args.output)

    class Images(litdata.StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            data = bytes(sample["jpg"])
            return data if change is None else change(from_bytes(data)), sample["cls"]

    dataset = Images(args.store, shuffle=True)
    loader = data_loader(args, dataset, functools.partial(litdata.StreamingDataLoader, shuffle=True))
    return raw_epochs(loader) if args.output == "raw" else epochs_of(loader)


PEERS = {
    "torchvision": {"open": open_torchvision, "version": version_of("torchvision", "torch", "pillow")},
    "webdataset": {"prepare": prepare_webdataset, "open": open_webdataset,
                   "version": version_of("webdataset", "torch")},
    "mosaicml": {"prepare": prepare_mosaicml, "open": open_mosaicml,
                 "version": version_of("mosaicml-streaming", "torch")},
    "litdata": {"prepare": prepare_litdata, "open": open_litdata, "version": version_of("litdata", "torch")},
}
