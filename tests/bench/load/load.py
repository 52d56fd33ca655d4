"""The loader against its ceiling and its targets: no other loader, no network."""
import json
import os
import statistics

from measure import BenchError, Contender, Figures, number_text, say
from report import Line, foreign_cores, ratio_line
from speed import shell

WORKERS, BATCH = 2, 256
FLOAT = ("type=float32", "layout=nchw")
EPOCHS = "epochs=3"    # gaps included


def program(bench, name):
    path = bench.helper(f"load/{name}")
    if not os.access(path, os.X_OK):
        raise BenchError(f"{path}: not built; start by make bench")
    os.environ["SHARDPACK_WORKER"] = os.path.join(os.path.dirname(bench.command), "shardpack-worker")
    return path


def batch_size(bench):
    """256; smaller where there are too few images for a good number of batches."""
    return max(8, min(BATCH, bench.corpus.files // 16))


def loader(bench, mode, *options, dataset=None):
    return [program(bench, "load_bench"), mode, dataset or bench.dataset(), f"workers={WORKERS}", f"batch={batch_size(bench)}",
            *options]


def answer(run):
    """The last line: some print other things first."""
    return json.loads(run.output.strip().splitlines()[-1])


def key(name):
    return lambda run: answer(run)[name]


def derived(figures, name, value):
    """Another value of the same runs."""
    return Figures(name, [value(answer(run)) for run in figures.runs], figures.runs)


def raw_options(bench):
    """Files are handed over so fast that one epoch is too short to measure: at least 8 GB, gaps included."""
    return "raw=1", f"epochs={1 + (500_000_000 if bench.quick else 8_000_000_000) // max(bench.corpus.bytes, 1)}"


def first_rows(bench):
    """A file with the numbers of the samples of the first batch; they are the same in every run."""
    path = bench.path("first-rows")
    rows = answer(bench.machine.run(loader(bench, "epochs", "epochs=1", "rows=1")))["first_rows"]
    with open(path, "w", encoding="ascii") as file:
        file.write("".join(f"{row}\n" for row in rows))
    return path


def bare_rate(run):
    return answer(run)["images"] / answer(run)["seconds"]


def measure_load(bench):
    """Images/s, raw bytes, first batch and epoch gap."""
    bare = [program(bench, "bare_decode"), bench.dataset(), f"threads={WORKERS}"]
    rows = first_rows(bench)
    ours, ceiling, floats, fast, turbo, batch, raw = bench.machine.interleave([
        Contender("uint8", loader(bench, "epochs", EPOCHS), None, key("rate_all")),
        Contender("bare loop", bare, None, bare_rate),
        Contender("float32", loader(bench, "epochs", EPOCHS, *FLOAT), None, key("rate_all")),
        Contender("--jpeg fast", loader(bench, "epochs", EPOCHS, dataset=bench.fast_dataset()), None, key("rate_all")),
        Contender("bare loop, libjpeg-turbo", [*bare, "engine=libjpeg"], None, bare_rate),
        Contender("first batch, bare", shell([*bare, "rows=1"], "<", [rows]), None, key("seconds")),
        Contender("raw GB/s", loader(bench, "epochs", *raw_options(bench)), None,
                  lambda run: answer(run)["byte_rate_all"] / 1e9),
    ], bench.rounds, "")
    first = derived(ours, "first batch", lambda a: a["first_batch"])
    gap, step = derived(ours, "gap", lambda a: a["gap"]), derived(ours, "batch", lambda a: a["batch"])
    data = {"ours": raw.as_json(), "values_unit": "GB/s", "batch_size": batch_size(bench), "workers": WORKERS}
    return [
        ratio_line("load", f"uint8, W = {WORKERS} / bare decode + resize", ours, ceiling, "images/s", at_least=0.9),
        ratio_line("load", "float32 NCHW normalised / uint8", floats, ours, "images/s", at_least=0.9),
        ratio_line("load", f"--jpeg fast, uint8, W = {WORKERS} / bare libjpeg-turbo + resize, JPEG files", fast, turbo,
                   "images/s", at_least=1.8),
        Line("load", f"raw bytes, W = {WORKERS}", raw.median, "GB/s", False, 2.0,
             f"{number_text(min(raw.values))} to {number_text(max(raw.values))} GB/s", foreign_cores(raw), data),
        ratio_line("load", "open to first batch / decoding that batch", first, batch, "s", at_most=1.3),
        ratio_line("load", "gap between epochs / time of a batch", gap, step, "s", at_most=1.0),
    ]


def measure_handover(bench):
    """Time inside next and release, while a batch is ready."""
    kinds = {"uint8": (), "float32": FLOAT, "raw": ("raw=1",)}
    every = bench.machine.interleave([Contender(name, loader(bench, "handover", "epochs=1", *options), None,
                                                lambda run: answer(run)["handover"] * 1e6)
                                      for name, options in kinds.items()], max(1, bench.rounds // 2), "us")
    lines = []
    for figures in every:
        ready = [f"{a['ready']} of {a['calls']}" for a in map(answer, figures.runs)]
        worst = statistics.median(answer(run)["handover_p95"] * 1e6 for run in figures.runs)
        lines.append(Line("handover", f"next + release of a ready batch, {figures.name}", figures.median, "us", True,
                          50.0, f"95 % within {number_text(worst)} us; ready: {', '.join(ready)}",
                          foreign_cores(figures), {"ours": figures.as_json(), "values_unit": "us",
                                                   "batch_size": batch_size(bench)}))
    return lines


def memory_limit(bench, estimate):
    """16 MB, the frames of a worker's lanes and its share of the shuffle buffer. Lanes of a worker: rounded up."""
    with open(os.path.join(bench.dataset(), "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    frame = manifest["tar_bytes"] / manifest["frames"]
    lanes = -(-estimate["lanes"] // max(estimate["workers"], 1))
    return 16e6 + lanes * frame + estimate["shuffle"] / max(estimate["workers"], 1)


def measure_worker_memory(bench):
    """Private memory of a worker; and what is left after many epochs broken off."""
    say("  memory of workers, epochs broken off")
    kept = bench.machine.run(loader(bench, "memory", EPOCHS))
    broken = bench.machine.run(loader(bench, "breaks", "epochs=50"))
    worker, estimate = answer(kept)["worker"], answer(kept)["estimate"]
    limit = memory_limit(bench, estimate)
    before, after = answer(broken)["before"], answer(broken)["after"]
    more = [f"{after[name]} {name} of {before[name]}" for name in ("descriptors", "workers")]
    data = {"memory": answer(kept), "breaks": answer(broken), "limit": limit}
    same = all(after[name] == before[name] for name in ("descriptors", "workers"))
    mb = 1e6
    return [
        Line("worker-memory", "a worker's private memory", worker["anonymous"] / mb, "MB", True, limit / mb,
             f"estimate {number_text(estimate['worker'] / mb)} MB; RSS {number_text(worker['rss'] / mb)}, "
             f"PSS {number_text(worker['pss'] / mb)} MB", data=data),
        Line("worker-memory", "measured / estimate beforehand", worker["anonymous"] / estimate["worker"], "x", True,
             1.0, f"{number_text(worker['anonymous'] / mb)} of {number_text(estimate['worker'] / mb)} MB"),
        Line("worker-memory", "memory in the second half of broken-off epochs / first half",
             after["anonymous"] / before["anonymous"], "x", True, 1.1,
             f"{number_text(before['anonymous'] / mb)} to {number_text(after['anonymous'] / mb)} MB, trainer "
             "and workers"),
        Line("worker-memory", "descriptors and workers as in the first half", 0.0 if same else 1.0, "", True, 0.0,
             ", ".join(more)),
    ]
