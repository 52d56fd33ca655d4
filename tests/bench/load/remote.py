"""Datasets by URL: nginx and an S3 server on loopback, beside curl, the local disk, webdataset and s3cmd."""
import contextlib
import functools
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time
import types

import environment
from inputs import remove, shard_paths
from load import answer, batch_size, derived, key, program
from measure import BenchError, Contender, number_text, say
from peer_race import SECONDS, Race
from report import Line, foreign_cores, ratio_line

sys.path.append(os.path.join(environment.ROOT, "tests", "e2e"))
import harness    # noqa: E402
import servers    # noqa: E402

WORKERS = 2
LATENCY = 30    # milliseconds that a round trip takes
LINK, LINK_LATENCY = 2500, 2    # megabits per second, milliseconds
JOBS = 4    # uploads at a time


class Relay:
    """A server that is far away: each round trip to it takes so many milliseconds more, and so many megabits per second
    come from it, if that is told."""

    def __init__(self, bench, port, *settings):
        self.process = subprocess.Popen([bench.helper("delay_relay"), str(port), *map(str, settings)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def loader(bench, place, *options, env=()):
    settings = [f"{name}={value}" for name, value in dict(env).items()]
    return ["env", *settings, program(bench, "load_bench"), "epochs", place, f"workers={WORKERS}",
            f"batch={batch_size(bench)}", *options]


def fetching(bench, most=3_000_000_000):
    """Times that the dataset is read in one run: a start-up of some ten milliseconds must not count."""
    size = sum(map(os.path.getsize, shard_paths(bench.dataset())))
    return max(1, (100_000_000 if bench.quick else most) // size), size


def sha256_seconds():
    """Of a gigabyte, on one core."""
    data = bytes(64 << 20)
    begun = time.process_time()
    hashlib.sha256(data)
    return (time.process_time() - begun) * 1e9 / len(data)


def raw_against_curl(bench, web, url, what="raw from nginx", most=3_000_000_000, at_least=0.8):
    """As many connections, whole processes, start and end included. Ours counts the bytes of the frames that it read:
    where spans are short, as in a small dataset, those at both ends of each are read twice in an epoch."""
    epochs, size = fetching(bench, most)
    ours = loader(bench, url, "raw=1", f"epochs={epochs}")
    before = web.connections()
    bench.machine.run(ours)
    connections = len(web.connections() - before)
    names = [os.path.basename(path) for path in shard_paths(bench.dataset())]
    curl = ["curl", "-s", "-f", "--parallel", "--parallel-immediate", "--parallel-max", str(connections)]
    for name in names * epochs:
        curl += ["-o", "/dev/null", f"{url}/{name}"]
    mine, theirs = bench.machine.interleave([
        Contender("shardpack", ours, None, lambda run: answer(run)["bytes_read"] / run.wall / 1e6),
        Contender("curl", curl, None, lambda run: epochs * size / run.wall / 1e6),
    ], bench.rounds, "MB/s")
    line = ratio_line("remote", f"{what}, W = {WORKERS} / curl, {connections} connections at most", mine, theirs,
                      "MB/s", at_least=at_least)
    read = answer(mine.runs[0])["bytes_read"]
    cpu = [min(run.cpu for run in side.runs) * 1e9 for side in (mine, theirs)]
    line.detail += (f"; CPU seconds per GB {number_text(cpu[0] / read)} against {number_text(cpu[1] / epochs / size)}, "
                    f"SHA-256 alone {number_text(sha256_seconds())}; each byte read "
                    f"{number_text(read / epochs / size)} times")
    return [line]


def far_against_local(bench, url, near_url):
    """Decoded batches, and how long the first one takes beyond a local one's time. The server and the relay take the
    same processors; near_url, through a relay that does not wait, tells what the latency alone costs."""
    far, near, local = bench.machine.interleave([
        Contender(f"{LATENCY} ms away", loader(bench, url, "epochs=2"), None, key("rate_all")),
        Contender("near", loader(bench, near_url, "epochs=2"), None, key("rate_all")),
        Contender("local", loader(bench, bench.dataset(), "epochs=2"), None, key("rate_all")),
    ], bench.rounds, "images/s")
    first = {name: derived(side, "first batch", lambda a: a["first_batch"])
             for name, side in (("far", far), ("near", near), ("local", local))}

    def trips_beyond(name, what):
        trips = sorted((a - b) / (LATENCY / 1e3) for a, b in zip(first["far"].values, first[name].values))
        return Line("remote", f"first batch over HTTP less {what}, in round trips", trips[len(trips) // 2], "", True, 6.0,
                    f"{number_text(first['far'].median)} against {number_text(first[name].median)} s; "
                    f"{number_text(trips[0])} to {number_text(trips[-1])}", foreign_cores(first["far"], first[name]))

    return [
        ratio_line("remote", f"decoded over HTTP, {LATENCY} ms / local", far, local, "images/s", at_least=0.95),
        ratio_line("remote", f"decoded over HTTP, {LATENCY} ms / no latency", far, near, "images/s", at_least=0.95),
        trips_beyond("near", "one without latency"),
        trips_beyond("local", "a local one"),
    ]


def against_webdataset(bench, web, url):
    """Files as they are; its shards are fetched as its documentation says, by a pipe from curl."""
    race = Race(bench)
    if "webdataset" in race.missing:
        say(f"  without webdataset: {race.missing['webdataset']}")
        return []
    store = pathlib.Path(race.store("webdataset"))
    served = f"{web.url}/{store.relative_to(bench.folder)}"
    rates = {}
    for workers in (2,) if bench.quick else (1, 2, 4):
        command = [*race.run_command("webdataset", workers, "raw"), "--url", served]
        rates[workers] = (answer(bench.machine.run(command))["rate"], command)
    workers = max(rates, key=lambda count: rates[count][0])
    ours, theirs = bench.machine.interleave([
        Contender("shardpack", ["timeout", str(SECONDS), *loader(bench, url, "raw=1")], None, key("rate")),
        Contender("webdataset", rates[workers][1], None, key("rate")),
    ], bench.rounds, "samples/s")
    return [ratio_line("remote", f"raw over HTTP: against webdataset, W = {workers}", ours, theirs, "samples/s",
                       at_least=3.0)]


def cache_against_local(bench, url):
    """Everything is in the cache."""
    cache = {"SHARDPACK_CACHE_DIR": bench.path("cache")}
    bench.machine.run(loader(bench, url, "raw=1", env=cache))
    lines = []
    for name, unit, options in (("decoded", "images/s", ("epochs=2",)),
                                ("raw", "samples/s", ("raw=1", f"epochs={fetching(bench)[0]}"))):
        cached, local = bench.machine.interleave([
            Contender("cached", loader(bench, url, *options, env=cache), None, key("rate_all")),
            Contender("local", loader(bench, bench.dataset(), *options), None, key("rate_all")),
        ], bench.rounds, unit)
        lines.append(ratio_line("remote", f"{name} from a full cache / local", cached, local, unit, at_least=0.97))
    remove(bench.path("cache"))
    return lines


def upload_against_s3cmd(bench, case):
    """The shards to an S3 server. s3cmd sends one file at a time: as many of it run as we send shards at a time."""
    if not shutil.which("s3cmd"):
        say("  without s3cmd (Debian and Ubuntu: apt install s3cmd)")
        return []
    shards = shard_paths(bench.dataset())
    size = sum(map(os.path.getsize, shards)) / 1e6
    try:
        store = servers.SeaweedFS(case, int(1280 + 2.5 * size * bench.rounds))
    except harness.Skip as reason:
        say(f"  mirror: left out: {reason}")
        return []
    with servers.running(store):
        os.environ.update(store.env())
        store.make_bucket(case, "ours")
        store.make_bucket(case, "theirs")
        config = ["--access_key", store.KEY, "--secret_key", store.SECRET, "--no-ssl", f"--host=127.0.0.1:{store.port}",
                  f"--host-bucket=127.0.0.1:{store.port}/%(bucket)", "--no-check-md5", "-q", "--force"]
        # A new prefix each time: nothing is there yet.
        theirs = ["sh", "-c", 'p=$(date +%s%N); printf "%s\\n" "$@" | xargs -P "$0" -I{} s3cmd put '
                  + shlex.join(config) + ' {} "s3://theirs/$p/"', str(JOBS), *shards]
        ours = ["sh", "-c", 'exec "$0" mirror -q --jobs "$1" "$2" "s3://ours/$(date +%s%N)"', bench.command, str(JOBS),
                bench.dataset()]
        rate = lambda run: size / run.wall    # noqa: E731
        mine, peer = bench.machine.interleave([Contender("mirror", ours, None, rate), Contender("s3cmd", theirs, None, rate)],
                                              bench.rounds, "MB/s")
    return [ratio_line("remote", f"mirror to S3, {JOBS} at a time, verified / s3cmd put", mine, peer, "MB/s", at_least=0.8)]


class Web(servers.Nginx):
    """Its log has the number of each request's connection."""

    def connections(self):
        with contextlib.suppress(FileNotFoundError):
            return {line.split()[-1] for line in (self.dir / "access.log").read_text().splitlines()}
        return set()


def measure_remote(bench):
    """All of it; the dataset is served from where it was packed."""
    bench.dataset()
    case = types.SimpleNamespace(dir=pathlib.Path(bench.folder),
                                 run=lambda *command: types.SimpleNamespace(out=subprocess.check_output(command)))
    try:
        web = Web(case, bench.folder)
    except harness.Skip as reason:
        raise BenchError(f"{reason} (Debian and Ubuntu: apt install nginx-light)") from None
    relay, near = Relay(bench, web.port, LATENCY), Relay(bench, web.port, 0)
    link = Relay(bench, web.port, LINK_LATENCY, LINK)
    os.environ["SHARDPACK_CACHE_DIR"] = ""
    path = f"/{os.path.basename(bench.dataset())}"
    lines, failed = [], []
    parts = (functools.partial(raw_against_curl, bench, web, web.url + path),
             functools.partial(raw_against_curl, bench, web, link.url + path,
                               f"raw over {LINK / 1000} Gbit/s, {LINK_LATENCY} ms", 4_000_000_000, 0.95),
             functools.partial(far_against_local, bench, relay.url + path, near.url + path),
             functools.partial(against_webdataset, bench, web, web.url + path),
             functools.partial(cache_against_local, bench, web.url + path),
             functools.partial(upload_against_s3cmd, bench, case))
    with servers.running(web, relay, near, link):
        for part in parts:
            try:
                lines += part()
            except (BenchError, harness.Failure) as problem:
                failed.append(f"{part.func.__name__}: {problem}")
    for text in failed:
        print(f"remote: without {text}", file=sys.stderr)
    if not lines:
        raise BenchError("no part of it runs here")
    return lines
