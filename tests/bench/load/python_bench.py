"""shardpack.Loader against `shardpack bench` with the same settings, torchvision's DataLoader, and webdataset."""
import json
import os
import sys

import load
import peer_race
from measure import BenchError, Contender, number_text
from report import Line, foreign_cores, ratio_line

PEERS = ("torchvision", "webdataset")
KINDS = {"uint8": ("type=uint8", "layout=nhwc"), "float32": ("type=float32", "layout=nchw")}


def interpreter():
    """That of `make python`, which has the package."""
    path = os.environ.get("PYTHON_TESTS", "")
    if not os.access(path, os.X_OK):
        raise BenchError("the Python package is not built: make python")
    return path


def ours(bench, mode, *options):
    return [interpreter(), os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_loader.py"), mode,
            bench.dataset(), f"workers={load.WORKERS}", f"batch={load.batch_size(bench)}", *options]


def command(bench, kind):
    dtype, layout = (word.split("=")[1] for word in KINDS[kind])
    return [bench.command, "bench", "--json", "--workers", str(load.WORKERS),
            "--batch-size", str(load.batch_size(bench)), "--epochs", "1", "--hflip", "0.5", "--dtype", dtype, "--layout", layout, bench.dataset()]


def of_command(run):
    return json.loads(run.output)["passes"][0]["rows_per_second"]


def measure_python(bench):
    lines = []
    try:
        race = peer_race.Race(bench)
    except OSError as problem:
        race = None
        print(f"python: without other loaders: {problem}", file=sys.stderr)
    for kind, options in KINDS.items():
        contenders = [Contender("Loader", ours(bench, "epochs", "epochs=1", *options), None, load.key("rate")),
                      Contender("bench", command(bench, kind), None, of_command)]
        workers = {peer: race.best_workers(peer, kind) for peer in PEERS if race and peer not in race.missing}
        contenders += [Contender(peer, race.run_command(peer, count, kind), None, load.key("rate"))
                       for peer, count in workers.items() if count is not None]
        first, *rest = bench.machine.interleave(contenders, bench.rounds, "")
        lines.append(ratio_line("python", f"Loader, {kind}: against shardpack bench", first, rest[0], "images/s",
                                at_least=0.97))
        lines += [ratio_line("python", f"Loader, {kind}: against {peer.name}, W = {workers[peer.name]}", first, peer,
                             "images/s", at_least=peer_race.TARGETS.get((peer.name, kind), 1.0)) for peer in rest[1:]]
    for output in ("torch", "numpy"):
        one = bench.machine.interleave([Contender(output, ours(bench, "overhead", "epochs=2", f"output={output}"), None,
                                                  lambda run: load.answer(run)["python"] * 1e6)],
                                       max(1, bench.rounds // 2), "us")[0]
        again, bare = (sorted(load.answer(run)[name] * 1e6 for run in one.runs) for name in ("again", "extension"))
        lines.append(Line("python", f"CPU time per batch in the trainer, {output}", one.median, "us", True, 100.0,
                          f"after a rest; directly after another one {number_text(again[len(again) // 2])} us; the "
                          f"extension alone, after a rest, {number_text(bare[len(bare) // 2])} us",
                          foreign_cores(one), {"ours": one.as_json(), "values_unit": "us"}))
    for peer, reason in (race.missing if race else {}).items():
        if peer in PEERS:
            print(f"python: without {peer}: {reason}", file=sys.stderr)
    return lines
