"""The cache of datasets by URL: its limit, kills, a full disk, other users, what is not its own."""
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

from harness import LONG, NOBODY, PATIENCE, Skip, equal, require
from servers import Nginx, running
from test_remote import dataset, stream

KILLS = 50 if LONG else 8
MB = 1 << 20


def used(folder):
    """Bytes on disk of everything in a folder, as du counts."""
    total = 0
    for path in pathlib.Path(folder).rglob("*"):
        try:
            if path.is_file():
                total += path.stat().st_blocks * 512
        except OSError:
            pass
    return total


class Watch:
    """Samples the size of a folder every 10 ms."""

    def __init__(self, folder):
        self.folder, self.most, self.samples, self.stop = folder, 0, 0, threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.stop.wait(0.01):
            self.most, self.samples = max(self.most, used(self.folder)), self.samples + 1

    def end(self):
        self.stop.set()
        self.thread.join()
        return self.most


def test_limit_is_never_exceeded(case):
    local = dataset(case)
    want, limit = stream(case, local, "-e", 2), 2 * MB
    require(used(local) > limit + MB, "the dataset is larger than the limit: %d", used(local))
    with running(Nginx(case, local.parent)) as web:
        watch = Watch(case.dir / "cache")
        for workers in (0, 2):
            have = stream(case, web.url + "/set", "-e", 2, "-w", workers, "--cache-dir", case.dir / "cache", "--cache-limit",
                          limit)
            equal(have, want, f"{workers} workers")
        most = watch.end()
        require(limit // 4 < most <= limit, "at most %d bytes of %d in %d samples", most, limit, watch.samples)


def test_eviction_under_pressure(case):
    import concurrent.futures
    local = dataset(case)
    with running(Nginx(case, local.parent)) as web, concurrent.futures.ThreadPoolExecutor(3) as pool:
        limit, cache = 1 * MB, case.dir / "cache"
        want = {seed: stream(case, local, "--seed", seed) for seed in range(3)}
        watch = Watch(cache)
        runs = {seed: pool.submit(stream, case, web.url + "/set", "--seed", seed, "-w", 2, "--cache-dir", cache,
                                  "--cache-limit", limit) for seed in want}
        for seed, run in runs.items():
            equal(run.result(), want[seed], f"seed {seed}")
        most = watch.end()
        require(most <= limit, "%d bytes", most)


def test_killed_at_random_moments(case):
    local = dataset(case)
    want, cache = stream(case, local), case.dir / "cache"
    random.seed(1)
    with running(Nginx(case, local.parent)) as web:
        command = [case.command, "stream", "--hflip", "0.5", "--batch-size", "64", "-w", "2", "--cache-dir", str(cache),
                   web.url + "/set"]
        for _ in range(KILLS):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(random.random() * 0.5)
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        equal(stream(case, web.url + "/set", "-w", 2, "--cache-dir", cache), want, "batches after the kills")
        before = len(web.requests())
        equal(stream(case, web.url + "/set", "-w", 2, "--cache-dir", cache), want, "batches from the cache")
        asked = [line[1] for line in web.requests()[before:]]
        equal(asked, ["/set/manifest.json"], "requests of a run from the cache")
        # What the cache has is valid: it serves without the shards.
        for shard in local.glob("*.zst"):
            shard.unlink()
        equal(stream(case, web.url + "/set", "-w", 1, "--cache-dir", cache), want, "batches without the server's shards")


def test_full_disk(case):
    if os.geteuid() != 0:
        raise Skip("mounting needs root")
    local, mount = dataset(case), case.dir / "small"
    mount.mkdir()
    if case.run("mount", "-t", "tmpfs", "-o", "size=1500k,mode=755", "none", mount).code != 0:
        raise Skip("cannot mount a tmpfs")
    try:
        with running(Nginx(case, local.parent)) as web:
            done = case.run(case.command, "stream", "-v", "--hflip", "0.5", "--batch-size", "64", "-w", "2", "--cache-dir",
                            mount / "cache", "--cache-limit", "1G", web.url + "/set", check=True)
            equal(done.out, stream(case, local), "batches")
            notes = [line for line in done.text.splitlines() if "cache cannot be written" in line]
            equal(len(notes), 1, f"warnings: {done.text}")
    finally:
        case.run("umount", mount)


def test_two_users(case):
    if os.geteuid() != 0:
        raise Skip("needs root")
    local, cache = dataset(case), case.dir / "cache"
    cache.mkdir()
    cache.chmod(0o1777)
    want = stream(case, local)
    options = ["stream", "--hflip", "0.5", "--batch-size", "64", "-w", "1", "--cache-dir", cache]
    with running(Nginx(case, local.parent)) as web:
        url = web.url + "/set"
        # A first user with a closed umask, a second one who can only read, then one who may write.
        for mask, group in ((0o022, NOBODY), (0o000, NOBODY)):
            equal(case.run(case.command, *options, url, user=NOBODY, umask=mask, check=True).out, want, "first user")
            before = len(web.requests())
            equal(case.run(case.command, *options, url, user=NOBODY - 1, umask=mask, check=True).out, want, "second user")
            equal([line[1] for line in web.requests()[before:]], ["/set/manifest.json"], "requests of the second user")
            for path in (cache / "shardpack-cache-1").iterdir():
                equal(path.stat().st_mode & 0o777, 0o666 & ~mask, path.name)
            case.run("rm", "-rf", cache / "shardpack-cache-1", check=True)


def test_foreign_files_stay(case):
    local, cache = dataset(case), case.dir / "cache"
    inside = cache / "shardpack-cache-1"
    inside.mkdir(parents=True)
    mine = {"note.txt": b"mine", "a" * 64 + ".data": b"x" * MB, "b" * 64 + ".map": b"no map of ours" * 10, "c" * 64: b"y"}
    for name, data in mine.items():
        (inside / name).write_bytes(data)
    (cache / "other.bin").write_bytes(b"z" * MB)
    with running(Nginx(case, local.parent)) as web:
        for _ in range(2):
            equal(stream(case, web.url + "/set", "-w", 2, "--cache-dir", cache, "--cache-limit", MB), stream(case, local), "run")
    case.spk("cache", "clear", "--cache-dir", cache)
    for name, data in mine.items():
        equal((inside / name).read_bytes(), data, name)
    equal(sorted(p.name for p in inside.iterdir()), sorted([*mine, "account"]), "what is left after clear")
    equal((cache / "other.bin").read_bytes(), b"z" * MB, "beside it")


def test_info_and_clear(case):
    local, cache = dataset(case), case.dir / "cache"
    case.refused("*no cache is there*", "cache", "info", "--cache-dir", cache)
    with running(Nginx(case, local.parent)) as web:
        want = stream(case, web.url + "/set", "-w", 2, "--cache-dir", cache)
        info = case.json("cache", "info", "--json", env={"SHARDPACK_CACHE_DIR": str(cache)})
        equal(info["entries"], len(list(local.glob("*.zst"))) + 1, "entries: shards and the table")
        require(used(local) <= info["bytes"] + MB and info["in_use"] == 0, "%r", info)
        process = subprocess.Popen([case.command, "stream", "-e", "1000", "-w", "1", "--cache-dir", cache, web.url + "/set"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for _ in range(3):
            process.stdout.readline()
        cleared = case.json("cache", "clear", "--json", "--cache-dir", cache)
        require(cleared["in_use"] > 0, "what is open stays: %r", cleared)
        process.kill()
        process.wait()
        for _ in range(10 * PATIENCE):  # its worker ends a moment later
            cleared = case.json("cache", "clear", "--json", "--cache-dir", cache)
            if cleared["in_use"] == 0:
                break
            time.sleep(0.1)
        equal((cleared["entries"], cleared["bytes"]), (0, 0), "after clear")
        equal(stream(case, web.url + "/set", "-w", 2, "--cache-dir", cache), want, "after clear")
