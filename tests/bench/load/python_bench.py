"""shardpack.Loader against `shardpack bench` with the same settings, torchvision's DataLoader, and webdataset."""
import json
import os
import statistics
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


def program(mode, dataset, *options):
    return [interpreter(), os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_loader.py"), mode, dataset,
            *options]


def ours(bench, mode, *options):
    return [*program(mode, bench.dataset()), f"workers={load.WORKERS}", f"batch={load.batch_size(bench)}", *options]


def command(bench, kind):
    dtype, layout = (word.split("=")[1] for word in KINDS[kind])
    return [bench.command, "bench", "--json", "--workers", str(load.WORKERS),
            "--batch-size", str(load.batch_size(bench)), "--epochs", "1", "--hflip", "0.5", "--dtype", dtype, "--layout", layout, bench.dataset()]


def of_command(run):
    return json.loads(run.output)["passes"][0]["rows_per_second"]


def overhead(bench):
    """CPU time per batch of the trainer's thread, less what the C library takes of it when called from C: Python's."""
    outputs = ("torch", "numpy")
    contenders = [Contender(output, ours(bench, "overhead", "epochs=2", f"output={output}"), None,
                            lambda run: load.answer(run)["python"] * 1e6) for output in outputs]
    contenders.append(Contender("C", load.loader(bench, "handover", "epochs=2", "clock=cpu"), None,
                                lambda run: load.answer(run)["handover"] * 1e6))
    *loaders, library = bench.machine.interleave(contenders, max(1, bench.rounds // 2), "us")
    lines = []
    for one in loaders:
        again, bare = (load.derived(one, name, lambda a, name=name: a[name] * 1e6).median
                       for name in ("again", "extension"))
        alone = [all_of_it - c for all_of_it, c in zip(one.values, library.values)]
        note = (f"after a rest, all: {number_text(one.median)} us, of them the C library {number_text(library.median)}, "
                f"with the extension {number_text(bare)}; directly after another batch, all: {number_text(again)} us")
        lines.append(Line("python", f"CPU time per batch in Python, {one.name}", statistics.median(alone), "us", True,
                          100.0, note, foreign_cores(one),
                          {"ours": one.as_json(), "library": library.as_json(), "values_unit": "us"}))
    return lines


def whole_images(bench):
    """Dataset and ShardDataset, which give whole images: from coefficients against files."""
    lines = []
    for api, name in (("random", "Dataset in random order"), ("batches", "ShardDataset")):
        for decode in ("array", "pil"):
            options = (f"api={api}", f"decode={decode}")
            fast, files = bench.machine.interleave(
                [Contender(what, program("images", dataset, *options), None, load.key("rate"))
                 for what, dataset in (("--jpeg fast", bench.fast_dataset()), ("files", bench.dataset()))],
                bench.rounds, "images/s")
            lines.append(ratio_line("python", f"{name}, {decode}: --jpeg fast / files", fast, files, "images/s",
                                    at_least=1.3))
    return lines


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
    lines += whole_images(bench)
    lines += overhead(bench)
    for peer, reason in (race.missing if race else {}).items():
        if peer in PEERS:
            print(f"python: without {peer}: {reason}", file=sys.stderr)
    return lines
