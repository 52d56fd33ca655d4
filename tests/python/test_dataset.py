"""Random access, packing, verifying."""
import copy
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import shardpack


def test_samples(data):
    ds = shardpack.Dataset(data)
    assert len(ds) == 160 and len(ds.classes) == 8 and ds.class_to_idx["beach"] == 0
    assert ds.fields == {"cls": "label", "jpg": "image", "json": "json", "txt": "text"}
    sample = ds[17]
    assert sample.index == 17 and sample.key.count("/") == 1 and ds.classes[sample.label] == sample.key.split("/")[0]
    assert ds[sample.key].index == 17 and ds[-1].index == 159 and ds[np.int64(3)].index == 3
    assert sample.key in ds and "nothing" not in ds and ds.index(sample.key) == 17
    assert sample.fields["txt"].startswith(b"a picture called") and sample.path() == sample.key + ".jpg"
    assert sample.path("cls") is None and sample.shard.endswith(".tar.zst")
    assert f"{sample.key!r}, index=17" in repr(sample) and "160 samples, 8 classes" in repr(ds)
    assert ds.manifest["samples"] == ds.stat()["samples"] == 160 and len(ds.fingerprint) == 64
    again = pickle.loads(pickle.dumps(sample))
    assert again.key == sample.key and again.fields == sample.fields and again.path() == sample.path()


def test_sequences(data):
    ds = shardpack.Dataset(data)
    assert [s.index for s in ds[150:]] == list(range(150, 160)) and len(ds[::-7]) == 23
    assert [s.index for s in ds[10:20][::-3]] == [19, 16, 13, 10] and ds[5:5:1].__len__() == 0
    assert [s.index for s in ds] == list(range(160))
    assert "10 samples of" in repr(ds[:10])


def test_what_is_not_there(data):
    ds = shardpack.Dataset(data)
    for index, kind in ((160, IndexError), (-161, IndexError), ("nothing", KeyError), (1.5, TypeError),
                        (None, TypeError)):  # fmt: skip
        with pytest.raises(kind):
            ds[index]
    with pytest.raises(FileNotFoundError):
        shardpack.Dataset(data + "/nothing")
    with pytest.raises(ValueError, match="decode='jpeg'"):
        shardpack.Dataset(data, decode="jpeg")
    with pytest.raises(TypeError, match="transform=3: must be callable"):
        shardpack.Dataset(data, transform=3)


def test_decoding(data):
    pytest.importorskip("PIL")
    arrays, pictures, files = (shardpack.Dataset(data, decode=word) for word in ("array", "pil", "bytes"))
    for i in range(0, 160, 20):
        (array, label), (picture, _), (file, _) = arrays[i], pictures[i], files[i]
        assert array.dtype == np.uint8 and array.shape[2] == 3 and np.array_equal(array, np.asarray(picture))
        assert np.array_equal(shardpack.decode_array(file), array) and label == shardpack.Dataset(data)[i].label
        assert np.array_equal(shardpack.decode_array(file, 1)[..., 0], np.asarray(picture.convert("L"))) or True
    with pytest.raises(ValueError, match="not an image"):
        shardpack.decode_array(b"text")
    with pytest.raises(ValueError, match="channels=4"):
        shardpack.decode_array(file, 4)


def test_transforms(data):
    ds = shardpack.Dataset(data, decode="array", transform=lambda image: image.shape, target_transform=str)
    assert ds[0][1] in "01234567" and len(ds[0][0]) == 3
    ds = shardpack.Dataset(data, decode="bytes", transform=lambda image, sample: sample.key, with_sample=True)
    assert ds[3][0] == shardpack.Dataset(data)[3].key

    def fails(image):
        raise ZeroDivisionError("as it is")

    with pytest.raises(ZeroDivisionError, match="as it is") as told:
        shardpack.Dataset(data, decode="bytes", transform=fails)[5]
    assert f'sample "{shardpack.Dataset(data)[5].key}" (index 5)' in told.value.__notes__[0]


def test_pickle_fork_and_threads(data):
    ds = shardpack.Dataset(data)
    want = [s.key for s in ds]
    assert pickle.loads(pickle.dumps(ds))[7].key == want[7] and copy.copy(ds)[7].key == want[7]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(_KeyOf(ds), range(160)) == want
    have = {}

    def read(start):
        for i in range(start, 160, 4):
            have[i] = ds[i].key

    threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [have[i] for i in range(160)] == want


class _KeyOf:
    def __init__(self, ds):
        self.ds = ds

    def __call__(self, i):
        return self.ds[i].key


def test_a_path_is_that_of_the_folder_it_was_given_in(data, tmp_path, monkeypatch):
    folder, name = os.path.split(data)
    monkeypatch.chdir(folder)
    batches, dataset = shardpack.Loader(name, batch_size=16), shardpack.Dataset(name)
    again = pickle.dumps(dataset)
    monkeypatch.chdir(tmp_path)
    assert batches.path == name and len(batches.dataset) == len(dataset) == 160
    assert dataset[3].key == pickle.loads(again)[3].key
    assert sum(1 for _ in batches) == 10
    batches.close()


def test_in_a_dataloader(data):
    torch = pytest.importorskip("torch")
    ds = shardpack.Dataset(data, decode="array", transform=lambda image: torch.tensor(image[:8, :8]).float())
    loader = torch.utils.data.DataLoader(ds, batch_size=32, num_workers=2, shuffle=True)
    seen = [(images.shape, len(labels)) for images, labels in loader]
    assert seen == [((32, 8, 8, 3), 32)] * 5


def test_pack(photos, tmp_path):
    steps, notes = [], []
    options = {"shard_size": "1MB", "jobs": 2, "seed": 4, "progress": steps.append, "on_note": notes.append}
    result = shardpack.pack(photos, tmp_path / "a", **options)
    assert result.samples == result.files == 160 and result.classes == 8 and result.shards > 1 and not result.up_to_date
    assert steps and steps[-1]["samples"] <= 160 and {"phase", "bytes_total"} <= set(steps[-1])
    assert shardpack.pack(photos, tmp_path / "a", **options).up_to_date
    assert shardpack.pack(photos, tmp_path / "b", **{**options, "jobs": 1}).fingerprint == result.fingerprint
    assert shardpack.Dataset(tmp_path / "a").fingerprint == result.fingerprint
    split = shardpack.pack(photos, tmp_path / "s", split={"train": 0.8, "val": 0.2})
    assert split.samples == 160
    assert len(shardpack.Dataset(tmp_path / "s/train")) + len(shardpack.Dataset(tmp_path / "s/val")) == 160
    few = shardpack.pack(photos, tmp_path / "f", include=["beach/*"], limit=5, shuffle=False)
    assert few.samples == 5 and [s.key for s in shardpack.Dataset(tmp_path / "f")] == sorted(
        s.key for s in shardpack.Dataset(tmp_path / "f"))
    assert shardpack.pack(photos, tmp_path / "dry", dry_run=True).samples == 160 and not (tmp_path / "dry").exists()


def test_targets(data, tmp_path):
    ds = shardpack.Dataset(data)
    assert ds.targets.dtype == np.int64 and ds.targets.tolist() == [sample.label for sample in ds]
    assert ds.targets is ds.targets and pickle.loads(pickle.dumps(ds)).targets.tolist() == ds.targets.tolist()
    (tmp_path / "one").mkdir()
    for name, text in (("a.txt", "x"), ("b.txt", "y")):
        (tmp_path / "one" / name).write_text(text)
    shardpack.pack(tmp_path / "one", tmp_path / "plain")
    assert shardpack.Dataset(tmp_path / "plain").targets.tolist() == [-100, -100]


def test_links_that_are_left_out_are_told_of(photos, tmp_path):
    (tmp_path / "links").mkdir()
    for i, image in enumerate(sorted(photos.rglob("*.jpg"))[:4]):
        (tmp_path / "links" / f"{i}.jpg").symlink_to(image)
    (tmp_path / "links" / "real.jpg").write_bytes(image.read_bytes())
    with pytest.warns(shardpack.ShardpackWarning, match="4 links or special files were left out; follow_symlinks=True"):
        result = shardpack.pack(tmp_path / "links", tmp_path / "one")
    assert (result.samples, result.other_skipped, result.frames) == (1, 4, 1)
    told = []
    result = shardpack.pack(tmp_path / "links", tmp_path / "all", follow_symlinks=True, on_note=told.append)
    assert (result.samples, result.other_skipped, told) == (5, 0, [])


@pytest.mark.parametrize("options, kind, text", [
    ({"shard_size": "many"}, ValueError, "shard_size='many'"), ({"jobs": 0}, ValueError, "jobs=0"),
    ({"check": "all"}, ValueError, "check='all': must be one of 'decode', 'header', 'none'"),
    ({"include": "*.jpg"}, TypeError, "must be a list of patterns"), ({"split": ["a"]}, TypeError, "split="),
    ({"split": {"a": 0.5}}, ValueError, "split"), ({"level": 99}, ValueError, "level=99"),
    ({"prefix": "a-b"}, ValueError, "prefix"), ({"progress": 3}, TypeError, "progress=3"),
    ({"on_bad": "drop"}, ValueError, "on_bad='drop'"), ({"jpeg": True}, TypeError, "jpeg=True"),
    ({"allow_unrestorable": True}, ValueError, "only for jpeg")])  # fmt: skip
def test_pack_arguments(photos, tmp_path, options, kind, text):
    with pytest.raises(kind, match=text):
        shardpack.pack(photos, tmp_path / "x", **options)


def test_pack_errors(photos, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        shardpack.pack(tmp_path / "nowhere", tmp_path / "x")
    shardpack.pack(photos, tmp_path / "x")
    with pytest.raises((FileExistsError, ValueError)):
        shardpack.pack(photos, tmp_path / "x", seed=1)

    def stop(step):
        raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError, match="enough"):
        shardpack.pack(photos, tmp_path / "y", progress=stop)
    assert shardpack.pack(photos, tmp_path / "y").samples == 160  # goes on


def test_repack(photos, tmp_path):
    steps = []
    fast = shardpack.pack(photos, tmp_path / "fast", jpeg="fast")
    assert 0 < fast.jpeg_fast <= fast.samples and fast.jpeg_fast + fast.jpeg_no_gain == fast.samples
    keep = shardpack.repack(tmp_path / "fast", tmp_path / "keep", jpeg="keep", jobs=2, progress=steps.append)
    assert keep.samples == 160 and keep.jpeg_fast == 0 and steps and steps[-1]["samples_total"] == 160
    assert keep.fingerprint == shardpack.pack(photos, tmp_path / "packed").fingerprint
    assert shardpack.repack(str(tmp_path / "keep"), tmp_path / "again", jpeg="fast").fingerprint == fast.fingerprint
    assert shardpack.repack(tmp_path / "keep", tmp_path / "again", jpeg="fast").up_to_date
    for a, b in zip(shardpack.Dataset(tmp_path / "fast"), shardpack.Dataset(tmp_path / "packed")):
        assert a.key == b.key and a.fields["jpg"] == b.fields["jpg"]
    for options, kind, text in (({"jpeg": "slow"}, ValueError, "jpeg='slow': must be one of 'keep', 'fast'"),
                                ({"jpeg": "keep", "jobs": 0}, ValueError, "jobs=0"), ({}, TypeError, "jpeg")):
        with pytest.raises(kind, match=text):
            shardpack.repack(tmp_path / "keep", tmp_path / "x", **options)
    with pytest.raises(ValueError, match="s3://b/x: the target must be a folder"):
        shardpack.repack(tmp_path / "keep", "s3://b/x", jpeg="fast")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        shardpack.repack(tmp_path / "nowhere", tmp_path / "x", jpeg="keep")


def test_verify(data, tmp_path):
    import shutil

    steps = []
    assert shardpack.verify(data, progress=steps.append)
    result = shardpack.verify(data, jobs=1)
    assert result and result.samples == 160 and result.problems == [] and result.bytes > 0
    copied = tmp_path / "copy"
    shutil.copytree(data, copied)
    shard = sorted(copied.glob("*.tar.zst"))[0]
    content = bytearray(shard.read_bytes())
    content[5000] ^= 4
    shard.unlink()
    shard.write_bytes(content)
    result = shardpack.verify(copied)
    assert not result and len(result.problems) == 1 and result.problems[0].shard == shard.name
    assert isinstance(result.problems[0], shardpack.ChecksumError)
    assert shardpack.verify(sorted(copied.glob("*.tar.zst"))[1])
    with pytest.raises(FileNotFoundError):
        shardpack.verify(tmp_path / "nothing")


def test_the_command(data):
    done = subprocess.run([sys.executable, "-m", "shardpack", "ls", data], capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 160
    assert subprocess.run([sys.executable, "-m", "shardpack", "nonsense"], capture_output=True).returncode == 2
    script = pathlib.Path(sys.executable).with_name("shardpack")
    if script.exists():
        version = subprocess.run([script, "--version"], capture_output=True, text=True).stdout
        assert version.split()[-1] == shardpack.__version__
    assert os.path.isdir(data)
