"""What the tests of the Python package share. MAKE_PHOTOS names the program that paints the photographs."""
import gc
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import shardpack

sys.dont_write_bytecode = True
LONG = os.environ.get("TEST_LONG") == "1"
SIDE = 64
SMALL = shardpack.RandomResizedCrop(SIDE)


def paint(folder, per_class):
    program = os.environ.get("MAKE_PHOTOS")
    if not program:
        pytest.exit("MAKE_PHOTOS must name the program examples/make_photos", 2)
    subprocess.run([program, str(folder), str(per_class)], check=True)
    return folder


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """160 photographs in eight class folders."""
    return paint(tmp_path_factory.mktemp("source") / "photos", 20)


@pytest.fixture(scope="session")
def data(photos, tmp_path_factory):
    """The same, packed; with a text and a JSON field for each."""
    source = tmp_path_factory.mktemp("source") / "photos"
    shutil.copytree(photos, source)
    for image in source.rglob("*.jpg"):
        image.with_suffix(".txt").write_text(f"a picture called {image.stem}")
        image.with_suffix(".json").write_text(f'{{"name": "{image.stem}"}}')
    target = tmp_path_factory.mktemp("data") / "photos.shards"
    shardpack.pack(source, target, shard_size="1MB", frame_samples=8)
    return str(target)


def loader(data, **options):
    """A small one with NumPy arrays; what it gives is pixels of 64 x 64."""
    fields = options.get("fields")
    columns = ["image"] if fields is None else list(fields.values() if isinstance(fields, dict) else fields)
    lists = ("label", "index", "valid", "key", "json", "txt", "jpg", "nothing")
    if not all(column in lists or isinstance(column, shardpack.Raw) for column in columns):
        options = {"image": SMALL, **options}
    return shardpack.Loader(data, **{"batch_size": 16, "num_workers": 2, "shuffle": True, "output": "numpy", **options})


def contents(batches):
    """Copies of what batches of arrays, tensors and lists hold, to be compared."""
    return [tuple(np.asarray(column).tobytes() if hasattr(column, "dtype") else tuple(column) for column in batch)
            for batch in batches]


@pytest.fixture(autouse=True)
def nothing_left():
    """Every worker process is gone when a test is over."""
    yield
    gc.collect()
    assert workers_of(os.getpid()) == []


def children_of(pid):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                name = (entry / "comm").read_text().strip()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append((int(entry.name), name))
    return found


def workers_of(pid):
    return [number for number, name in children_of(pid) if name.startswith("shardpack-work")]


def run_script(text, *arguments, expect=0, **options):
    """Runs a program of its own; returns what it printed. Standard error must be empty unless `expect` is not 0."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)], capture_output=True,
                          text=True, timeout=120, **options)
    assert done.returncode == expect, done.stderr
    if expect == 0:
        assert done.stderr == ""
    return done.stdout if expect == 0 else done.stderr
