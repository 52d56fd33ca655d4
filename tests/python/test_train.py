"""examples/train_torch.py, as a user runs it: it learns, goes on exactly after a kill, and runs on two ranks."""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

import pytest
from conftest import LONG, paint

torch = pytest.importorskip("torch")

import shardpack  # noqa: E402

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
EPOCH = re.compile(r"^epoch \d+: loss .*$", re.M)
STEP = re.compile(r"epoch (\d+) step (\d+) of (\d+): loss (\S+)")
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("train")
    shardpack.pack(paint(folder / "photos", 20), folder / "packed", split={"train": 0.8, "val": 0.2})
    return str(folder / "packed")


def torchrun_works():
    """That of PyTorch 1.13 does not know the enumerations of Python 3.11."""
    from torch.distributed.elastic.multiprocessing import Std

    return Std.from_str("0") is not None


def launch(count, *program):
    """Standard output of `count` ranks: by torchrun, or with the environment that it makes."""
    if not torch.distributed.is_available():
        pytest.skip("this PyTorch has no torch.distributed")
    if torchrun_works():
        run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(count), *program]
        children = [subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)]
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        common = {**ENVIRONMENT, "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        children = [subprocess.Popen([sys.executable, *program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     text=True, env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)})
                    for rank in range(count)]
    said = [child.communicate(timeout=300) for child in children]
    assert [child.returncode for child in children] == [0] * len(children), said[0][1] + said[-1][1]
    return "".join(out for out, _ in said)


def command(photos, *options):
    return [str(EXAMPLES / "train_torch.py"), photos, "--size", "32", "--workers", "1", "--verbose", "--chunk", "8",
            *options]


def train(photos, *options, ranks=1):
    if ranks > 1:
        return launch(ranks, *command(photos, *options))
    done = subprocess.run([sys.executable, *command(photos, *options)], capture_output=True, text=True, timeout=300,
                          env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def weights(said):
    return re.search(r"^weights (\w{64})$", said, re.M)[1]


@pytest.fixture(scope="module")
def undisturbed(photos):
    return train(photos, "--epochs", "3")


def test_it_learns(photos):
    said = train(photos, "--epochs", "8")
    accuracy = [float(text) for text in re.findall(r"accuracy (\S+)", said)]
    assert len(accuracy) == 8 and max(accuracy[-3:]) > 0.35 and "rank 0 of 1 (the only one)" in said


@pytest.mark.parametrize("epoch, step", [(0, 3), (1, 2), (2, 4)] if LONG else [(1, 2)])
def test_killed_and_resumed(photos, undisturbed, tmp_path, epoch, step):
    checkpoint = str(tmp_path / "run.pt")
    options = ("--epochs", "3", "--checkpoint", checkpoint, "--every", "1")
    running = subprocess.Popen([sys.executable, *command(photos, *options)], stdout=subprocess.PIPE, text=True,
                               env=ENVIRONMENT)
    for line in running.stdout:
        found = STEP.match(line)
        if found and (int(found[1]), int(found[2])) == (epoch, step):
            running.kill()
            break
    running.communicate()
    assert running.returncode == -9
    resumed = train(photos, *options)
    first = STEP.search(resumed)
    assert (int(first[1]), int(first[2])) >= (epoch, step)
    assert weights(resumed) == weights(undisturbed)
    # Means of whole epochs, also of the one in which the run was killed.
    means = EPOCH.findall(resumed)
    assert means and means == EPOCH.findall(undisturbed)[-len(means):]


def test_webdataset_is_told_of_jpeg_fast(photos, tmp_path):
    """The example goes on without webdataset, which cannot decode such shards."""
    fast = str(tmp_path / "fast")
    shardpack.repack(photos + "/val", fast, jpeg="fast")
    done = subprocess.run([sys.executable, str(EXAMPLES / "from_webdataset.py"), fast], capture_output=True, text=True,
                          env=ENVIRONMENT, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "webdataset: cannot decode" in done.stdout and "shardpack.Loader: " in done.stdout


def test_two_ranks(photos, undisturbed, tmp_path):
    """As many steps as one rank with the same global batch; what two saved goes on with one."""
    checkpoint = str(tmp_path / "two.pt")
    said = train(photos, "--epochs", "2", "--checkpoint", checkpoint, ranks=2)
    assert "rank 0 of 2 (torch.distributed)" in said
    alone, both = STEP.findall(undisturbed), STEP.findall(said)
    assert [row[:3] for row in both] == [row[:3] for row in alone[: len(both)]]
    resumed = train(photos, "--epochs", "3", "--checkpoint", checkpoint, ranks=1)
    assert STEP.search(resumed)[1] == "2" and len(STEP.findall(resumed)) == len(alone) // 3


RANKS = """
import hashlib, json, sys, torch.distributed as dist, shardpack
dist.init_process_group("gloo")
loader = shardpack.Loader(sys.argv[1], batch_size=int(sys.argv[2]), chunk=4, shuffle=True, num_workers=1, seed=9,
                          image=shardpack.RandomResizedCrop(32), fields=["image", "index", "valid"])
if len(sys.argv) > 4:
    loader.load_state_dict(json.loads(sys.argv[4]))
rows, steps = [], 0
for batch in loader:
    rows.append([[int(i), hashlib.sha256(image.numpy().tobytes()).hexdigest() if ok else ""]
                 for i, image, ok in zip(batch.index, batch.image, batch.valid)])
    steps += 1
    if steps == int(sys.argv[3]):
        break
every = [None] * dist.get_world_size()
dist.all_gather_object(every, (rows, loader.state_dict()))
if dist.get_rank() == 0:
    print(json.dumps(every))
dist.destroy_process_group()
"""


def ranks(photos, count, batch, steps, tmp_path, *state):
    script = tmp_path / "ranks.py"
    script.write_text(RANKS)
    said = launch(count, str(script), photos + "/train", str(batch), str(steps), *state)
    every = json.loads(said.splitlines()[-1])
    assert len({json.dumps(state) for _, state in every}) == 1
    parts = [rows for rows, _ in every]
    assert len({len(part) for part in parts}) == 1  # equal numbers of batches
    merged = [[row for part in step for row in part if row[1]] for step in zip(*parts)]
    return merged, json.dumps(every[0][1])


def test_torchrun(photos, tmp_path):
    """Two ranks see the global batches of one with twice the batch size; what they saved goes on with one and three."""
    one, _ = ranks(photos, 1, 24, 0, tmp_path)
    two, _ = ranks(photos, 2, 12, 0, tmp_path)
    assert two == one
    index = [row[0] for step in two for row in step]
    assert sorted(index) == list(range(len(index)))
    begun, state = ranks(photos, 2, 12, 3, tmp_path)
    assert begun == one[:3]
    flat = [row for step in one for row in step][72:]
    for count in (1, 3):
        rest, _ = ranks(photos, count, 12, 0, tmp_path, state)
        assert [row for step in rest for row in step] == flat


@pytest.mark.parametrize("name, extra", [("from_imagefolder.py", ["torchvision"]), ("from_webdataset.py", []),
                                         ("show_grid.py", [])])  # fmt: skip
def test_other_examples(photos, name, extra, tmp_path):
    pytest.importorskip("PIL")
    for module in extra:
        pytest.importorskip(module)
    source, packed = str(pathlib.Path(photos).parent / "photos"), photos + "/val"
    arguments = {"from_imagefolder.py": [source, packed], "from_webdataset.py": [packed],
                 "show_grid.py": [packed, str(tmp_path / "grid.png")]}[name]
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *arguments], capture_output=True, text=True,
                          env=ENVIRONMENT, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "shardpack" in done.stdout or (tmp_path / "grid.png").stat().st_size > 10000
