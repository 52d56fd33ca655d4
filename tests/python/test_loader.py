"""Loader: what comes, in which order, and what it says of itself."""
import json
import os
import shutil
import subprocess

import numpy as np
import pytest
from conftest import SIDE, contents, loader, workers_of

import shardpack
from shardpack import _core, _ranks

ALL = ["image", "label", "index", "valid", "key"]


def test_images_and_labels(data):
    with loader(data) as batches:
        assert len(batches) == 10
        seen = list(batches)
    assert len(seen) == 10
    images, labels = seen[0]
    assert images.shape == (16, 3, SIDE, SIDE) and images.dtype == np.float32
    assert 0 <= images.min() and images.max() <= 1 and images.std() > 0.05
    assert labels.shape == (16,) and labels.dtype == np.int64
    assert set(np.concatenate([labels for _, labels in seen])) == set(range(8))


def test_each_sample_once_per_epoch(data):
    with loader(data, fields=ALL) as batches:
        orders = []
        for epoch in range(3):
            assert batches.epoch == epoch
            orders.append(np.concatenate([batch.index for batch in batches]))
    for order in orders:
        assert sorted(order) == list(range(160))
    assert not np.array_equal(orders[0], orders[1])


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_same_batches_for_any_workers(data, workers):
    options = {"fields": ALL, "seed": 5}
    with loader(data, num_workers=2, **options) as a, loader(data, num_workers=workers, **options) as b:
        assert contents(a) == contents(b)
    with loader(data, fields=ALL, num_workers=0, seed=6) as c:
        assert [batch.key for batch in c] != [batch.key for batch in loader(data, fields=ALL, seed=5)]


def test_ranks_share_the_global_batch(data):
    with loader(data, batch_size=16, chunk=8) as one:
        want = contents(one)
    parts = [contents(loader(data, batch_size=8, chunk=8, rank=rank, world_size=2)) for rank in range(2)]
    assert [(a[0] + b[0], a[1] + b[1]) for a, b in zip(*parts)] == want


def test_agrees_with_the_command(data):
    """The same samples in the same order as those of `shardpack stream`."""
    program = os.path.join(os.path.dirname(shardpack.__file__), "_bin", "shardpack")
    lines = subprocess.run([program, "stream", "--keys", "--json", "--batch-size", "16", "--seed", "3", "--workers", "0",
                            "--size", str(SIDE), data], check=True, capture_output=True, text=True).stdout
    want = [row["key"] for line in lines.splitlines() for row in json.loads(line).get("samples", ())]
    with loader(data, fields=["key"], seed=3) as batches:
        have = [key for batch in batches for key in batch.key]
    assert len(have) == 160 and have == want


def test_pixels_are_those_of_pillow(data):
    PIL = pytest.importorskip("PIL.Image")
    dataset = shardpack.Dataset(data)
    image = [shardpack.Resize(80), shardpack.CenterCrop(SIDE)]
    with loader(data, shuffle=False, image=image, dtype="uint8", layout="NHWC", fields=["image", "key"]) as batches:
        batch = next(iter(batches))
        for pixels, key in zip(batch.image, batch.key):
            picture = dataset[key].image()
            short = min(picture.size)
            width, height = (80 if side == short else int(80 * side / short) for side in picture.size)
            left, top = int(round((width - SIDE) / 2)), int(round((height - SIDE) / 2))
            want = picture.resize((width, height), PIL.BILINEAR).crop((left, top, left + SIDE, top + SIDE))
            assert np.array_equal(pixels, np.asarray(want)), key
        del batch, pixels


def test_dtypes_layouts_and_normalisation(data):
    first = {}
    for name, options in {
        "uint8": {"dtype": "uint8", "layout": "NHWC"},
        "float32": {},
        "numpy type": {"dtype": np.float32},
        "float16": {"dtype": "float16"},
        "channels_last": {"layout": "channels_last"},
        "normal": {"mean": [0.5, 0.4, 0.3], "std": 0.25},
    }.items():
        with loader(data, num_workers=0, **options) as batches:
            first[name] = next(iter(batches))[0]
    exact = first["uint8"].transpose(0, 3, 1, 2)
    assert first["uint8"].shape == (16, SIDE, SIDE, 3) and exact.dtype == np.uint8
    assert np.allclose(first["float32"], exact / 255, atol=1e-6)
    assert np.array_equal(first["float32"], first["numpy type"])
    assert first["float16"].dtype == np.float16 and np.allclose(first["float16"], exact / 255, atol=1e-3)
    assert np.array_equal(first["channels_last"], first["float32"]) and first["channels_last"].strides[1] == 4
    want = (exact / 255 - np.reshape([0.5, 0.4, 0.3], (1, 3, 1, 1))) / 0.25
    assert np.allclose(first["normal"], want, atol=1e-5)


def test_normalisation_of_columns(data):
    """What an Image leaves open is as given to the loader; its own integers are not normalised."""
    crop, mean, std = shardpack.Resize((8, 8)), 0.5, 0.25
    fields = {"plain": crop, "half": shardpack.Image(crop, dtype="float16"), "own": shardpack.Image(crop, mean=0.25),
              "raw": shardpack.Image(crop, dtype="uint8", layout="NCHW")}  # fmt: skip
    with loader(data, fields=fields, mean=mean, std=std, num_workers=0) as batches:
        batch = next(iter(batches))
    exact = batch["raw"] / 255
    assert batch["raw"].dtype == np.uint8 and batch["half"].dtype == np.float16
    assert np.allclose(batch["plain"], (exact - 0.5) / 0.25, atol=1e-5)
    assert np.allclose(batch["half"], (exact - 0.5) / 0.25, atol=5e-3)
    assert np.allclose(batch["own"], (exact - 0.25) / 0.25, atol=1e-5)
    with loader(data, dtype="uint8", fields={"half": shardpack.Image(crop, dtype="float16", std=std)}) as batches:
        assert next(iter(batches))["half"].max() > 1


def test_flips(data):
    plain, flipped, both = (next(iter(loader(data, num_workers=0, **options)))[0] for options in (
        {}, {"hflip": 1.0}, {"image": [shardpack.RandomResizedCrop(SIDE), shardpack.RandomHorizontalFlip(1.0),
                                       shardpack.RandomVerticalFlip(1.0)]}))
    assert np.array_equal(flipped, plain[..., ::-1])
    assert np.array_equal(both, plain[..., ::-1, ::-1])


def test_columns_by_name(data):
    fields = {"x": "image", "small": shardpack.Image(shardpack.Resize((8, 8)), dtype="uint8"), "y": "label",
              "text": shardpack.Raw("txt", "text"), "about": shardpack.Raw("json", "json"),
              "none": shardpack.Raw("nothing", optional=True), "file": "jpg", "name": "key"}  # fmt: skip
    with loader(data, fields=fields) as batches:
        for batch in batches:
            assert list(batch) == list(fields)
            assert batch["x"].shape[2:] == (SIDE, SIDE) and batch["small"].dtype == np.uint8
            for text, about, nothing, file, key in zip(*(batch[n] for n in ("text", "about", "none", "file", "name"))):
                stem = key.rsplit("/", 1)[1]
                assert text == f"a picture called {stem}" and about == {"name": stem}
                assert nothing is None and file[:2] == b"\xff\xd8"


@pytest.fixture
def captions(photos, tmp_path):
    """Eight photographs: of captions two are empty, two not there, and one is no UTF-8."""
    for i, image in enumerate(sorted(photos.rglob("*.jpg"))[:8]):
        shutil.copy(image, tmp_path / f"{i}.jpg")
        if i < 6:
            (tmp_path / f"{i}.txt").write_bytes(b"" if i < 2 else b"caption %d" % i if i < 5 else b"\xff")
    shardpack.pack(tmp_path, tmp_path.with_suffix(".shards"), shuffle=False)
    return tmp_path.with_suffix(".shards")


def test_empty_values_are_not_missing_ones(captions):
    texts = [b"", b"", b"caption 2", b"caption 3", b"caption 4", b"\xff", None, None]
    fields = {"raw": shardpack.Raw("txt", optional=True), "key": "key"}
    with loader(captions, fields=fields, shuffle=False) as batches:
        batch = next(iter(batches))
        assert batch["raw"] == texts and batch["key"] == list("01234567")
    with loader(captions, fields={"text": shardpack.Raw("txt", "text", optional=True)}, limit=5, shuffle=False) as batches:
        assert next(iter(batches))["text"] == ["", "", "caption 2", "caption 3", "caption 4"]
    assert [sample.fields.get("txt") for sample in shardpack.Dataset(captions)] == texts


def test_values_that_cannot_be_decoded(captions):
    """The column and the row are named; the iteration can go on."""
    for decode, at in (("text", 5), ("json", 0)):
        fields = {"index": "index", "txt": shardpack.Raw("txt", decode, optional=True)}
        with loader(captions, fields=fields, shuffle=False, batch_size=6) as batches:
            steps = iter(batches)
            with pytest.raises(shardpack.FormatError, match=f'field "txt" of row {at} of the batch: no {decode}: '):
                next(steps)
            assert [batch["index"].tolist() for batch in steps] == [[6, 7]]
            assert batches.epoch == 1


def test_labels_that_are_not_there(captions):
    with pytest.warns(shardpack.ShardpackWarning, match="no sample of the dataset has the field cls: all labels are -100"):
        shardpack.Loader(captions, batch_size=4, num_workers=0).close()


def test_named_tuples_can_be_pickled(data):
    import pickle

    with loader(data, fields=["label", "key"], num_workers=0) as batches:
        batch = next(iter(batches))
    again = pickle.loads(pickle.dumps(batch))
    assert type(again).__name__ == "Batch" and again.key == batch.key and again._fields == ("label", "key")


@pytest.mark.parametrize("tail, rows", [("keep", [50, 50, 50, 10]), ("drop", [50, 50, 50]), ("pad", [50] * 4)])
def test_tails(data, tail, rows):
    with loader(data, batch_size=50, tail=tail, fields=ALL) as batches:
        seen = list(batches)
        assert len(batches) == len(seen) and [len(batch.label) for batch in seen] == rows
    if tail == "pad":
        assert seen[-1].valid.sum() == 10 and seen[-1].valid.dtype == bool
        assert (seen[-1].label[~seen[-1].valid] == -100).all() and (seen[-1].label[seen[-1].valid] >= 0).all()
    with loader(data, batch_size=50, drop_last=True) as batches:
        assert len(batches) == 3 and batches.drop_last


def test_limit_and_echo(data):
    with loader(data, limit=40) as batches:
        assert len(batches) == 3 and sum(len(labels) for _, labels in batches) == 40
    with loader(data, echo=2, fields=["index", "image"]) as batches:
        index = np.concatenate([batch.index for batch in batches])
        assert len(batches) == 20 and (np.bincount(index) == 2).all()


@pytest.mark.parametrize("shuffle", [True, False])
def test_indices(data, shuffle):
    """Each chosen sample once an epoch, with the crop that it has among all, for any workers, and after a resume."""
    fields = ["index", "image", "label", "key"]
    keys = shardpack.Dataset(data).keys()
    chosen = [i for i, key in enumerate(keys) if key.startswith(("beach/", "night/")) or i % 9 == 4]
    assert len(keys) == 160 and keys[7] == shardpack.Dataset(data)[7].key and 0 < len(chosen) < 160
    with loader(data, shuffle=shuffle, fields=fields, layout="NHWC") as everything:
        whole = {int(i): (image.tobytes(), label, key) for batch in everything
                 for i, image, label, key in zip(batch.index, batch.image, batch.label, batch.key)}
    orders = []
    for workers, given in ((2, chosen), (0, np.array(chosen[::-1], np.int32)), (3, tuple(chosen))):
        options = {"shuffle": shuffle, "fields": fields, "layout": "NHWC", "num_workers": workers, "indices": given}
        with loader(data, **options) as batches:
            seen = []
            assert len(batches) == -(-len(chosen) // 16)
            for n, batch in enumerate(batches):
                seen += [int(i) for i in batch.index]
                for i, image, label, key in zip(batch.index, batch.image, batch.label, batch.key):
                    assert whole[int(i)] == (image.tobytes(), label, key)
                if n == 1:
                    state = batches.state_dict()
            assert sorted(seen) == chosen and (seen != chosen) == shuffle
            orders.append(seen)
            batches.load_state_dict(state)
            assert [int(i) for batch in batches for i in batch.index] == seen[32:]
    assert orders[0] == orders[1] == orders[2]
    with loader(data, shuffle=shuffle, indices=range(50)) as other:
        with pytest.raises(shardpack.ChangedError, match="indices were others"):
            other.load_state_dict(state)


def test_epochs(data):
    with loader(data, fields=["index"]) as batches:
        orders = {epoch: contents(batches) for epoch in range(4)}
        batches.set_epoch(1)
        assert batches.epoch == 1 and contents(batches) == orders[1] and contents(batches) == orders[2]
        for _ in batches:  # epoch 3, broken off
            break
        assert batches.epoch == 4
        for i, _ in enumerate(batches):  # epoch 4
            if i == 2:
                batches.set_epoch(0)  # for the next one
                assert batches.epoch == 4
        assert batches.epoch == 0 and contents(batches) == orders[0]
        iter(batches)
        iter(batches)  # nothing was taken: no epoch has passed
        assert contents(batches) == orders[1]


def test_repr_and_attributes(data, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with loader(data) as batches:
        assert (batches.rank, batches.world_size, batches.batch_size, batches.num_workers) == (1, 2, 16, 2)
        assert "rank 1 of 2 (RANK and WORLD_SIZE)" in repr(batches) and len(batches) == 5
        assert len(batches.dataset) == 160 and batches.dataset.classes[0] == "beach"
    assert "closed" in repr(batches)
    with loader(data, rank=0, world_size=1) as batches:
        assert "rank 0 of 1 (as given)" in repr(batches)
    monkeypatch.delenv("RANK")
    with pytest.raises(ValueError, match="WORLD_SIZE=2 is in the environment, RANK is not"):
        loader(data)
    monkeypatch.setenv("RANK", "2")
    with pytest.raises(ValueError, match="0 <= RANK < WORLD_SIZE"):
        loader(data)


def test_number_of_workers(data, monkeypatch):
    """As many as there are; ranks of one machine share its processors."""
    with loader(data, num_workers=None) as batches:
        everyone = batches.num_workers
        assert everyone == len(workers_of(os.getpid()))
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")
    assert loader(data, num_workers=None).num_workers == everyone  # there is one rank
    with loader(data, num_workers=None, rank=1, world_size=2000, tail="pad", prefetch_factor=3) as batches:
        assert batches.num_workers == len(workers_of(os.getpid())) == 1
        assert _core.estimate(batches._dataset, batches._options, batches._plan.options)["slots"] == 3 + 2
    for text in ("", "many", "-1", "0"):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", text)
        assert loader(data, num_workers=None).num_workers == everyone


def test_ranks_that_came_later(data, monkeypatch):
    with loader(data, num_workers=0) as batches, loader(data, num_workers=0, rank=0, world_size=1) as given:
        monkeypatch.setattr(_ranks, "_from_torch", lambda: _ranks.Ranks(1, 4, "torch.distributed"))
        with pytest.warns(shardpack.ShardpackWarning, match="torch.distributed now has 4 ranks, and this is rank 0 of 1"):
            iter(batches)
        iter(given)


def test_stats(data):
    with loader(data) as batches:
        for _ in batches:
            pass
        stats = batches.stats()
    assert stats["batches"] == 10 and stats["samples"] == stats["images_decoded"] == 160
    assert stats["bytes_read"] > 0 and stats["restarts"] == stats["copies"] == 0 and stats["wait_seconds"] >= 0


def test_a_killed_worker_is_replaced(data):
    with loader(data) as whole:
        want = contents(whole)
    with loader(data) as batches:
        have = []
        for i, batch in enumerate(batches):
            have += contents([batch])
            if i == 2:
                os.kill(workers_of(os.getpid())[0], 9)
        assert have == want and batches.stats()["restarts"] == 1


def test_arguments_left_over_from_dataloader(data):
    with loader(data, prefetch_factor=2, persistent_workers=True, worker_init_fn=None, collate_fn=None, drop_last=True,
                pin_memory=False, sampler=None, generator=None, multiprocessing_context=None, in_order=True,
                pin_memory_device="", timeout=0) as batches:
        assert batches._options["prefetch"] == 4 and sum(1 for _ in batches) == 10
