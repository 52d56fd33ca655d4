"""Tar archives as sources: the dataset is that of the unpacked folder, byte for byte; what cannot be read is refused."""
import io
import os
import signal
import tarfile

from harness import Skip, equal, require, same_trees
from trees import jpeg, odd_tree

OPTIONS = ["--check", "none", "--shard-samples", "30"]


def add(archive, name, data=b"x", kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name if isinstance(name, str) else os.fsdecode(name))
    info.type, info.linkname, info.size = kind, link, len(data) if kind == tarfile.REGTYPE else 0
    archive.addfile(info, io.BytesIO(data))


def tar_of(case, name, members, form=tarfile.PAX_FORMAT):
    """Writes a tar of (name, data) or (name, data, kind, link) in that order; returns its path."""
    with tarfile.open(case.dir / name, "w", format=form, errors="surrogateescape") as archive:
        for member in members:
            add(archive, *member)
    return case.dir / name


def bytes_of(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for member in members:
            add(archive, *member)
    return out.getvalue()


def refused(case, glob, *arguments):
    case.refused(glob, "pack", "--quiet", *OPTIONS, *arguments, case.dir / "set")
    require(not (case.dir / "set").exists(), "a target was made")


def test_photos(case):
    """Labels, shuffle, splits and checks are as for the folder; the second run finds nothing to do."""
    source = case.photos()
    case.run("tar", "-C", source, "-cf", case.dir / "photos.tar", ".", check=True)
    for name, options in {"a": [], "b": ["--no-shuffle"], "c": ["--seed", "7", "--split", "train=0.8,val=0.2"],
                          "d": ["--exclude", "night", "--include", "*0*", "--frames", "single"],
                          "e": ["--labels", "none", "--limit", "20", "--jobs", "3"]}.items():  # fmt: skip
        options += ["--check", "header"] if options else []
        case.pack(source, case.dir / f"folder-{name}", *options)
        case.pack(case.dir / "photos.tar", case.dir / f"tar-{name}", *options)
        same_trees(case.dir / f"tar-{name}", case.dir / f"folder-{name}")
    case.run("tar", "-C", source.parent, "-cf", case.dir / "deep.tar", source.name, check=True)
    require(b"so there is one class" in case.spk("pack", "-n", case.dir / "deep.tar", case.dir / "x").err, "no note")
    result = case.json("pack", "--json", case.dir / "photos.tar", case.dir / "tar-a")
    equal(result["up_to_date"], True, "up to date")


def test_odd_names(case):
    """In each dialect of tar, and in any locale."""
    source, names = odd_tree(case)
    case.pack(source, case.dir / "folder", *OPTIONS)
    for form in ("gnu", "pax"):
        case.run("tar", "-C", source, f"--format={form}", "-cf", case.dir / f"{form}.tar", ".", check=True)
    with tarfile.open(case.dir / "python.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(source, "")
    for name in ("gnu", "pax", "python"):
        for locale in ("C", "C.UTF-8"):
            case.pack(case.dir / f"{name}.tar", case.dir / f"{name}-{locale}", *OPTIONS, env={"LC_ALL": locale})
            same_trees(case.dir / f"{name}-{locale}", case.dir / "folder")


def test_tar_of_tars(case):
    """As ImageNet ships: an inner tar is a folder named by its stem; one that is empty is a class too."""
    classes = {f"n{i:08}": [(f"n{i:08}_{k}.JPEG", jpeg(seed=10 * i + k)) for k in range(i % 4)] for i in range(9)}
    outer = [(f"{name}.tar", bytes_of(images)) for name, images in reversed(classes.items())]
    tar = tar_of(case, "train.tar", outer)
    for name, images in classes.items():
        (case.dir / "train" / name).mkdir(parents=True)
        for image, data in images:
            case.write(f"train/{name}/{image}", data)
    for options in ([], ["--no-shuffle", "--on-bad", "skip", "--exclude", "n00000003"]):
        case.pack(case.dir / "train", case.dir / f"folder{len(options)}", *options)
        case.pack(tar, case.dir / f"tar{len(options)}", *options)
        same_trees(case.dir / f"tar{len(options)}", case.dir / f"folder{len(options)}")
    equal(len(case.json("info", "--json", case.dir / "tar0")["classes"]), 9, "classes")
    outer.insert(4, ("bad.tar", bytes_of([("one.JPEG", jpeg()), ("two.JPEG", jpeg()[:200])])))
    tar = tar_of(case, "bad.tar", outer)
    case.refused("*/bad.tar: bad.tar: two.JPEG: *", "pack", "--quiet", tar, case.dir / "set")
    case.pack(tar, case.dir / "skipped", "--on-bad", "skip")
    report = (case.dir / "skipped/bad-files.tsv").read_text().splitlines()
    equal([line.split("\t")[0] for line in report[1:]], ["bad/two.JPEG"], "bad files")


def test_list(case):
    members = [(f"{i % 3}/{i}.jpg", b"%d" % i) for i in range(9)] + [("l.jpg", b"", tarfile.SYMTYPE, "0/0.jpg")]
    tar = tar_of(case, "src.tar", members)
    for name, data, *_ in members[:-1]:
        case.write(f"src/{name}", data)
    rows = case.write("rows.csv", b"path,label,note\n2/8.jpg,a,x\n./0//3.jpg,b,y\n1/1.jpg,a,z\n")
    case.pack(case.dir / "src", case.dir / "folder", *OPTIONS, "--list", rows)
    case.pack(tar, case.dir / "tar", *OPTIONS, "--list", rows)
    same_trees(case.dir / "tar", case.dir / "folder")
    for path, why in {"9.jpg": "*src.tar has no such member", "0": "*has no such member", "l.jpg": "is a symlink",
                      "../0": "leaves the source folder"}.items():  # fmt: skip
        rows = case.write("bad.csv", f"path\n0/0.jpg\n{path}\n".encode())
        refused(case, f'*bad.csv: row 3: path "{path}": {why}', "--list", rows, tar)


def test_refused(case):
    good = ("a.jpg", b"one")
    inner = bytes_of([good, ("b.jpg", b"two" * 300)])
    for members, message in (
        ([good, ("/etc/passwd", b"x")], "*src.tar: /etc/passwd: absolute"),
        ([good, ("x/../../y", b"x")], "*src.tar: x/../../y: leaves the source folder"),
        ([good, ("a.jpg", b"other")], "*src.tar: a.jpg: is in the archive twice, its data at bytes 512 and 1536"),
        ([good, ("./a.jpg", b"other")], "*src.tar: a.jpg: is in the archive twice*"),
        ([("i.tar", inner), ("i/a.jpg", b"x")], "*src.tar: i.tar: a.jpg: is in the archive twice, its data at bytes 11264 and 1024"),
        ([good, ("l.jpg", b"", tarfile.LNKTYPE, "b.jpg")], '*src.tar: l.jpg: a hard link to "b.jpg", which is no file*'),
        ([("i.tar", inner), ("j.tar", b"", tarfile.LNKTYPE, "i.tar")], "*src.tar: j.tar: a hard link to an archive"),
        ([good, ("i.tar", inner[:1024])], "*src.tar: i.tar: truncated: ends at byte * without an end marker"),
        ([good, ("i.tar", inner[:2000])], "*src.tar: i.tar: b.jpg: truncated: *"),
        ([good, ("i.tar", b"text" * 500)], "*src.tar: i.tar: not a tar archive*"),
        ([good, ("i.tar", b"")], "*src.tar: i.tar: not a tar archive*"),
        ([("i.tar", bytes_of([("/x", b"")]))], "*src.tar: i.tar: /x: absolute"),
        ([("l", b"", tarfile.SYMTYPE, "a")], "*src.tar: no files to pack*"),
    ):  # fmt: skip
        refused(case, message, tar_of(case, "src.tar", members, tarfile.USTAR_FORMAT))
    tar = tar_of(case, "src.tar", [good, ("l.jpg", b"", tarfile.SYMTYPE, "a.jpg")])
    refused(case, "*src.tar: l.jpg: a symlink in an archive cannot be followed", "--follow-symlinks", tar)
    refused(case, "*text: neither a folder nor a tar archive*", case.write("text", b"hello" * 200))
    refused(case, "*short: neither a folder nor a tar archive*", case.write("short", b""))
    os.mkfifo(case.dir / "fifo")
    refused(case, "*fifo: neither a folder nor a tar archive", case.dir / "fifo")
    joined = bytes_of([good]) + bytes_of([("b.jpg", b"two")])
    refused(case, "*joined.tar: data behind the end marker, at byte 10240: *", case.write("joined.tar", joined))


def test_compressed(case):
    tar = tar_of(case, "src.tar", [("a/x.jpg", b"one")])
    for option, name in {"-z": "gzip", "-J": "xz", "-j": "bzip2", "--zstd": "zstd"}.items():
        file = case.dir / f"{name}.dat"
        if case.run("tar", option, "-cf", file, "-C", case.dir, tar.name).code == 0:
            refused(case, f"*{name}.dat: compressed archives (this is {name}) cannot be read at random: unpack it first", file)


def test_links_junk_sparse(case):
    """Hard links are the file that they link to; links and junk are counted; a sparse file is refused."""
    case.write("src/a/x.jpg", b"one" * 1000)
    os.link(case.dir / "src/a/x.jpg", case.dir / "src/b.jpg")
    os.symlink("x.jpg", case.dir / "src/a/link.jpg")
    case.write("src/a/._x.jpg")
    case.write("src/__MACOSX/y.jpg")
    os.mkfifo(case.dir / "src/fifo")
    case.run("tar", "-C", case.dir / "src", "-cf", case.dir / "src.tar", ".", check=True)
    counts = []
    for source, target in (("src", "folder"), ("src.tar", "tar")):
        result = case.json("pack", "--json", *OPTIONS, case.dir / source, case.dir / target)
        counts.append((result["files"], result["other_skipped"], result["junk"]))
    equal(counts, [(2, 2, 2)] * 2, "files, others, junk")
    same_trees(case.dir / "tar", case.dir / "folder")
    os.truncate(case.write("src/hole.bin"), 1 << 20)
    case.run("tar", "-C", case.dir / "src", "--sparse", "-cf", case.dir / "sparse.tar", ".", check=True)
    refused(case, "*sparse.tar: ./hole.bin: a sparse file cannot be read in place: unpack the archive first",
            case.dir / "sparse.tar")  # fmt: skip


def test_resume_and_change(case):
    """A run that was killed goes on; an archive that changes under the packer, or before it goes on, is noticed."""
    from test_kill import OPTIONS as CUTS, stopped_packer

    tar = case.dir / "photos.tar"
    case.run("tar", "-C", case.photos(), "-cf", tar, ".", check=True)
    case.pack(tar, case.dir / "whole", *CUTS[1:])
    first = tar.read_bytes()[:1]
    for what in ("resume", "write", "grow"):
        target = case.dir / f"set-{what}"
        child = stopped_packer(case, tar, target)
        if child.poll() is not None:
            raise Skip("the packer was too fast to be stopped")
        if what == "resume":
            child.kill()
            child.communicate()
            result = case.json("pack", "--json", *CUTS[1:], tar, target)
            require(result["shards_resumed"] > 0, "nothing was resumed: %r", result)
            same_trees(target, case.dir / "whole")
            continue
        with open(tar, "r+b") as file:
            file.seek(0, os.SEEK_END if what == "grow" else os.SEEK_SET)
            file.write(b"\0" * 512 if what == "grow" else first)
        child.send_signal(signal.SIGCONT)
        error = child.communicate()[1].decode()
        equal(child.returncode, 1, f"{what}: exit status, {error!r}")
        require("photos.tar: changed while packing: " in error, "%s: %r", what, error)
        require(not (target / "manifest.json").exists(), "%s: published all the same", what)
        case.refused("*times of files*", "pack", *CUTS, tar, target)

