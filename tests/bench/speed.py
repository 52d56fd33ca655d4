"""Packing, verifying and reading photographs, against the tools that do part of the same."""
import os
import shlex
import statistics

from inputs import encoded_again, remove, shard_paths
from measure import BenchError, Contender, say
from report import Line, foreign_cores, ratio_line


def pack_command(bench, source, target, *options):
    return [bench.command, "pack", "--quiet", *options, "--jobs", str(bench.jobs), source, target]


def shell(*parts):
    """A command line for sh; a part that is a list is a command and its arguments, a string is taken as it is."""
    return ["sh", "-c", " ".join(part if isinstance(part, str) else shlex.join(part) for part in parts)]


def measure_pack(bench):
    """pack --check none against tar and zstd, and against tar alone and an fsync."""
    source, target, peer = bench.corpus.folder, bench.path("packed"), bench.path("peer.tar")
    bench.corpus.warm()
    tar = ["tar", "-C", source, "-c"]
    figures = bench.machine.interleave([
        Contender("pack", pack_command(bench, source, target, "--check", "none"), lambda: remove(target)),
        Contender("tar|zstd", shell(tar, ".", "|", ["zstd", "-q", "-1", f"-T{bench.jobs}"], ">", [peer]),
                  lambda: remove(peer)),
        Contender("tar+fsync", shell([*tar, "-f", peer, "."], "&&", ["sync", peer]), lambda: remove(peer)),
    ], bench.rounds, "s")
    remove(target)
    remove(peer)
    pack, compressed, plain = figures
    return [
        ratio_line("pack", f"pack --check none / tar | zstd -1 -T{bench.jobs}", pack, compressed, "s", at_most=0.5),
        ratio_line("pack", "pack --check none / tar, fsync", pack, plain, "s", at_most=1.0),
    ]


def measure_decode(bench):
    """pack --check decode against libjpeg-turbo alone, as images per second."""
    source, target = bench.corpus.folder, bench.path("packed")
    bench.corpus.warm()
    listing = write_list(bench, bench.corpus.paths)
    decoder = [bench.helper("jpeg_decode"), str(bench.jobs), listing]

    first = bench.machine.run(decoder).json()
    others = first["not_jpeg"] + first["failed"]
    if not first["images"]:
        raise BenchError("the corpus holds no JPEG images")
    if others:
        say(f"  note: {others} of {bench.corpus.files} files are no sound JPEG images; the ratio means less")
    images = first["images"]
    pack, decode = bench.machine.interleave([
        Contender("pack", pack_command(bench, source, target, "--check", "decode", "--on-bad", "keep"),
                  lambda: remove(target), lambda run: images / run.wall),
        Contender("libjpeg-turbo", decoder, None, lambda run: images / run.json()["seconds"]),
    ], bench.rounds, "images/s")
    remove(target)
    return [ratio_line("decode", "pack --check decode / libjpeg-turbo alone", pack, decode, "images/s", at_least=0.9)]


def write_list(bench, paths):
    """A file with these paths of the corpus, each ended by a NUL byte."""
    listing, root = bench.path("list"), os.fsencode(bench.corpus.folder)
    with open(listing, "wb") as file:
        file.write(b"".join(os.path.join(root, path) + b"\0" for path in paths))
    return listing


JPEG_IMAGES = 800    # enough for every kind of file in the corpus


def engine_lines(run, ways, suffix=""):
    """Of jpeg_engines: for each way its number, its name, what to say of the images, targets whole and cropped."""
    result, lines = run.json(), []
    images = result["images"]
    for way, decoder, note, targets in ways:
        for name, what, target in zip(("whole", "crop"), ("whole images", "random crops"), targets):
            ratios = [figures[1] / figures[way] for figures in result[name]]
            ours, libjpeg = (statistics.median(f[i] for f in result[name]) / images * 1e6 for i in (way, 1))
            detail = (f"{ours:.0f} against {libjpeg:.0f} us of CPU time; ratios {min(ratios):.3g} to "
                      f"{max(ratios):.3g}; {note.format(**result)}")
            lines.append(Line("jpeg", f"libjpeg-turbo / {decoder}{suffix}, {what}", statistics.median(ratios), "x",
                              False, target, detail, run.foreign, {"cpu_seconds": result[name]}))
    return lines


OWN_NOTE = "{own} of {images} images without libjpeg"
FAST_NOTE = "{fast} of {images} images as coefficients"


def measure_jpeg(bench):
    """Our JPEG decoder against libjpeg-turbo, image by image in turn, on one core, in CPU time."""
    paths = bench.corpus.paths
    listing = write_list(bench, paths[::max(1, len(paths) // JPEG_IMAGES)])
    run = bench.machine.run(pinned(bench, [bench.helper("jpeg_engines"), str(bench.rounds), listing]))
    ways = ((0, "our JPEG decoder", OWN_NOTE, (1.25, 1.2)),
            (2, "--jpeg fast", FAST_NOTE, (2.3, 2.6)))
    return engine_lines(run, ways) + measure_progressive(bench)


def measure_progressive(bench):
    """The same for a quarter of the images, made progressive without touching their coefficients."""
    paths = bench.corpus.paths
    listing = write_list(bench, paths[::max(1, 4 * len(paths) // JPEG_IMAGES)])
    run = bench.machine.run(pinned(bench, [bench.helper("jpeg_engines"), str(bench.rounds), listing, "progressive"]))
    ways = ((0, "our JPEG decoder", OWN_NOTE, (1.6, 2)),
            (2, "--jpeg fast", FAST_NOTE, (5, 5)))
    lines = engine_lines(run, ways, ", progressive")
    result = run.json()
    images = result["images"]
    share = 100 * result["fast_bytes"] / result["bytes"]
    lines.append(Line("jpeg", "--jpeg fast, progressive, bytes of the files", share, "%", True, 100,
                      f"{result['pack'] / images * 1e3:.1f} ms of CPU time each to store and verify", run.foreign))
    return lines


Q75_IMAGES = 500


def measure_fast(bench):
    """pack --jpeg fast on one core, with all that it verifies, and what the shards take beside the files."""
    source, target = bench.corpus.folder, bench.path("packed")
    bench.corpus.warm()
    decoder = pinned(bench, [bench.helper("jpeg_decode"), "1", write_list(bench, bench.corpus.paths)])
    pack, decode = bench.machine.interleave([
        Contender("pack --jpeg fast", fast_command(bench, source, target), lambda: remove(target),
                  lambda run: bench.corpus.files / run.cpu),
        Contender("libjpeg-turbo", decoder, None, lambda run: run.json()["images"] / run.cpu),
    ], bench.rounds, "images/s of CPU time")
    detail = (f"{1e3 / pack.median:.2f} ms of CPU time each, of which libjpeg-turbo's decoding, to compare with, would "
              f"alone take {1e3 / decode.median:.2f}")
    line = Line("fast", "pack --jpeg fast, verified, one core", pack.median, "images/s", False, 120, detail,
                foreign_cores(pack, decode), {"ours": pack.as_json(), "peer": decode.as_json()})
    lines = [line, size_line("pack --jpeg fast, shards / files", target, bench.corpus, 93)]
    remove(target)
    lower = encoded_again(bench.corpus, Q75_IMAGES, 75, bench.path("q75"))
    if lower:
        bench.machine.run(fast_command(bench, lower.folder, target))
        lines.append(size_line("the same at quality 75", target, lower, 97))
        remove(target)
        remove(lower.folder)
    else:
        say("  note: nothing at quality 75 without python3-pil")
    return lines


def fast_command(bench, source, target):
    return pinned(bench, [bench.command, "pack", "--quiet", "--jpeg", "fast", "--on-bad", "keep", "--jobs", "1", source,
                          target])


def size_line(what, dataset, tree, at_most):
    shards = sum(map(os.path.getsize, shard_paths(dataset)))
    detail = f"{shards:,} against {tree.bytes:,} bytes of {tree.files:,} files"
    return Line("fast", what, 100 * shards / tree.bytes, "%", True, at_most, detail)


def pinned(bench, command):
    return ["taskset", "-c", str(bench.cpu), *command]


def rate(megabytes):
    return lambda run: megabytes / run.wall


def measure_verify(bench):
    """verify against openssl's SHA-256 over the same shards, on one core."""
    dataset = bench.dataset()
    shards = shard_paths(dataset)
    megabytes = sum(map(os.path.getsize, shards)) / 1e6
    verify, digest = bench.machine.interleave([
        Contender("verify", pinned(bench, [bench.command, "verify", "--quiet", "--jobs", "1", dataset]), None,
                  rate(megabytes)),
        Contender("openssl", pinned(bench, ["openssl", "dgst", "-sha256", *shards]), None, rate(megabytes)),
    ], bench.rounds, "MB/s")
    return [ratio_line("verify", "verify / openssl dgst -sha256, one core", verify, digest, "MB/s", at_least=0.5)]


def measure_read(bench):
    """All samples in order through the library against zstd -dc, on one core; rates are of the source bytes."""
    dataset = bench.dataset()
    megabytes = bench.corpus.bytes / 1e6
    read, unzip = bench.machine.interleave([
        Contender("read", pinned(bench, [bench.helper("read_all"), dataset]), None, rate(megabytes)),
        Contender("zstd -dc", pinned(bench, shell(["zstd", "-q", "-dc", *shard_paths(dataset)], "> /dev/null")), None,
                  rate(megabytes)),
    ], bench.rounds, "MB/s")
    return [ratio_line("read", "read all samples / zstd -dc, one core", read, unzip, "MB/s", at_least=0.8)]
