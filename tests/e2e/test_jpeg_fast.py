"""pack --jpeg fast: what is stored differs, what readers give does not."""
import pathlib
import subprocess
import sys

import test_stream as streams
from harness import LONG, equal, require, same_trees, shards

READER = "format-spec/reader.py"
OPTIONS = ["--shard-size", "700K", "--frame-samples", "8"]


def both(case, source):
    """The same files packed both ways."""
    keep, fast = case.dir / "keep", case.dir / "fast"
    case.pack(source, keep, *OPTIONS)
    said = case.spk("pack", "--jpeg", "fast", *OPTIONS, source, fast).out.decode()
    return keep, fast, said


def stored(dataset, case):
    """Names in the tars, by stock tools."""
    names = []
    for shard in shards(dataset):
        tar = case.run("zstd", "-dc", shard, check=True).out
        listing = subprocess.run(["tar", "-t"], input=tar, stdout=subprocess.PIPE, check=True).stdout
        names += listing.decode().split()
    return names


def test_files_come_back(case):
    source = case.photos(12)
    keep, fast, said = both(case, source)
    require("stored as coefficients" in said, said)
    names = stored(fast, case)
    require(any(name.endswith(".jpg.jpeg_coefficients") for name in names), names[:3])
    require(not any(name.endswith(".jpg.jpeg_coefficients") for name in stored(keep, case)), "encoded without --jpeg fast")
    require(sum(s.stat().st_size for s in shards(fast)) < sum(s.stat().st_size for s in shards(keep)), "no gain")
    case.spk("verify", fast)
    for dataset in (keep, fast):
        case.spk("extract", "--original-names", dataset, case.dir / (dataset.name + ".out"))
        same_trees(source, case.dir / (dataset.name + ".out"), dataset.name)
    key = case.keys(fast)[0]
    equal(case.spk("cat", fast, key + ".jpg").out, case.spk("cat", keep, key + ".jpg").out, "cat")


def test_independent_reader(case):
    keep, fast, _ = both(case, case.photos(2))
    case.run(sys.executable, READER, "check", fast, check=True)
    for key in case.keys(fast)[:2]:
        have = case.run(sys.executable, READER, "cat", fast, key + ".jpg", check=True).out
        equal(have, case.spk("cat", keep, key + ".jpg").out, key)


def test_several_scans(case):
    """The examples of the encoding as files: progressive ones, one of a scan for each component."""
    source = case.dir / "src"
    for path in sorted(pathlib.Path("format-spec/jpeg-vectors").glob("*.jpg")):
        case.write(source / "a" / path.name, path.read_bytes())
    files = len(list((source / "a").iterdir()))
    fast = case.dir / "fast"
    said = case.spk("pack", "--jpeg", "fast", source, fast).out.decode()
    require(f"{files} JPEGs stored as coefficients" in said, said)
    case.spk("verify", fast)
    case.spk("extract", "--original-names", fast, case.dir / "back")
    same_trees(source, case.dir / "back", "files")
    for key in case.keys(fast):
        have = case.run(sys.executable, READER, "cat", fast, key + ".jpg", check=True).out
        equal(have, (source / (key + ".jpg")).read_bytes(), key)


def test_same_batches(case):
    keep, fast, _ = both(case, case.photos(12))
    for options in (["-e", 2, "--hflip", 0.5], ["--image", "eval", "--dtype", "float16"], ["--fast", "--echo", 2],
                    ["-e", 2, "--echo", 3, "--hflip", 0.5], ["--echo", 3, "--no-shuffle"]):
        common = ["-b", 16, "--keys", "--fields", "jpg,cls", *options]
        want = case.spk("stream", *map(str, common), "-w", "0", keep).out.splitlines()[1:]
        for workers in ("0", "2"):
            have = case.spk("stream", *map(str, common), "-w", workers, fast).out.splitlines()[1:]
            equal(have, want, f"{options}, {workers} workers")


def test_any_number_of_workers(case):
    keep, fast, _ = both(case, case.photos())
    streams.any_number_of_workers(case, fast, keep)


def test_any_number_of_ranks(case):
    keep, fast, _ = both(case, case.photos(12))
    streams.every_sample_once(case, fast)
    streams.any_number_of_ranks(case, fast, keep)


def test_resumed(case):
    keep, fast, _ = both(case, case.photos())
    streams.resumed(case, fast, keep, streams.RESUMES if LONG else 2)


def test_workers_and_trainer_killed(case):
    keep, fast, _ = both(case, case.photos())
    streams.workers_killed(case, fast, keep, streams.KILLS if LONG else 3)
    streams.trainer_killed(case, fast)


def test_same_bytes_for_any_number_of_threads(case):
    source = case.photos(12)
    for jobs in ("1", "3"):
        case.spk("pack", "--jpeg", "fast", *OPTIONS, "--jobs", jobs, source, case.dir / jobs)
    one, three = ([s.read_bytes() for s in shards(case.dir / jobs)] for jobs in ("1", "3"))
    require(one == three, "bytes depend on --jobs")
    require(b"up to date" in case.spk("pack", "--jpeg", "fast", *OPTIONS, source, case.dir / "1").out, "packed anew")


def test_others_stay_as_they_are(case):
    source = case.dir / "src"
    case.write(source / "a/text.jpg.txt", b"words")
    photo = next(iter(sorted(case.photos(1).rglob("*.jpg")))).read_bytes()
    case.write(source / "a/good.jpg", photo)
    case.write(source / "a/broken.jpg", photo[: len(photo) // 2])
    said = case.spk("pack", "--jpeg", "fast", "--on-bad", "keep", source, case.dir / "out").out.decode()
    require("1 JPEG stored as coefficients, 1 as they are: 1 damaged" in said, said)
    case.spk("extract", "--original-names", case.dir / "out", case.dir / "back")
    same_trees(source, case.dir / "back", "files")
    case.refused("*--frames=single and --jpeg=fast exclude each other*", "pack", "--jpeg", "fast", "--frames", "single",
                 source, case.dir / "no", code=2)


def test_names_in_the_tar_are_different(case):
    """Also where a file has the name that the stored form of its neighbour would get."""
    photo = next(iter(sorted(case.photos(1).rglob("*.jpg")))).read_bytes()
    for path in ("a.jpg", "a.jpg.jpeg_coefficients", "b.jpg", "b.jpg.jpeg_pixels"):
        case.write(case.dir / "src" / path, photo)
    case.pack(case.dir / "src", case.dir / "keep", "--stem", "first")
    case.pack(case.dir / "src", case.dir / "packed", "--stem", "first", "--jpeg", "fast")
    case.spk("repack", "--jpeg", "fast", case.dir / "keep", case.dir / "repacked")
    for dataset in (case.dir / "packed", case.dir / "repacked"):
        equal(sorted(stored(dataset, case)), ["a.jpg", "a.jpg.jpeg_coefficients", "b.jpg.jpeg_coefficients", "b.jpg.jpeg_pixels"], "names")
        case.spk("extract", "--quiet", "--original-names", dataset, str(dataset) + ".back")
        same_trees(case.dir / "src", str(dataset) + ".back", "files")


def test_damage_is_told_as_ever(case):
    source = case.dir / "src"
    photo = next(iter(sorted(case.photos(1).rglob("*.jpg")))).read_bytes()
    case.write(source / "a/good.jpg", photo)
    case.write(source / "a/short.jpg", photo[: len(photo) // 2])
    case.write(source / "a/endless.jpg", photo[:-2])
    told = []
    for how in ("keep", "fast"):
        case.spk("pack", "--jpeg", how, "--on-bad", "skip", source, case.dir / how)
        told.append((case.dir / how / "bad-files.tsv").read_text())
    equal(told[1], told[0], "bad files")
    require("short.jpg" in told[1] and "endless.jpg" in told[1], told[1])
    done = case.run(case.command, "pack", "--jpeg", "fast", "--include", "short.jpg", source, case.dir / "no")
    require(done.code == 1 and "short.jpg: truncated JPEG: " in done.text.splitlines()[0], "%s", done.describe())
