"""What happens with many: memory of the packer, a million tiny files, datasets of very many shards."""
import shutil

from inputs import make_catalog, remove
from measure import Contender, say
from report import Line, foreign_cores, number_text, ratio_line
from speed import pack_command

MIB = 1 << 20


def memory_bound(tree, jobs):
    """What the packer may take at most, in bytes."""
    return 48 * MIB + jobs * (8 * MIB + tree.largest) + 128 * tree.files + tree.path_bytes


def peak_memory(bench, tree, *options):
    """Maximum RSS of one pack run, as wait4 tells; and as GNU time tells, if it is there."""
    target, report = bench.path("packed"), bench.path("time")
    command = pack_command(bench, tree.folder, target, *options)
    gnu_time = shutil.which("time")
    run = bench.machine.run([gnu_time, "-f", "%M", "-o", report, *command] if gnu_time else command)
    remove(target)
    second = None
    if gnu_time:
        with open(report, encoding="ascii") as file:
            second = int(file.read().split()[-1]) * 1024
    say(f"  {tree.files:,} files: {run.max_rss / MIB:.1f} MiB" +
        (f", GNU time says {second / MIB:.1f} MiB" if second else ""))
    return run, second


def memory_line(bench, tree, *options):
    run, second = peak_memory(bench, tree, *options)
    bound = memory_bound(tree, bench.jobs)
    most = max(run.max_rss, second or 0)
    detail = f"largest file {number_text(tree.largest / 1e3)} kB, paths {number_text(tree.path_bytes / MIB)} MiB"
    return Line("memory", f"pack {' '.join(options[:2])}, {tree.files:,} files", most / MIB, "MiB", True, bound / MIB,
                detail, run.foreign, {"max_rss": run.max_rss, "max_rss_gnu_time": second, "bound": bound})


def measure_memory(bench):
    return [memory_line(bench, bench.corpus, "--check", "decode", "--on-bad", "keep"),
            memory_line(bench, bench.tiny.grow(bench.tiny_sizes[1]), "--check", "none")]


def measure_tiny(bench):
    """Very many tiny files: as fast as tar, nearly, and time linear in their number."""
    target, peer = bench.path("packed"), bench.path("peer.tar")
    rounds = min(bench.rounds, 3)
    packs = []
    for size in bench.tiny_sizes:
        tree = bench.tiny.grow(size)
        contenders = [Contender("pack", pack_command(bench, tree.folder, target, "--check", "none"),
                                lambda: remove(target), lambda run, n=size: n / run.wall)]
        if size == bench.tiny_sizes[-1]:
            contenders.append(Contender("tar", ["tar", "-C", tree.folder, "-cf", peer, "."], lambda: remove(peer),
                                        lambda run, n=size: n / run.wall))
        figures = bench.machine.interleave(contenders, rounds, "files/s")
        packs.append(figures[0])
    remove(target)
    remove(peer)
    few, many = bench.tiny_sizes
    growth = packs[0].median / packs[1].median
    detail = f"{number_text(packs[0].median)} files/s at {few:,}, {number_text(packs[1].median)} files/s at {many:,}"
    return [
        ratio_line("tiny", f"pack --check none / tar, {many:,} files", figures[0], figures[1], "files/s", at_least=0.8),
        Line("tiny", f"time per file, {many:,} / {few:,} files", growth, "x", True, 1.25, detail,
             foreign_cores(*packs), {"few": packs[0].as_json(), "many": packs[1].as_json()}),
    ]


def open_lines(bench, shards, seconds, memory):
    folder = bench.path("catalog")
    size = make_catalog(bench.small_dataset(), folder, shards)
    figures, = bench.machine.interleave([
        Contender(f"open {shards:,} shards", [bench.helper("open_dataset"), folder], None,
                  lambda run: run.json()["seconds"])], bench.rounds, "s")
    remove(folder)
    detail = f"median of {len(figures.values)}, up to {number_text(max(figures.values))} s; table {size / 1e6:.0f} MB"
    lines = [Line("open", f"open a dataset of {shards:,} shards", figures.median, "s", True, seconds, detail,
                  foreign_cores(figures), {"ours": figures.as_json()})]
    if memory:
        most = max(run.max_rss for run in figures.runs)
        lines.append(Line("open", f"memory, {shards:,} shards", most / 1e6, "MB", True, memory, "maximum RSS",
                          foreign_cores(figures), {"max_rss": most}))
    return lines


def measure_open(bench):
    few, many = bench.open_sizes
    return open_lines(bench, few, 0.2, None) + open_lines(bench, many, 2.0, 300)
