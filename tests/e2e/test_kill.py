"""Killed at random instants and run again, the packer ends with the same bytes; nothing partial is ever visible."""
import os
import random
import re
import shutil
import signal
import subprocess
import time

from harness import LONG, equal, require, same_trees, work_files

RUNS = 50 if LONG else 5
OPTIONS = ["--quiet", "--shard-size", "300K", "--frame-samples", "4", "--jobs", "2"]
FINAL = re.compile(r"(shard-[0-9a-f]{8}-\d{6,}\.tar\.zst|shards-[0-9a-f]{8}\.tsv|manifest\.json|bad-files\.tsv)")


def recorded(target):
    """Numbers of the shards that the journal holds."""
    journal = target / ".shardpack/journal"
    text = journal.read_bytes().decode() if journal.exists() else ""
    return {int(line.split("\t")[1]) for line in text.split("\n")[:-1] if line.startswith("shard\t")}


def finished(target):
    """{number: (inode, mtime)} of the shards that the packer's journal holds, whether published or not. A shard that is
    complete but not yet in the journal may be written again."""
    found, known = {}, recorded(target)
    for folder in (target / ".shardpack", target):
        if folder.exists():
            for path in folder.iterdir():
                number = re.fullmatch(r"(?:.*-)?(\d{6,})(\.done|\.tar\.zst)", path.name)
                if number and (int(number[1]) in known or folder == target):
                    status = path.stat()
                    found[number[1]] = (status.st_ino, status.st_mtime_ns)
    return found


def check_visible(target, want):
    """Whatever has a final name is complete and is what the undisturbed run wrote."""
    for name in work_files(target):
        require(FINAL.fullmatch(name), "unexpected file %s", name)
        equal((target / name).read_bytes(), want[name], f"{name} while packing")


def kill_after(case, command, source, target, delay, sent):
    child = subprocess.Popen([case.command, *command, source, target], stderr=subprocess.PIPE)
    try:
        child.wait(delay)
    except subprocess.TimeoutExpired:
        child.send_signal(sent)
    text = child.communicate()[1]
    return child.returncode, text


def campaign(case, source, command, runs=RUNS, sent=signal.SIGKILL, seed=1):
    want_folder = case.dir / "undisturbed"
    start = time.monotonic()
    case.run(case.command, *command, source, want_folder, check=True)
    whole = time.monotonic() - start
    want = {name: (want_folder / name).read_bytes() for name in work_files(want_folder)}
    draw, kills, resumed = random.Random(seed), 0, 0
    for run in range(runs):
        target, before = case.dir / f"run-{run}", {}
        for attempt in range(100):
            # Ever longer, so that a run ends also on a machine that was faster when the time was taken.
            delay = draw.random() * whole * (1.1 + attempt / 10)
            code, text = kill_after(case, command, source, target, delay, sent)
            check_visible(target, want)
            after = finished(target)
            for number, status in before.items():
                equal(after.get(number), status, f"inode and time of finished shard {number}")
            resumed += bool(before)
            before = after
            if code == 0:
                break
            kills += 1
            if sent == signal.SIGKILL:
                equal(code, -sent, "exit of a killed run: %r" % text)
            else:
                require(code in (128 + sent, -sent), "exit %d after signal %d: %r", code, sent, text)
        require(code == 0, "not finished after 100 attempts: %r", text)
        same_trees(target, want_folder, f"run {run}")
        require(not (target / ".shardpack").exists(), "work folder is left")
    require(kills >= runs // 2, "only %d kills in %d runs", kills, runs)


def test_killed_and_resumed(case):
    campaign(case, case.photos(), ["pack", *OPTIONS], seed=2024)


def test_killed_and_resumed_with_coefficients(case):
    campaign(case, case.photos(), ["pack", *OPTIONS, "--jpeg", "fast"], max(2, RUNS // 5), seed=2025)


def test_interrupted_and_resumed(case):
    campaign(case, case.photos(), ["pack", *OPTIONS], max(2, RUNS // 10), signal.SIGINT, 7)


def test_terminated_and_resumed(case):
    campaign(case, case.photos(), ["pack", *OPTIONS], max(2, RUNS // 10), signal.SIGTERM, 8)


def stopped_packer(case, source, target, *options):
    """Starts a packer and stops it (SIGSTOP) as soon as it has finished its first shard."""
    child = subprocess.Popen([case.command, "pack", *OPTIONS, "--jobs", "1", *options, source, target],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    while child.poll() is None and not recorded(target):
        time.sleep(0.0005)
    child.send_signal(signal.SIGSTOP)
    return child


def test_second_packer_is_refused(case):
    case.spk("pack", *OPTIONS, "--seed", "1", case.photos(), case.dir / "set")
    child = stopped_packer(case, case.photos(), case.dir / "set", "--force")
    try:
        case.refused("*set*another*", "pack", *OPTIONS, "--force", case.photos(), case.dir / "set")
        case.refused("*set*another*", "prune", case.dir / "set")
    finally:
        child.send_signal(signal.SIGCONT)
        out, err = child.communicate()
    equal(child.returncode, 0, "first packer: %r" % err)
    case.spk("verify", "--quiet", case.dir / "set")


def interrupted(case, source, target, *options):
    child = stopped_packer(case, source, target, *options)
    child.kill()
    child.communicate()
    require(child.returncode == -signal.SIGKILL, "the packer finished too soon")


def test_changed_options_are_refused(case):
    source, target = case.photos(), case.dir / "set"
    interrupted(case, source, target)
    case.refused("*--force*", "pack", *OPTIONS, "--seed", "9", source, target)
    case.spk("pack", *OPTIONS, "--seed", "9", "--force", source, target)
    case.spk("pack", *OPTIONS, "--seed", "9", source, case.dir / "fresh")
    same_trees(target, case.dir / "fresh")


def test_changed_input_is_refused(case):
    source, target = case.dir / "src", case.dir / "set"
    case.run("cp", "-R", case.photos(), source, check=True)
    interrupted(case, source, target)
    changed = source / "night/night_0003.jpg"
    changed.write_bytes((source / "night/night_0004.jpg").read_bytes())
    case.refused("*--force*", "pack", *OPTIONS, source, target)
    case.spk("pack", *OPTIONS, "--force", source, target)
    case.spk("pack", *OPTIONS, source, case.dir / "fresh")
    same_trees(target, case.dir / "fresh")


def test_lost_work_is_made_again(case):
    """Finished shards of an interrupted run that were cut short or removed in between are written anew."""
    source, target = case.photos(), case.dir / "set"
    case.spk("pack", *OPTIONS, source, case.dir / "fresh")
    for what in ("cut", "removed", "journal cut", "journal removed"):
        interrupted(case, source, target)
        done = sorted((target / ".shardpack").glob("*.done"))[0]
        journal = target / ".shardpack/journal"
        if what == "removed":
            done.unlink()
        elif what == "journal removed":
            journal.unlink()
        else:
            path = done if what == "cut" else journal
            path.chmod(0o644)
            os.truncate(path, path.stat().st_size - 10)
        case.spk("pack", *OPTIONS, source, target)
        same_trees(target, case.dir / "fresh", what)
        shutil.rmtree(target)
