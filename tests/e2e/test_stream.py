"""Streaming through the command: the same batches for any number of workers and ranks, after a resume, and while workers
are being killed; damage is an error and never a shorter epoch. And the examples that use the loader."""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import time

from harness import LONG, NOBODY, equal, long, require, shards

KILLS = 100 if LONG else 5
RESUMES = 20 if LONG else 4
PER_CLASS = 100 if LONG else 25
OPTIONS = ["--hflip", "0.5", "--fields", "jpg,cls", "--keys"]
EXAMPLES = pathlib.Path(os.environ["MAKE_PHOTOS"]).parent


def dataset(case, *options, per_class=PER_CLASS):
    target = case.dir / "set"
    case.pack(case.photos(per_class), target, "--shard-size", "700K", "--frame-samples", "8", *options)
    return target


def stream(case, target, *options):
    """Lines of a run, without the head."""
    return case.spk("stream", *OPTIONS, *map(str, options), target).out.decode().splitlines()[1:]


def rows(lines):
    """(position, digest, key) of each row."""
    return [tuple(line.split()[i] for i in (1, -2, -1)) for line in lines if line.split()[0] == "row"]


def body(lines):
    """What does not depend on where a run began: everything but the last lines of epochs."""
    return [line for line in lines if not line.startswith("end")]


def children(pid):
    """Worker processes of a running command."""
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
        try:
            found += [int(word) for word in (task / "children").read_text().split()]
        except OSError:
            pass
    return found


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# What also holds of datasets in another form: their batches are those of `like` (test_jpeg_fast.py).


def any_number_of_workers(case, target, like):
    for options in (["-b", 32, "-e", 2], ["-b", 24, "--no-shuffle", "--image", "eval", "--dtype", "float32"]):
        want = stream(case, like, *options, "-w", 0)
        for workers in (0, 1, 2, 4):
            equal(stream(case, target, *options, "-w", workers), want, f"{workers} workers, {options}")


def every_sample_once(case, target):
    have = rows(stream(case, target, "-b", 24, "-e", 2, "-w", 2))
    keys = sorted(case.keys(target))
    for epoch in range(2):
        part = have[epoch * len(keys) : (epoch + 1) * len(keys)]
        equal([int(position) for position, _, _ in part], list(range(len(keys))), f"positions of epoch {epoch}")
        equal(sorted(key for _, _, key in part), keys, f"keys of epoch {epoch}")
    require(have[: len(keys)] != have[len(keys) :], "both epochs are the same")


def any_number_of_ranks(case, target, like):
    for ranks, batch in ((2, 32), (4, 16), (2, 21), (3, 8)):
        # A whole number of global batches, so that no rank has rows to pad.
        limit = len(case.keys(target)) // (ranks * batch) * ranks * batch
        want = rows(stream(case, like, "-b", ranks * batch, "-w", 2, "--limit", limit))
        equal(len(want), limit, "rows of one rank")
        have = []
        for rank in range(ranks):
            options = ["-b", batch, "--rank", rank, "--world-size", ranks, "-w", rank % 3, "--limit", limit]
            mine = rows(stream(case, target, *options))
            equal(len(mine), limit // ranks, f"rows of rank {rank} of {ranks}")
            have += mine
        equal(sorted(have, key=lambda row: int(row[0])), want, f"{ranks} ranks x {batch}")


def resumed(case, target, like, times=RESUMES):
    state, draw = case.dir / "state.json", random.Random(5)
    options = ["-b", 24, "-e", 3]
    want = stream(case, like, *options, "-w", 2)
    batches = sum(line.split()[0].isdigit() for line in want)
    for place in sorted(draw.sample(range(1, batches), times)):
        workers = draw.choice([0, 1, 2, 3])
        stream(case, target, *options, "-w", workers, "--state", state, "--batches", place)
        epochs = 3 - (place - 1) // (batches // 3)
        rest = stream(case, target, "-b", 24, "-e", epochs, "-w", (workers + 1) % 4, "--resume", state)
        equal(body(rest), body(want)[place + place_rows(want, place) :], f"resumed after batch {place}")
        other = rows(stream(case, target, "-b", 40, "-w", 1, "--resume", state))
        behind = rows(want)[place_rows(want, place) :]
        equal(other, behind[: len(other)], f"resumed after batch {place} with batches of 40")


def place_rows(lines, place):
    """Rows in the first `place` batches."""
    sizes = [int(line.split()[3]) for line in lines if line.split()[0].isdigit()]
    return sum(sizes[:place])


def test_interrupted_and_resumed(case):
    """Ctrl-C saves the state; what follows is the rest."""
    target, state = dataset(case), case.dir / "state.json"
    want = body(stream(case, target, "-b", 8, "-e", 4, "-w", 0))
    command = [case.command, "stream", *OPTIONS, "-b", "8", "-e", "4", "-w", "2", "--state", state, target]
    with open(case.dir / "out", "w+b") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        while child.poll() is None and os.fstat(out.fileno()).st_size == 0:
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        err = child.communicate()[1]
        out.seek(0)
        have = body(out.read().decode().splitlines()[1:])
    equal(child.returncode, 130, "exit status: %r" % err)
    require(err.endswith(b"interrupted; the state is saved\n"), "%r", err)
    epoch = int([line for line in have if line.split()[0].isdigit()][-1].split()[0])
    have += body(stream(case, target, "-b", 8, "-e", 4 - epoch, "--resume", state))
    equal(have, want, "both parts")


def killed_run(case, target, options, draw, kills):
    """Output of a run whose workers are killed at random, and how many were."""
    done = 0
    with open(case.dir / "out", "w+b") as out, open(case.dir / "err", "w+b") as err:
        command = [case.command, "stream", *OPTIONS, *options, target]
        child = subprocess.Popen(command, stdout=out, stderr=err)
        while child.poll() is None:
            time.sleep(0.02 + draw.random() * 0.1)
            workers = children(child.pid)
            if workers and done < kills:
                try:
                    os.kill(draw.choice(workers), signal.SIGKILL)
                    done += 1
                except ProcessLookupError:
                    pass
        out.seek(0)
        err.seek(0)
        text = err.read().decode()
        equal(child.returncode, 0, f"exit status after {done} kills: {text}")
        replaced = re.search(r"([\d,]+) workers? ended early", text)
        return out.read().decode().splitlines()[1:], int(replaced[1].replace(",", "")) if replaced else 0


def workers_killed(case, target, like, kills=KILLS):
    draw, total = random.Random(11), 0
    options = ["-b", "32", "-e", "60" if LONG else "12", "-w", "3"]
    want = stream(case, like, *options[:-1], 0)
    for _ in range(40):
        have, replaced = killed_run(case, target, options, draw, kills - total)
        equal(have, want, f"output of a run with {replaced} workers replaced")
        total += replaced
        if total >= kills:
            return
    require(False, "only %d of %d workers could be killed", total, kills)


def trainer_killed(case, target):
    """kill -9 of the command itself leaves no worker."""
    command = [case.command, "stream", "-b", "8", "-e", "1000", "-w", "3", target]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    child.stdout.readline()
    child.stdout.readline()
    workers = children(child.pid)
    equal(len(workers), 3, "workers")
    child.kill()
    child.communicate()
    end = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < end:
        time.sleep(0.01)
    equal([pid for pid in workers if alive(pid)], [], "workers left behind")


def test_any_number_of_workers(case):
    target = dataset(case)
    any_number_of_workers(case, target, target)


def test_every_sample_once(case):
    every_sample_once(case, dataset(case))


def test_any_number_of_ranks(case):
    target = dataset(case)
    any_number_of_ranks(case, target, target)


def test_resumed(case):
    target = dataset(case)
    resumed(case, target, target)


def test_workers_killed(case):
    target = dataset(case, per_class=25)
    workers_killed(case, target, target)


def test_trainer_killed(case):
    trainer_killed(case, dataset(case))


def refused(case, target, want, glob, *options):
    """One line of error, exit status 1, and no batch that differs from those of the sound dataset."""
    for workers in (0, 2):
        result = case.refused(glob, "stream", *OPTIONS, *options, "-w", str(workers), target)
        equal(len(result.text.splitlines()), 1, "lines on stderr: %s" % result.text)
        have = result.out.decode().splitlines()[1:]
        equal(have, want[: len(have)], "batches before the error")
        require(len(have) < len(want), "all batches came")


def test_damaged_shards(case):
    sound = dataset(case)
    want = stream(case, sound, "-b", 16)
    name = shards(sound)[-1].name
    size = (sound / name).stat().st_size

    def copy():
        shutil.rmtree(case.dir / "bad", ignore_errors=True)
        shutil.copytree(sound, case.dir / "bad")
        (case.dir / "bad" / name).chmod(0o644)
        return case.dir / "bad"

    (copy() / name).unlink()
    refused(case, case.dir / "bad", want, f"*{name}: No such file*", "-b", "16")
    os.truncate(copy() / name, size // 2)
    refused(case, case.dir / "bad", want, f"*{name}*", "-b", "16")
    with open(copy() / name, "r+b") as file:
        file.seek(size // 3)
        byte = file.read(1)[0]
        file.seek(size // 3)
        file.write(bytes([byte ^ 0x10]))
    refused(case, case.dir / "bad", want, f"*{name}*", "-b", "16")
    shutil.copy(shards(sound)[0], copy() / name)
    refused(case, case.dir / "bad", want, f"*{name}*", "-b", "16")


def test_unreadable(case):
    """What may not be read, or is no file, is named."""
    target = dataset(case)
    table = next(target.glob("*.tsv")).name
    for name in ("manifest.json", table, shards(target)[0].name):
        mode = (target / name).stat().st_mode
        (target / name).chmod(0)
        for workers in ("0", "2"):
            case.refused(f"*{name}: Permission denied*", "stream", "-w", workers, target, user=NOBODY)
        (target / name).chmod(mode)
        (target / name).rename(case.dir / "aside")
        (target / name).mkdir()
        case.refused(f"*{name}: *", "stream", "-w", "1", target)
        (target / name).rmdir()
        case.refused(f"*{name}*", "stream", "-w", "1", target)
        (case.dir / "aside").rename(target / name)
    stream(case, target)


def test_bad_images(case):
    """A sample that cannot be decoded is named, or counted and made up for."""
    source = case.dir / "src"
    shutil.copytree(case.photos(), source)
    bad = ["city/city_0003.jpg", "night/night_0010.jpg", "fruit/fruit_0007.jpg"]
    for path in bad:
        (source / path).write_bytes(b"no image at all")
    case.pack(source, case.dir / "set", "--on-bad", "keep")
    target = case.dir / "set"
    case.refused("*sample *jpg: not an image*", "stream", "-b", "32", target)
    want = stream(case, target, "-b", 32, "--on-error", "substitute", "-w", 0)
    equal(stream(case, target, "-b", 32, "--on-error", "substitute", "-w", 3), want, "substituted")
    missing = sorted(line.split()[-1] for line in want if "not valid" in line)
    equal(missing, sorted(path[:-4] for path in bad), "rows that are not valid")
    for most, code in ((2, 1), (3, 0)):
        options = ["--on-error", "substitute", "--max-errors", str(most), "-b", "32"]
        equal(case.run(case.command, "stream", *options, target).code, code, f"exit status with {most} errors allowed")


def test_example_train_softmax(case):
    target = dataset(case, per_class=40)
    want = case.run(EXAMPLES / "train_softmax", target, "0", check=True).out
    for workers in ("1", "3"):
        equal(case.run(EXAMPLES / "train_softmax", target, workers, check=True).out, want, f"losses with {workers} workers")
    accuracy = [float(line.split()[-2]) for line in want.decode().splitlines()]
    equal(len(accuracy), 8, "epochs")
    require(accuracy[0] < 90 and accuracy[-1] >= 97, "accuracy went from %r to %r", accuracy[0], accuracy[-1])


def test_other_examples(case):
    target = dataset(case)
    out = case.run(EXAMPLES / "resume", target, check=True).out.decode()
    require("are the same, in the same order" in out, "%s", out)
    photos = list(case.photos(PER_CLASS).rglob("*.jpg"))
    out = case.run(EXAMPLES / "raw_bytes", target, check=True).out.decode()
    have = [line.split() for line in out.splitlines()]
    equal(have[0][:5], ["cls", "label", str(len(photos)), "values", str(len(photos))], "labels")
    size = sum(path.stat().st_size for path in photos)
    equal(have[1][:5], ["jpg", "image", str(len(photos)), "values", str(size)], "images")


@long
def test_many_epochs_are_flat(case):
    """Memory of the command and its workers does not grow with the epochs."""
    target = dataset(case)
    peaks = [case.peak_memory("stream", "-b", "32", "-w", "2", "-e", epochs, target)[1] for epochs in ("5", "50")]
    require(peaks[1] < peaks[0] * 1.1, "peak memory of 5 and 50 epochs: %r", peaks)
