"""ShardDataset in PyTorch's DataLoader."""
import pickle
import random

import numpy as np
import pytest
from conftest import LONG, loader

torch = pytest.importorskip("torch")
import shardpack  # noqa: E402
from shardpack import shards  # noqa: E402
from shardpack.shards import _Batches  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create", "ignore:.*fork.*:DeprecationWarning")
ORDER = ["index", "label", "valid", "key"]


def crop(image):
    return torch.from_numpy(np.array(image)[:8, :8])


def noise(image):
    return torch.tensor([random.random(), np.random.rand(), float(torch.rand(()))])


def dataset(data, **options):
    return shardpack.ShardDataset(data, **{"batch_size": 12, "shuffle": True, "seed": 3, "decode": "array",
                                           "transform": crop, "fields": ORDER, **options})


def in_processes(ds, workers, start="fork", **options):
    return torch.utils.data.DataLoader(ds, batch_size=None, num_workers=workers,
                                       multiprocessing_context=start if workers else None, **options)


def rows(batches):
    return [tuple(tuple(column.tolist() if hasattr(column, "tolist") else column) for column in batch)
            for batch in batches]


def want(data, epoch=0, **options):
    same = {"batch_size": 12, "chunk": 12, "seed": 3, "num_workers": 0, "fields": ORDER, **options}
    with loader(data, **same) as one:
        one.set_epoch(epoch)
        return rows(one)


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_same_batches_as_loader(data, workers):
    ds = dataset(data)
    batches = in_processes(ds, workers)
    for epoch in (0, 2):
        ds.set_epoch(epoch)
        assert rows(batches) == want(data, epoch)
    assert len(batches) == len(ds) == 14


@pytest.mark.parametrize("workers", [1, 2, 3] if LONG else [2])
def test_same_batches_in_spawned_workers(data, workers):
    ds = dataset(data)
    batches = in_processes(ds, workers, "spawn", persistent_workers=True)
    for epoch in (0, 2):
        ds.set_epoch(epoch)
        assert rows(batches) == want(data, epoch)


@pytest.mark.parametrize("options", [{"shuffle": False}, {"tail": "drop"}, {"tail": "pad"}, {"limit": 50}, {"echo": 2},
                                     {"rank": 1, "world_size": 2}, {"lane_groups": 5},
                                     {"indices": range(3, 160, 3)}], ids=str)  # fmt: skip
@pytest.mark.filterwarnings("ignore::shardpack.ShardpackWarning")
def test_options(data, options):
    ds = dataset(data, **options)
    assert rows(in_processes(ds, 3)) == want(data, **options)
    assert len(ds) == len(want(data, **options))


def test_persistent_workers(data):
    ds = dataset(data)
    batches = in_processes(ds, 2, persistent_workers=True)
    for epoch in (0, 1, 1, 5):
        ds.set_epoch(epoch)
        assert rows(batches) == want(data, epoch)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_bytes_are_read_about_once(photos, tmp_path, workers):
    """All workers together read what one reads: each lane is one worker's."""
    shardpack.pack(photos, tmp_path / "ds", frame_samples=2)

    totals = shardpack.Dataset(tmp_path / "ds").stat()
    read = 0
    for number in range(workers):
        ds = shardpack.ShardDataset(tmp_path / "ds", batch_size=8, shuffle=True, decode="bytes", lane_groups=6)
        part, figures = _Batches(ds, number, workers, None), {}
        for _ in part:
            figures = part.stats()
        read += figures["bytes_read"]
    assert read < 2 * totals["bytes"], (read, totals["bytes"])


def test_images_that_nobody_asks_for(data, tmp_path):
    """They are neither read nor decoded, and need not be there; captions that are empty are not missing."""
    part = _Batches(dataset(data, fields=["label", "txt"], transform=None), 0, 1, None)
    assert part.names == ["cls", "txt"]
    (tmp_path / "texts").mkdir()
    for name, text in (("a", "one"), ("b", ""), ("c", "three")):
        (tmp_path / "texts" / f"{name}.txt").write_text(text)
    shardpack.pack(tmp_path / "texts", tmp_path / "ds", shuffle=False)
    ds = shardpack.ShardDataset(tmp_path / "ds", batch_size=3, fields=["key", "txt", "sample"])
    batch = next(iter(ds))
    assert batch.txt == [b"one", b"", b"three"] and [dict(sample.fields) for sample in batch.sample][1] == {"txt": b""}
    for options in ({"fields": ["image"]}, {"fields": ["txt"], "transform": crop}, {}):
        with pytest.raises(ValueError, match="no sample of the dataset has an image"):
            next(iter(shardpack.ShardDataset(tmp_path / "ds", batch_size=3, **options)))


def test_ranks_that_came_later(data, monkeypatch):
    ds = dataset(data)
    assert "rank 0 of 1" in str(ds.ranks)
    monkeypatch.setattr(shards._ranks, "_from_torch", lambda: shards._ranks.Ranks(1, 4, "torch.distributed"))
    with pytest.warns(shardpack.ShardpackWarning, match="torch.distributed now has 4 ranks"):
        iter(ds)


def test_images_and_collation(data):
    pytest.importorskip("PIL")
    images, labels = next(iter(dataset(data, fields=None)))
    assert images.shape == (12, 8, 8, 3) and images.dtype == torch.uint8 and labels.dtype == torch.int64
    images, _ = next(iter(dataset(data, fields=None, transform=None)))
    assert isinstance(images, list) and images[0].ndim == 3
    images, _ = next(iter(dataset(data, fields=None, transform=None, decode="pil")))
    assert images[0].mode == "RGB"
    images, _ = next(iter(dataset(data, fields=None, transform=None, decode="bytes")))
    assert images[0][:2] == b"\xff\xd8"
    made = next(iter(dataset(data, fields=None, collate_fn=lambda pairs: [label for _, label in pairs])))
    assert len(made) == 12 and isinstance(made[0], int)
    batch = next(iter(dataset(data, fields=["image", "sample", "txt"])))
    assert batch.txt[0].startswith(b"a picture") and batch.sample[0].key and batch.image.shape[0] == 12
    made = next(iter(dataset(data, fields=None, with_sample=True, transform=lambda image, sample: sample.index)))
    assert made[0].dtype == torch.int64


def test_random_transforms_are_exact(data):
    def run(workers):
        return [images.tolist() for images, _ in in_processes(dataset(data, fields=None, transform=noise), workers)]

    before = torch.get_rng_state(), random.getstate()
    alone = [images.tolist() for images, _ in dataset(data, fields=None, transform=noise)]
    assert random.getstate() == before[1]  # the program's own random numbers are left alone
    assert torch.equal(torch.get_rng_state(), before[0])
    assert run(0) == run(2) == alone and len({tuple(row) for batch in alone for row in batch}) > 150


def fail_in_the_middle(image, sample):
    if sample.index == 77:
        raise ZeroDivisionError("in my transform")
    return 0


@pytest.mark.parametrize("workers", [0, 1])
def test_an_exception_of_the_transform(data, workers):
    ds = dataset(data, transform=fail_in_the_middle, with_sample=True)
    with pytest.raises(ZeroDivisionError, match="in my transform") as told:
        rows(in_processes(ds, workers))
    key = shardpack.Dataset(data)[77].key
    said = str(told.value) + str(getattr(told.value, "__notes__", ""))
    assert f'raised by the transform of sample "{key}" (index 77)' in said
    assert workers == 0 or "fail_in_the_middle" in said  # the worker's own traceback


def test_states(data):
    whole = want(data, 1)
    for workers, resumed in ((0, 2), (2, 3), (3, 0)):
        ds = dataset(data)
        ds.set_epoch(1)
        for i, _ in enumerate(in_processes(ds, workers), 1):
            if i == 5:
                break
        state = ds.state_dict(batches=5)
        assert workers or ds.state_dict() == state
        other = dataset(data)
        other.load_state_dict(state)
        other.set_epoch(1)  # as training loops do
        batches = in_processes(other, resumed)
        assert rows(batches) == whole[5:]
        assert other.state_dict(batches=2)["position"] == 7 * 12  # of that pass
        assert rows(batches) == whole  # one pass only
        other.set_epoch(0)
        assert rows(batches) == want(data, 0)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_state_that_only_the_loop_knows(data, start):
    """Processes of a DataLoader read: the dataset of this one cannot tell how many batches came."""
    ds = dataset(data)
    before = ds.state_dict()
    batches = in_processes(ds, 1, start)
    next(iter(batches))
    with pytest.raises(shardpack.StateError, match=r"state_dict\(batches=n\)"):
        ds.state_dict()
    assert ds.state_dict(batches=1)["position"] == 12
    ds.set_epoch(0)
    with pytest.raises(RuntimeError, match=r"state_dict\(batches=n\)"):
        ds.state_dict()
    ds.set_epoch(1)
    assert ds.state_dict() == {**before, "epoch": 1}
    next(iter(batches))
    ds.load_state_dict(before)
    assert ds.state_dict() == before


def test_states_agree_with_the_loaders(data):
    ds = dataset(data)
    with loader(data, batch_size=12, chunk=12, seed=3, fields=ORDER) as batches:
        batches.load_state_dict(ds.state_dict(batches=4))
        assert rows(batches) == want(data)[4:]
        batches.set_epoch(0)
        steps = iter(batches)
        next(steps), next(steps)
        ds.load_state_dict(batches.state_dict())
    assert rows(in_processes(ds, 2)) == want(data)[2:]


def test_a_state_of_one_worker_is_not_anothers(data):
    ds = dataset(data)
    state = {**ds.state_dict(), "dataloader_worker": [1, 2]}
    ds.load_state_dict(state)
    with pytest.raises(ValueError, match="the state is of DataLoader worker 1 of 2, this is worker 0 of 1"):
        next(iter(ds))


def test_state_at_the_end(data):
    """Nothing is left of that epoch, for each number of workers; the next one is whole."""
    ds = dataset(data)
    assert rows(ds) == want(data)
    state = ds.state_dict()
    assert (state["epoch"], state["position"]) == (0, 160)
    for workers in (0, 2):
        ds.load_state_dict(state)
        assert rows(in_processes(ds, workers)) == []
        ds.set_epoch(1)
        assert rows(in_processes(ds, workers)) == want(data, 1)


def test_stateful_dataloader(data):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    for workers in (0, 2, 3):
        make = lambda: stateful.StatefulDataLoader(dataset(data), batch_size=None, num_workers=workers)  # noqa: E731
        for at in (1, 2, 5, 13):
            batches = make()
            have = []
            for i, batch in enumerate(batches, 1):
                have += rows([batch])
                if i == at:
                    state = batches.state_dict()
                    break
            again = make()
            again.load_state_dict(state)
            assert have + rows(again) == want(data), (workers, at)


def test_lazy_and_picklable(data, tmp_path):
    ds = dataset(tmp_path / "later")
    with pytest.raises(FileNotFoundError):
        next(iter(ds))
    ds = pickle.loads(pickle.dumps(dataset(data)))
    ds.set_epoch(2)
    assert rows(ds) == want(data, 2) and "epoch 2" in repr(ds)


@pytest.mark.parametrize("options, kind, text", [
    ({"batch_size": 0}, ValueError, "batch_size=0"), ({"decode": "jpeg"}, ValueError, "decode='jpeg'"),
    ({"transform": 3}, TypeError, "transform=3: must be callable"),
    ({"collate_fn": 3, "fields": None}, TypeError, "collate_fn=3"),
    ({"fields": {"a": "key"}}, TypeError, "must be a list of names"), ({"fields": []}, TypeError, "fields"),
    ({"collate_fn": len}, ValueError, "give one of them"), ({"rank": 0}, ValueError, "give both or neither"),
    ({"tail": "keep", "rank": 0, "world_size": 2}, ValueError, "tail='keep' with 2 ranks")])  # fmt: skip
def test_arguments(data, options, kind, text):
    with pytest.raises(kind, match=text):
        dataset(data, **options)


def test_fields_that_are_not_there(data):
    with pytest.raises(ValueError, match="field 'nothing': no sample of the dataset has it; there are cls, jpg"):
        next(iter(dataset(data, fields=["nothing"])))
    with pytest.raises(ValueError, match="field 'webp'"):
        next(iter(dataset(data, image_field="webp")))
    ds = dataset(data)
    with pytest.raises(TypeError, match="state_dict"):
        ds.load_state_dict(None)
    with pytest.raises(ValueError, match="epoch=-1"):
        ds.set_epoch(-1)


def test_uneven_workers_are_told_of(data):
    with pytest.warns(shardpack.ShardpackWarning, match="5 lane groups"):
        _Batches(dataset(data, lane_groups=5), 0, 2, None)


def test_contents_of_images(data):
    ds = dataset(data, fields=["image", "key"], transform=torch.from_numpy, batch_size=1)
    plain = shardpack.Dataset(data)
    for _, batch in zip(range(3), ds):
        assert np.array_equal(batch.image[0].numpy(), plain[batch.key[0]].image("array"))
