"""Bad input: each is refused with a line that names it."""
import json
import pathlib
import shutil

import numpy as np
import pytest
from conftest import loader

import shardpack
from shardpack import CenterCrop, Image, RandomHorizontalFlip, RandomResizedCrop, RandomVerticalFlip, Raw, Resize

WRONG = [
    ({"batch_size": 0}, ValueError, r"batch_size=0: must be 1 to 1048576"),
    ({"batch_size": 2.5}, TypeError, r"batch_size=2.5: must be an integer, not float"),
    ({"batch_size": True}, TypeError, "batch_size=True: must be an integer"),
    ({"seed": -1}, ValueError, "seed=-1: must be 0 to 18446744073709551615"),
    ({"num_workers": -1}, ValueError, "num_workers=-1: must be 0 to 1024"),
    ({"num_workers": 2000}, ValueError, "num_workers=2000"),
    ({"prefetch": 0}, ValueError, "prefetch=0: must be 1 to 1024"),
    ({"prefetch": 2, "prefetch_factor": 2}, ValueError, "give one of them"),
    ({"prefetch_factor": 0}, ValueError, "prefetch_factor=0"),
    ({"shuffle": 1}, TypeError, "shuffle=1: must be True or False"),
    ({"chunk": 0}, ValueError, "chunk=0"),
    ({"lane_buffer": 0}, ValueError, "lane_buffer=0"),
    ({"limit": 0}, ValueError, "limit=0: must be 1"),
    ({"indices": []}, ValueError, "indices: there are none; at least one sample must be chosen"),
    ({"indices": [3, 1, 3]}, ValueError, "indices: 3 is there more than once"),
    ({"indices": [-1, 1]}, ValueError, "indices: -1: must be at least 0"),
    ({"indices": range(100, 161)}, ValueError, "indices: 160 at place 60: the dataset has 160 samples"),
    ({"indices": [1.0]}, TypeError, r"indices=\[1.0\]: must be integers, in one dimension"),
    ({"indices": [[1]]}, TypeError, r"indices=\[\[1\]\]: must be integers"),
    ({"indices": "1,2"}, TypeError, "indices='1,2': must be integers"),
    ({"indices": np.ones(160, bool)}, TypeError, "indices: a mask was given; numpy.flatnonzero"),
    ({"indices": 3}, TypeError, "indices=3: must be integers"),
    ({"echo": 0}, ValueError, "echo=0: must be 1 to 65536"),
    ({"tail": "loop"}, ValueError, "tail='loop': must be one of 'drop', 'pad', 'keep'"),
    ({"tail": "keep", "rank": 0, "world_size": 2}, ValueError, "tail='keep' with 2 ranks"),
    ({"tail": "pad", "drop_last": True}, ValueError, "drop_last means tail='drop'"),
    ({"rank": 1}, ValueError, "give both or neither"),
    ({"rank": 2, "world_size": 2}, ValueError, "rank=2: must be 0 to 1"),
    ({"dtype": "float64"}, ValueError, "dtype='float64': must be one of 'uint8', 'float16', 'float32'"),
    ({"dtype": np.float64}, ValueError, "dtype='float64'"),
    ({"layout": "CHW"}, ValueError, "layout='CHW': must be one of 'NHWC', 'NCHW', 'channels_last'"),
    ({"mean": 0.5, "dtype": "uint8"}, ValueError, 'need dtype="float32"'),
    ({"mean": [1, 2]}, ValueError, "must be a number or three numbers"),
    ({"std": 0}, ValueError, "std=.*must not be 0"),
    ({"std": "x"}, TypeError, "must be a number or three numbers"),
    ({"hflip": 2}, ValueError, "hflip=2: must be 0 to 1"),
    ({"max_errors": 3}, ValueError, "max_errors=3: is for on_error="),
    ({"hflip": float("nan")}, ValueError, "hflip=nan"),
    ({"timeout": -1}, ValueError, "timeout=-1: must be 0"),
    ({"timeout": "1"}, TypeError, "timeout='1': must be a number"),
    ({"on_error": "skip"}, ValueError, "on_error='skip': must be one of 'fail', 'substitute'"),
    ({"on_hold": "wait"}, ValueError, "on_hold='wait': must be one of 'copy', 'error'"),
    ({"output": "jax"}, ValueError, "output='jax': must be one of 'torch', 'numpy', 'dlpack'"),
    ({"output": "dlpack", "layout": "channels_last"}, ValueError, "channels_last"),
    ({"collate_fn": len}, ValueError, "collate_fn=.*ShardDataset"),
    ({"worker_init_fn": len}, ValueError, "worker_init_fn=.*no Python processes"),
    ({"sampler": [1]}, ValueError, "sampler=.*Dataset takes samplers"),
    ({"in_order": False}, ValueError, "in_order=False"),
    ({"batchsize": 3}, TypeError, "unexpected keyword argument 'batchsize'"),
    ({"image": 224}, TypeError, "image=224: must be of RandomResizedCrop"),
    ({"image": Resize(256)}, ValueError, "images of a batch have one size"),
    ({"image": CenterCrop(224)}, ValueError, "images of a batch have one size"),
    ({"image": [Resize((9, 9)), CenterCrop(4)]}, ValueError, "images of a batch have one size"),
    ({"image": [RandomResizedCrop(9), RandomHorizontalFlip(), RandomHorizontalFlip()]}, ValueError, "two flips"),
    ({"image": [RandomResizedCrop(9), RandomHorizontalFlip()], "hflip": 0.3}, ValueError, "hflip=0.3: .*give one of"),
    ({"image": [RandomResizedCrop(9), RandomVerticalFlip()], "vflip": 0.0}, ValueError, "vflip=0.0: .*give one of"),
    ({"fields": []}, ValueError, "at least one column"),
    ({"fields": "image"}, TypeError, "must be a list of names"),
    ({"fields": ["seg.png"]}, ValueError, "'seg.png' cannot be an attribute; use a dict"),
    ({"fields": ["label", "label"]}, ValueError, "comes twice"),
    ({"fields": ["label", 3]}, TypeError, "3: must be a name"),
    ({"fields": ["nothing"]}, ValueError, 'field "nothing": no sample of the dataset has it; there are cls, jpg, json, txt'),
    ({"fields": {"a": 5}}, TypeError, r"fields\['a'\]=5: must be of RandomResizedCrop"),
    ({"fields": {"a": Image(channels=2)}}, ValueError, "channels=2"),
    ({"fields": {"a": Image(paired=True)}}, ValueError, "paired"),
]


@pytest.mark.parametrize("options, kind, text", WRONG, ids=[str(row[0]) for row in WRONG])
def test_arguments(data, options, kind, text):
    with pytest.raises(kind, match=text):
        loader(data, **options)


@pytest.mark.parametrize("name, value", [
    ("image", Resize(8)), ("hflip", 0.5), ("hflip", 0.0), ("vflip", 0.5), ("vflip", 0), ("dtype", "uint8"),
    ("dtype", "float32"), ("layout", "NHWC"), ("layout", "NCHW"), ("mean", 0.5), ("std", 0.5),
])  # fmt: skip
def test_image_arguments_without_images(data, name, value):
    with pytest.raises(shardpack.ArgumentError, match=f"{name}=.*: is about images, and fields names no column"):
        shardpack.Loader(data, batch_size=4, fields=["label"], **{name: value})
    shardpack.Loader(data, batch_size=4, num_workers=0, fields=["label"], **{name: None}).close()


@pytest.mark.parametrize("make, kind, text", [
    (lambda: RandomResizedCrop(0), ValueError, "size=0: must be 1 to 16384"),
    (lambda: RandomResizedCrop((1, 2, 3)), ValueError, r"must be an integer or \(height, width\)"),
    (lambda: RandomResizedCrop(9, scale=(0, 1)), ValueError, "scale=.*more than 0"),
    (lambda: RandomResizedCrop(9, scale=(0.5, 0.2)), ValueError, "smaller one first"),
    (lambda: RandomResizedCrop(9, scale=0.5), TypeError, "scale=0.5: must be two numbers"),
    (lambda: RandomResizedCrop(9, ratio=(0, 1)), ValueError, "ratio="),
    (lambda: RandomResizedCrop(9, interpolation="lanczos"), ValueError, "interpolation='lanczos': must be one of"),
    (lambda: RandomHorizontalFlip(1.5), ValueError, "p=1.5: must be 0 to 1"),
    (lambda: Raw("x", decode="utf8"), ValueError, "decode='utf8'"),
    (lambda: Raw(3), TypeError, "field=3"),
])  # fmt: skip
def test_transforms(make, kind, text):
    with pytest.raises(kind, match=text):
        make()


def test_transforms_are_immutable_and_equal():
    crop = RandomResizedCrop(224, scale=(0.2, 1.0))
    assert crop == RandomResizedCrop(224, scale=(0.2, 1.0)) and hash(crop) == hash(crop)
    with pytest.raises(AttributeError):
        crop.size = 3


def test_torchvision_transforms_are_refused_with_a_hint(data):
    vision = pytest.importorskip("torchvision.transforms")
    with pytest.raises(TypeError, match="torchvision's own transforms run in ShardDataset"):
        loader(data, image=vision.Resize(3))


@pytest.mark.parametrize("path, kind, text", [
    ("missing", FileNotFoundError, "missing: no such dataset"),
    (5, TypeError, "path_or_urls=5: must be a path or URL, not int"),
    ("", ValueError, "must not be empty"),
    (["a", "b"], ValueError, "several places must be URLs"),
    (np.zeros(3), TypeError, "the path of a packed dataset is needed"),
    ("gopher://x/y", ValueError, "gopher"),
    ("data\0more", ValueError, "null byte"),
    (["data\0more"], ValueError, "null byte"),
])  # fmt: skip
def test_paths(path, kind, text):
    with pytest.raises(kind, match=text):
        shardpack.Loader(path, batch_size=1)


def test_text_with_a_zero_byte(data, tmp_path):
    """It is not cut there: another dataset than the one that was meant would be taken."""
    for call in (lambda: shardpack.Dataset(data + "\0x"), lambda: shardpack.verify(data + "\0x"),
                 lambda: shardpack.repack(data + "\0x", tmp_path / "out", jpeg="fast"),
                 lambda: shardpack.Loader(data, batch_size=1, cache_dir="x\0y"),
                 lambda: shardpack.pack(tmp_path, tmp_path / "out", prefix="a\0b"),
                 lambda: shardpack.pack(tmp_path, tmp_path / "out", include=["a\0b"])):  # fmt: skip
        with pytest.raises(ValueError, match="null byte"):
            call()


def test_paths_that_work(data):
    for path in (pathlib.Path(data), [data], data.encode(), data + "/manifest.json"):
        assert len(shardpack.Loader(path, batch_size=16, num_workers=0)) == 10


def test_not_a_dataset(tmp_path, data):
    with pytest.raises(FileNotFoundError, match="no such dataset|manifest"):
        shardpack.Loader(tmp_path, batch_size=1)
    copy = tmp_path / "copy"
    shutil.copytree(data, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps({**manifest, "version": "99.0"}))
    with pytest.raises(ValueError, match="99.0") as told:
        shardpack.Loader(copy, batch_size=1)
    assert isinstance(told.value, shardpack.UnsupportedError)
    (copy / "manifest.json").write_text("{")
    with pytest.raises(shardpack.FormatError):
        shardpack.Loader(copy, batch_size=1)


def test_states_that_are_none(data):
    with loader(data, num_workers=0) as batches:
        for state, kind, text in [(None, TypeError, "must be a dict"), ("{}", TypeError, "must be a dict"),
                                  ({}, ValueError, "state"), ({"a": object()}, TypeError, "is not one of this class"),
                                  ({**batches.state_dict(), "version": 9}, ValueError, "version 9"),
                                  ({**batches.state_dict(), "seed": "77"}, shardpack.ChangedError, "seed was 77")]:
            with pytest.raises(kind, match=text):
                batches.load_state_dict(state)
        for epoch, kind in ((-1, ValueError), (1 << 30, ValueError), ("1", TypeError), (None, TypeError)):
            with pytest.raises(kind, match="epoch="):
                batches.set_epoch(epoch)
        assert len(list(batches)) == 10  # no harm was done


def test_memory_is_checked_before(data):
    with pytest.raises(shardpack.LimitError, match="bytes|GiB|TB"):
        loader(data, batch_size=1 << 20, image=Resize((4096, 4096)))
