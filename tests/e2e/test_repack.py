"""Repacking a dataset into the other form of JPEG gives what packing its files in that form gives, whatever happens on the way."""
import io
import json
import os
import shutil
import sys

from harness import REPO, Skip, equal, require, same_trees, shards, tree
from PIL import Image
from servers import Nginx, running
from shardfile import Dataset, Shard
from test_kill import campaign
from trees import jpeg, odd_tree, png

sys.path.insert(0, str(REPO / "format-spec/vectors"))
import datasets as vectors  # noqa: E402
from pieces import JPEG, coefficients, flip  # noqa: E402

SMALL = ["--shard-size", "300K", "--frame-size", "60K"]


def content(dataset):
    """{name: bytes} of a dataset, without the hash of its plan, which tells how it came to be."""
    files = tree(dataset)
    manifest = json.loads(files.pop(b"manifest.json"))
    files.pop(b"bad-files.tsv", None)
    require(len(manifest["pack"].pop("plan")) == 64, "no plan")
    files[b"manifest.json"] = json.dumps(manifest)
    return files


def same(a, b):
    equal(sorted(content(a)), sorted(content(b)), f"names of {a} and {b}")
    for name, data in content(a).items():
        require(data == content(b)[name], "%s of %s and %s differ: %.3000s", name, a, b, data if name == b"manifest.json" else "")


def repack(case, form, source, target, *options):
    case.spk("repack", "--quiet", "--jpeg", form, *options, source, target)
    return target


def mixed(case):
    """Photographs of all makes, captions, an image that is none, one of another kind, odd names."""
    source, _ = odd_tree(case, "mixed")
    shutil.copytree(case.photos(4), source / "photos")
    progressive = io.BytesIO()
    Image.open(io.BytesIO(jpeg((150, 100), quality=90))).save(progressive, "JPEG", progressive=True)
    for name, data in {"progressive.jpg": progressive.getvalue(), "gray.jpg": jpeg((90, 70), "L"), "cmyk.jpg": jpeg(mode="CMYK"),
                       "tiny.jpg": jpeg((3, 5)), "cut.jpg": jpeg((200, 200))[:5000], "really.jpg": png(), "a.png": png(),
                       "none.jpg": b"", "pair.jpg": jpeg((120, 80), seed=2), "pair.json": b'{"a": 1}', "pair.cls": b"7",
                       "two.seg.jpeg": jpeg((64, 64), seed=3)}.items():  # fmt: skip
        case.write(source / "more" / name, data)
    return source


def both_ways(case, source, *options):
    """Packs in both forms, repacks each into the other, and back."""
    where = {name: case.dir / name for name in ("keep", "fast", "to-fast", "to-keep", "back-keep", "back-fast")}
    for folder in where.values():
        shutil.rmtree(folder, ignore_errors=True)
    case.pack(source, where["keep"], *options)
    case.pack(source, where["fast"], "--jpeg", "fast", *options)
    names = sorted(p.name for p in where["keep"].iterdir() if p.is_dir()) or ["."]
    for name in names:
        of = {key: folder / name for key, folder in where.items()}
        for folder in where.values():
            folder.mkdir(exist_ok=True)
        same(repack(case, "fast", of["keep"], of["to-fast"], "--jobs", "3"), of["fast"])
        same(repack(case, "keep", of["fast"], of["to-keep"], "--jobs", "1"), of["keep"])
        same(repack(case, "keep", of["to-fast"], of["back-keep"]), of["keep"])
        same(repack(case, "fast", of["to-keep"], of["back-fast"]), of["fast"])
        case.spk("verify", "--quiet", of["to-fast"])
        case.spk("verify", "--quiet", of["to-keep"])


def test_as_if_packed_so(case):
    source = mixed(case)
    for options in (["--on-bad", "keep", "--seed", 3, *SMALL],
                    ["--on-bad", "skip", "--no-shuffle", "--prefix", "my", "--level", 3, "--frame-samples", 3, "--shard-samples", 20],
                    ["--check", "none", "--stem", "first", "--jobs", 2, "--frame-size", "8M"]):  # fmt: skip
        both_ways(case, source, *map(str, options))


def test_splits_and_lists(case):
    both_ways(case, case.photos(4), "--split", "train=0.7,val=0.3", *SMALL)
    photos = sorted(case.photos(4).rglob("*.jpg"))
    rows = [{"path": str(p.relative_to(case.photos(4))), "label": i % 3, "caption": "no. %d" % i} for i, p in enumerate(photos)]
    case.write("list.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())
    both_ways(case, case.photos(4), "--list", case.dir / "list.jsonl", *SMALL)
    sample = case.spk("ls", "--json", case.dir / "to-fast").out.splitlines()[0]
    equal(sorted(json.loads(sample)["fields"]), ["cls", "jpg", "json"], "fields")


def test_same_form_again(case):
    """Also of a dataset in which both forms are, and with a single frame per shard."""
    case.pack(case.photos(4), case.dir / "one", "--frames", "single", "--shard-size", "200K")
    same(repack(case, "keep", case.dir / "one", case.dir / "two"), case.dir / "one")
    case.refused("*one: JPEG as coefficients needs more than a single frame*", "repack", "--jpeg", "fast", case.dir / "one", case.dir / "x")
    require(not (case.dir / "x").exists(), "a target was made")
    for form in ("keep", "fast"):
        case.pack(case.photos(4), case.dir / form, "--jpeg", form, *SMALL)
        same(repack(case, form, case.dir / form, case.dir / (form + "-again")), case.dir / form)


def test_up_to_date_and_refusals(case):
    keep, out = case.dir / "keep", case.dir / "out"
    case.pack(case.photos(4), keep, *SMALL)
    shown = json.loads(case.spk("repack", "--json", "--jpeg", "fast", "--dry-run", keep, out).out)
    require(not out.exists() and shown["samples"] == len(case.keys(keep)), "dry run: %r", shown)
    repack(case, "fast", keep, out)
    before = tree(out)
    require(b"up to date" in case.spk("repack", "--jpeg", "fast", keep, out).out, "repacked again")
    case.refused("*already holds a dataset*--force*", "repack", "--jpeg", "keep", keep, out)
    case.refused("*already holds a dataset*--force*", "pack", "--jpeg", "fast", *SMALL, case.photos(4), out)
    case.refused("*is the source folder*", "repack", "--jpeg", "fast", keep, keep)
    case.refused("*is the source folder*", "repack", "--jpeg", "fast", keep / "manifest.json", str(keep) + "/.")
    case.refused("*lies inside the source folder*", "repack", "--jpeg", "fast", keep, keep / "inside")
    case.refused("*nothing*", "repack", "--jpeg", "fast", case.dir / "nothing", case.dir / "x")
    case.refused("*", "repack", "--jpeg", "fast", shards(keep)[0], case.dir / "x")
    case.refused("*--jpeg=keep or --jpeg=fast must be given*", "repack", keep, case.dir / "x", code=2)
    case.refused("*", "repack", "--jpeg", "slow", keep, case.dir / "x", code=2)
    case.refused("*", "repack", "--jpeg", "fast", keep, code=2)
    case.refused("*--allow-unrestorable is for --jpeg=fast*", "pack", "--allow-unrestorable", case.photos(4), case.dir / "x", code=2)
    equal(tree(out), before, "the target")
    require(not (case.dir / "x").exists(), "a target was made")
    case.spk("repack", "--quiet", "--jpeg", "keep", "--force", keep, out)
    case.spk("prune", "--quiet", out)
    same(out, keep)


def test_other_manifests(case):
    """One that says nothing of its packing, and one that lies about it."""
    keep = case.dir / "keep"
    case.pack(case.photos(4), keep, *SMALL)
    text = json.loads((keep / "manifest.json").read_text())
    for number, pack in enumerate((None, {"level": 99, "prefix": "../x", "frames": 7, "max_pixels": "many"}, {"prefix": "a-b"})):
        changed = {**text, "pack": pack}
        if pack is None:
            del changed["pack"]
        copy = case.dir / f"copy-{number}"
        shutil.copytree(keep, copy)
        (copy / "manifest.json").write_text(json.dumps(changed))
        if pack and "prefix" in pack:
            case.refused("*copy-*prefix*", "repack", "--jpeg", "fast", copy, case.dir / f"out-{number}")
            continue
        case.spk("verify", "--quiet", repack(case, "fast", copy, case.dir / f"out-{number}"))


def test_killed_and_resumed(case):
    source = case.dir / "source"
    case.pack(case.photos(), source, "--shard-size", "300K", "--frame-samples", "4")
    campaign(case, source, ["repack", "--quiet", "--jpeg", "fast", "--jobs", "2"], seed=11)


def test_full_disk(case):
    if os.geteuid() != 0:
        raise Skip("mounting needs root")
    source, point = case.dir / "source", case.dir / "small"
    case.pack(case.photos(), source, "--shard-size", "300K")
    point.mkdir()
    if case.run("mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", point).code != 0:
        raise Skip("cannot mount a tmpfs")
    try:
        case.refused("*No space left on device*", "repack", "--jpeg", "fast", source, point / "set")
        require(not (point / "set/manifest.json").exists(), "a manifest was published")
        require(not shards(point / "set"), "a shard was published")
        case.run("mount", "-o", "remount,size=64M", point, check=True)
        case.spk("repack", "--quiet", "--jpeg", "fast", source, point / "set")
        case.spk("verify", "--quiet", point / "set")
        require(not (point / "set/.shardpack").exists(), "work folder is left")
    finally:
        case.run("umount", point)


def test_damaged_source(case):
    keep = case.dir / "keep"
    case.pack(case.photos(), keep, *SMALL)
    shard = Shard(shards(keep)[1])
    offset, size, _ = shard.frames[1]
    shard.flip(offset + size // 2)
    case.refused(f"*keep: {shard.path.name}: frame 1: SHA-256 mismatch*", "repack", "--jpeg", "fast", keep, case.dir / "out")
    require(not (case.dir / "out/manifest.json").exists(), "a manifest was published")
    shard.path.unlink()
    case.refused(f"*{shard.path.name}: No such file*", "repack", "--jpeg", "fast", keep, case.dir / "other")
    require(not (case.dir / "other").exists(), "a target was made")


def hostile(case, name, blob, original=JPEG[1]):
    """A dataset whose digests all vouch for a blob that is not one."""
    folder = vectors.Folder([coefficients(blob, original=original)])
    table = folder.table()
    manifest = folder.manifest([], original, [], table)
    stored = {"encoding": "jpeg_coefficients", "samples": 1, "bytes": len(blob), "original_bytes": original}
    manifest["fields"] = [{"name": "jpg", "kind": "image", "samples": 1, "stored": [stored]}]
    for file, data in {**folder.files, "manifest.json": json.dumps(manifest).encode(), manifest["table"]["file"]: table}.items():
        case.write(case.dir / name / file, data)
    return case.dir / name


def test_damaged_blobs_are_named(case):
    """By verify, by what reads the file, and by what makes a dataset of it."""
    blob, size = JPEG
    case.spk("verify", "--quiet", hostile(case, "good", blob))
    for name, data, original, cause in (("no-frame", flip(blob, 0), size, "*"), ("cut", blob[:-1], size, "*"),
                                        ("longer", blob + b"x", size, "*"), ("empty", b"", size, "*"),
                                        ("other-size", blob, size + 1, f"the file made anew has {size} bytes, the index says {size + 1}"),
                                        ("bomb", blob, 1 << 30, f"the file made anew has {size} bytes, the index says *")):  # fmt: skip
        dataset = hostile(case, name, data, original)
        where = f'tiny-*.tar.zst: frame 0: sample "a": field "jpg" as jpeg_coefficients: {cause}'
        case.refused(where, "verify", "--quiet", dataset)
        lines = case.run(case.command, "verify", "--quiet", dataset).out.decode().splitlines()
        require(sum("jpeg_coefficients" in line for line in lines) == 1, "%r", lines)
        case.refused(f'*tiny-*.tar.zst: sample "a": field "jpg"*{cause}', "cat", dataset, "a.jpg")
        for form in ("keep", "fast"):
            case.refused("*", "repack", "--jpeg", form, dataset, case.dir / "out")
            require(not (case.dir / "out").exists(), "a target is left")


def test_by_url(case):
    keep = case.dir / "www/keep"
    keep.parent.mkdir()
    case.pack(case.photos(4), keep, *SMALL)
    with running(Nginx(case, keep.parent)) as web:
        repack(case, "fast", web.url + "/keep", case.dir / "out")
        require(b"up to date" in case.spk("repack", "--jpeg", "fast", web.url + "/keep", case.dir / "out").out, "repacked again")
    case.pack(case.photos(4), case.dir / "fast", "--jpeg", "fast", *SMALL)
    same(case.dir / "out", case.dir / "fast")


def unrestorable(case):
    """Photographs, and those of them that can be stored but not be made anew: fill bytes before the end marker, which are
    allowed, and lost. Of two kinds."""
    source = case.dir / "photos"
    shutil.copytree(case.photos(4), source)
    files = sorted(source.rglob("*.jpg"))
    for number, path in enumerate(files[:4]):
        out, image = io.BytesIO(), Image.open(path)
        exif = Image.Exif()
        exif[0x10E] = "words"
        image.save(out, "JPEG", quality=85, exif=exif, comment=b"a comment", progressive=number % 2 > 0)
        data = out.getvalue()
        require(data.endswith(b"\xff\xd9"), "no end marker")
        path.write_bytes(data[:-2] + b"\xff\xff\xff\xd9")
    return source, files[:4]


def stored(case, dataset):
    fields = json.loads((dataset / "manifest.json").read_text())["fields"]
    (jpg,) = [f for f in fields if f["name"] == "jpg"]
    return {s["encoding"]: s for s in jpg.get("stored", [])}


def test_unrestorable(case):
    source, odd = unrestorable(case)
    keep, plain, pixels = case.dir / "keep", case.dir / "plain", case.dir / "pixels"
    case.pack(source, keep, *SMALL)
    case.pack(source, plain, "--jpeg", "fast", *SMALL)
    require("jpeg_pixels" not in stored(case, plain), "originals were given up unasked")
    said = case.json("pack", "--json", "--jpeg", "fast", "--allow-unrestorable", *SMALL, source, pixels)
    count = stored(case, pixels)["jpeg_pixels"]["samples"]
    require(1 <= count <= len(odd), "%d images without their file", count)
    equal(said["jpeg_pixels"], count, "summary")
    case.spk("verify", "--quiet", pixels)
    shown = case.spk("info", pixels).out.decode()
    require(f"{count} as jpeg_pixels: " in shown and "not those packed" in shown, shown)

    out = case.dir / "out"
    told = case.spk("extract", "--original-names", pixels, out).out.decode()
    require(f"{count} JPEG file" in told, told)
    differ = [p for p in source.rglob("*.jpg") if (out / p.relative_to(source)).read_bytes() != p.read_bytes()]
    equal(len(differ), count, "files that are not the original")
    for path in differ:
        ours, theirs = Image.open(out / path.relative_to(source)), Image.open(path)
        require(path in odd and ours.tobytes() == theirs.tobytes(), "%s: other pixels", path)
        equal(ours.getexif().get(0x10E), "words", "metadata")
        equal(ours.info["comment"], b"a comment", "comment")
    key = str(differ[0].relative_to(source))[: -len(".jpg")]
    require("not the file that was packed" in case.spk("cat", pixels, key + ".jpg").text, "cat says nothing")

    options = ["-b", "16", "--keys", "-w", "0"]
    equal(case.spk("stream", *options, pixels).out.splitlines()[1:], case.spk("stream", *options, keep).out.splitlines()[1:], "batches")

    case.refused(f"*pixels: the files of {count} JPEG image* are lost*", "repack", "--jpeg", "keep", pixels, case.dir / "back")
    require(not (case.dir / "back").exists(), "a target was made")
    repack(case, "keep", pixels, case.dir / "back", "--allow-unrestorable")
    case.spk("extract", "--quiet", "--original-names", case.dir / "back", case.dir / "back.out")
    same_trees(case.dir / "back.out", out)
    same(repack(case, "fast", keep, case.dir / "again", "--allow-unrestorable"), pixels)
    repack(case, "fast", pixels, case.dir / "copy")
    equal([s.read_bytes() for s in shards(case.dir / "copy")], [s.read_bytes() for s in shards(pixels)], "shards")
    case.run(sys.executable, REPO / "format-spec/reader.py", "check", pixels, check=True)
