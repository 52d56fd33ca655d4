"""The loader against other loaders, on the same images, in the same rounds."""
import os
import statistics
import sys

import environment
from load import EPOCHS, FLOAT, answer, batch_size, key, loader, raw_options
from measure import BenchError, Contender, number_text, say
from report import ratio_line

DECODED = ("torchvision", "webdataset", "mosaicml", "litdata", "spdl", "mlx-data", "ffcv", "dali", "datago")
RAW = ("webdataset", "mosaicml", "litdata", "webshart")
STORED = ("webdataset", "mosaicml", "litdata", "ffcv", "webshart")    # have a storage of their own
PROCESSES = ("webdataset", "mosaicml", "litdata", "torchvision")      # workers = 0 is in the caller
# peer: at least so many times as fast; else 1
TARGETS = {("torchvision", "uint8"): 3.0, ("torchvision", "float32"): 3.0, ("webdataset", "raw"): 4.0}
FAST_TARGET = 5.0    # of a dataset packed with --jpeg fast: against torchvision, uint8
SECONDS = 600    # for one run


class Race:
    def __init__(self, bench):
        found = environment.get()
        self.bench, self.python = bench, found["python"]
        self.missing = {name: reason for name, reason in found["peers"].items() if reason}
        wanted = os.environ.get("PEERS", "").split()
        self.missing.update((name, "not in PEERS") for name in found["peers"] if wanted and name not in wanted)
        self.stores = {}
        self.batch = str(batch_size(bench))

    def command(self, peer, action, *options):
        return ["timeout", str(SECONDS), self.python, os.path.join(environment.HERE, "peers.py"), action, peer,
                self.bench.corpus.folder, self.store(peer), *options]

    def run_command(self, peer, workers, output):
        return self.command(peer, "run", "--workers", str(workers), "--batch", self.batch, "--output", output)

    def store(self, peer):
        folder = self.bench.path(f"store-{peer}")
        if peer not in self.stores:
            self.stores[peer] = folder
            os.makedirs(folder, exist_ok=True)
            if peer in STORED:
                say(f"  making the storage of {peer}")
                self.bench.machine.run(self.command(peer, "prepare"))
        return folder

    def best_workers(self, peer, output):
        """The worker count with which the peer is fastest in one run each; None, with the reason noted, if all fail."""
        if self.bench.quick:
            counts = (2,)
        elif output == "raw":
            counts = (0, 1, 2, 4) if peer in PROCESSES else (1,)
        else:
            counts = (1, 2, 4) if peer == "torchvision" else (2, 4)
        rates, reason = {}, ""
        for count in counts:
            try:
                rates[count] = answer(self.bench.machine.run(self.run_command(peer, count, output)))["rate"]
            except (BenchError, ValueError, IndexError, KeyError) as problem:
                reason = str(problem)
                say(f"  {peer} with {count} workers: left out: {reason}")
        if not rates:
            self.missing[peer] = reason
            return None
        best = max(rates, key=rates.get)
        say(f"  {peer}, {output}: best with {best} workers of "
            + ", ".join(f"{count}: {number_text(rate)}" for count, rate in rates.items()))
        return best

    def run(self, output, names, options, workers):
        """Lines of one kind of output. workers: counts found before, extended here."""
        for peer in names:
            if peer not in self.missing and peer not in workers:
                workers[peer] = self.best_workers(peer, output)
        names = [peer for peer in names if workers.get(peer) is not None and peer not in self.missing]
        rounds = (self.bench.rounds + 1) // 2
        mine = [("shardpack", self.bench.dataset())]
        if output == "uint8":
            mine.append(("--jpeg fast", self.bench.fast_dataset()))
        figures = self.bench.machine.interleave(
            [Contender(name, loader(self.bench, "epochs", *options, dataset=dataset), None, key("rate_all"))
             for name, dataset in mine]
            + [Contender(peer, self.run_command(peer, workers[peer], output), None, key("rate")) for peer in names],
            rounds, "")
        others = figures[len(mine):]
        return ([self.line(output, figures[0], peer, workers[peer.name]) for peer in others]
                + [self.line(f"{output}, {fast.name}", fast, peer, workers[peer.name], FAST_TARGET)
                   for fast in figures[1:len(mine)] for peer in others if peer.name == "torchvision"])

    def line(self, output, ours, peer, workers, target=None):
        line = ratio_line("peers", f"{output}: against {peer.name}, W = {workers}", ours, peer, "images/s",
                          at_least=target or TARGETS.get((peer.name, output), 1.0))
        mine, theirs = list(map(answer, ours.runs)), list(map(answer, peer.runs))
        per_core = statistics.median(per_cpu_second(a) for a in mine), statistics.median(map(per_cpu_second, theirs))
        line.detail += f"; per CPU second {number_text(per_core[0])} against {number_text(per_core[1])}"
        line.data.update(version=theirs[0]["version"], workers=workers, per_cpu_second=per_core)
        for name in ("first_batch", "gap", "batch"):
            line.data[name] = [statistics.median(a[name] for a in side) for side in (mine, theirs)]
        return line


def per_cpu_second(result):
    """Images between the first and the last batch for each second of CPU time in it."""
    share = (result["batches"] - 1) / max(result["batches"], 1)
    return result["images"] * share / max(result["cpu"], 1e-3)


def measure_peers(bench):
    race = Race(bench)
    decoded = {}
    lines = race.run("uint8", DECODED, (EPOCHS, "layout=nchw"), decoded)
    lines += race.run("float32", DECODED, (EPOCHS, *FLOAT), decoded)
    lines += race.run("raw", RAW, raw_options(bench), {})
    for peer, reason in race.missing.items():
        print(f"peers: without {peer}: {reason}", file=sys.stderr)
    if not lines:
        raise BenchError("none of the other loaders runs here")
    return lines
