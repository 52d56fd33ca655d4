"""Damage, and what the exceptions say of it."""
import os
import pathlib
import pickle
import shutil

import pytest
from conftest import SMALL, contents, loader

import shardpack


@pytest.fixture
def copy(data, tmp_path):
    shutil.copytree(data, tmp_path / "copy")
    return tmp_path / "copy"


def flip(shard, offset):
    content = bytearray(shard.read_bytes())
    content[offset] ^= 1
    shard.unlink()
    shard.write_bytes(bytes(content))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_flipped_bit(copy, workers):
    shard = sorted(copy.glob("*.tar.zst"))[0]
    flip(shard, 5000)
    with loader(copy, num_workers=workers) as batches:
        with pytest.raises(shardpack.FormatError) as told:
            for _ in batches:
                pass
        error = told.value
        assert error.shard == shard.name and error.frame == 0 and error.sample
        assert error.sample in str(error) and error.code in ("checksum", "format")
        assert isinstance(error, ValueError)
        with pytest.raises(shardpack.FormatError):  # and again, not an epoch that is short
            list(batches)


def test_substitution(copy):
    for shard in copy.glob("*.tar.zst"):
        flip(shard, 5000)
    with pytest.warns(shardpack.ShardpackWarning, match="samples substituted so far"):
        with loader(copy, on_error="substitute", fields=["image", "label", "index", "valid", "key"]) as batches:
            seen = list(batches)
            count = batches.stats()["substituted"]
    assert sum(len(batch.label) for batch in seen) == 160 and 0 < count < 160
    bad = 0
    for batch in seen:
        bad += (~batch.valid).sum()
        assert (batch.label[~batch.valid] == -100).all() and (batch.image[~batch.valid] == 0).all()
        assert all(batch.key)
    assert bad == count
    with loader(copy, on_error="substitute", max_errors=2) as batches:
        with pytest.raises(shardpack.FormatError, match="max_errors is 2"):
            for _ in batches:
                pass


def test_a_missing_shard(copy):
    sorted(copy.glob("*.tar.zst"))[0].unlink()
    with loader(copy) as batches:
        with pytest.raises(FileNotFoundError) as told:
            for _ in batches:
                pass
    assert told.value.shard and told.value.errno == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_at_the_first_batch_is_not_for_ever(data, copy, workers):
    """The next iteration tries again, from where the one that failed had begun; so does one behind set_epoch."""

    def hide(there):
        for shard in copy.glob("*.tar.zst*"):
            shard.rename(shard.with_name(shard.name.replace(".hidden", "") + ("" if there else ".hidden")))

    with loader(data) as batches:
        want = contents(batches)
    with loader(copy, num_workers=workers) as batches:
        next(iter(batches))
        inside = batches.state_dict()
        batches.set_epoch(0)
        start = batches.state_dict()
    for state, rest in ((start, want), (inside, want[1:])):
        with loader(copy, num_workers=workers) as batches:
            batches.load_state_dict(state)
            hide(False)
            for _ in range(2):
                with pytest.raises(FileNotFoundError):
                    next(iter(batches))
                batches.set_epoch(0)  # it stands there already
            assert batches.state_dict() == state
            hide(True)
            assert contents(batches) == rest
            assert (batches.epoch, len(contents(batches))) == (1, len(want))


def test_a_bad_image_names_the_sample(photos, tmp_path):
    source = tmp_path / "photos"
    shutil.copytree(photos, source)
    bad = sorted(source.rglob("*.jpg"))[3]
    bad.write_bytes(bad.read_bytes()[:2000])
    shardpack.pack(source, tmp_path / "ds", check="none")
    key = str(bad.relative_to(source).with_suffix(""))
    with loader(tmp_path / "ds", num_workers=1) as batches:
        with pytest.raises(shardpack.FormatError, match="truncated JPEG") as told:
            for _ in batches:
                pass
    assert told.value.sample == key and told.value.shard.endswith(".tar.zst")
    with pytest.raises(ValueError, match="truncated") as told:
        shardpack.Dataset(tmp_path / "ds", decode="array")[key]
    assert told.value.sample == key
    with pytest.raises(shardpack.FormatError, match=pathlib.Path(key).name):
        shardpack.pack(source, tmp_path / "checked")


def test_a_worker_that_cannot_start(data, monkeypatch, tmp_path):
    monkeypatch.setenv("SHARDPACK_WORKER", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="nothing"):
        loader(data)
    (tmp_path / "false").write_text("#!/bin/sh\nexit 3\n")
    os.chmod(tmp_path / "false", 0o755)
    monkeypatch.setenv("SHARDPACK_WORKER", str(tmp_path / "false"))
    with pytest.raises(shardpack.WorkerError, match="status 3"):
        loader(data)


def test_exceptions_survive_pickling():
    text = 'a-1.tar.zst: sample "x/1": frame 4: checksum mismatch at byte 77'
    error = shardpack._errors.make("checksum", text, 77, 0)
    for copied in (error, pickle.loads(pickle.dumps(error))):
        assert type(copied) is shardpack.ChecksumError and isinstance(copied, ValueError)
        assert (copied.shard, copied.sample, copied.frame, copied.offset) == ("a-1.tar.zst", "x/1", 4, 77)
        assert str(copied) == str(error) and copied.code == "checksum"
    again = type(error)(f"Caught in a process.\nTraceback:\nshardpack._errors.ChecksumError: {text}\n")
    assert (again.shard, again.sample, again.frame) == ("a-1.tar.zst", "x/1", 4)  # as DataLoader makes them
    assert str(type(error)("text alone")) == "text alone" and type(error)("text alone").shard is None
    missing = pickle.loads(pickle.dumps(shardpack._errors.make("not-found", "gone", -1, 2)))
    assert isinstance(missing, FileNotFoundError) and missing.errno == 2 and missing.offset is None


@pytest.mark.parametrize("code, kind", [
    ("nomem", MemoryError), ("io", OSError), ("not-found", FileNotFoundError), ("exists", FileExistsError),
    ("permission", PermissionError), ("invalid", ValueError), ("state", RuntimeError), ("format", ValueError),
    ("unsupported", ValueError), ("limit", ValueError), ("checksum", ValueError), ("network", ConnectionError),
    ("worker", RuntimeError), ("changed", ValueError), ("busy", OSError)])  # fmt: skip
def test_standard_exceptions(code, kind):
    error = shardpack._errors.make(code, "text", -1, 0)
    assert isinstance(error, kind) and isinstance(error, shardpack.Error) and str(error) == "text"


def test_stuck_workers_are_reported(data):
    import signal

    from conftest import workers_of

    with shardpack.Loader(data, batch_size=16, num_workers=1, image=SMALL, output="numpy", timeout=0.5,
                          shuffle=True) as batches:
        steps = iter(batches)
        next(steps)
        for worker in workers_of(os.getpid()):
            os.kill(worker, signal.SIGSTOP)
        with pytest.raises(shardpack.WorkerError, match="no progress"):
            for _ in steps:
                pass
