"""What is packed and opened: the corpus of photographs, trees of tiny files, and made-up datasets of many shards."""
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess

from measure import BenchError, say

HERE = os.path.dirname(os.path.abspath(__file__))
TINY_SIZE = 200    # bytes of a tiny file


@dataclasses.dataclass
class Tree:
    """A folder with files. paths: relative to it, as bytes, sorted."""
    folder: str
    paths: list
    bytes: int
    largest: int

    @property
    def files(self):
        return len(self.paths)

    @property
    def path_bytes(self):
        return sum(map(len, self.paths))

    def describe(self):
        return {"folder": self.folder, "files": self.files, "bytes": self.bytes, "largest": self.largest}

    def warm(self):
        """Reads every file, so that all of them come from the page cache."""
        root = os.fsencode(self.folder)
        for path in self.paths:
            with open(os.path.join(root, path), "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass


def scan(folder):
    paths, total, largest = [], 0, 0
    pending = [(os.fsencode(folder), b"")]
    while pending:
        path, prefix = pending.pop()
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, prefix + entry.name + b"/"))
                elif entry.is_file(follow_symlinks=False):
                    size = entry.stat(follow_symlinks=False).st_size
                    paths.append(prefix + entry.name)
                    total += size
                    largest = max(largest, size)
    return Tree(folder, sorted(paths), total, largest)


def remove(path):
    """rm -rf: many times faster than the interpreter where there are a million files."""
    subprocess.run(["rm", "-rf", "--", path], check=True)


# ---- photographs ----

def default_corpus(cache, images):
    """A cached corpus of at least so many images; made if there is none."""
    for name in sorted(os.listdir(cache)) if os.path.isdir(cache) else []:
        count = name[len("images-"):]
        if name.startswith("images-") and count.isdigit() and int(count) >= images:
            return os.path.join(cache, name)
    folder = os.path.join(cache, f"images-{images}")
    part = folder + ".part"
    say(f"making {images} photographs in {folder} (once; about 1 CPU minute per 1,000)")
    os.makedirs(cache, exist_ok=True)
    remove(part)
    done = subprocess.run([os.path.join(HERE, "make-corpus"), part, "--images", str(images), "--classes",
                           str(max(1, min(100, images // 20))), "--cache", cache], stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        raise BenchError("no photographs: make-corpus failed (see above); or name a folder of your own with CORPUS=")
    os.rename(part, folder)
    return folder


def corpus_tree(folder, images, work):
    """The corpus to measure on: folder, or a tree of evenly spaced files of it if it holds more than `images`."""
    tree = scan(folder)
    if not tree.files:
        raise BenchError(f"corpus {folder}: holds no files")
    if tree.files <= images:
        return tree
    return evenly(tree, images, os.path.join(work, "corpus"), link_or_copy)


def evenly(tree, count, folder, put):
    """A tree of `count` evenly spaced files, or all; put(old path, new path) makes each."""
    source, target = os.fsencode(tree.folder), os.fsencode(folder)
    count = min(count, tree.files)
    for i in range(count):
        path = tree.paths[i * tree.files // count]
        os.makedirs(os.path.dirname(os.path.join(target, path)), exist_ok=True)
        put(os.path.join(source, path), os.path.join(target, path))
    return scan(folder)


def encoded_again(tree, count, quality, folder):
    """Evenly spaced images of the tree as JPEGs of that quality, 4:2:0; None without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return None

    def put(source, target):
        with Image.open(os.fsdecode(source)) as image:
            image.convert("RGB").save(os.fsdecode(target), "JPEG", quality=quality, subsampling=2)

    return evenly(tree, count, folder, put)


def link_or_copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


# ---- tiny files ----

class TinyFiles:
    """A tree of tiny files that grows on demand and is removed with the work folder."""

    def __init__(self, machine, helpers, work, folders):
        self.machine, self.folders = machine, folders
        self.program = os.path.join(helpers, "make_tiny")
        self.folder = os.path.join(work, "tiny")
        self.per_folder = 0

    def grow(self, files):
        """Returns the tree with exactly `files` files: a multiple of the folders, never fewer than before."""
        per_folder = files // self.folders
        if per_folder > self.per_folder:
            self.need_room(files - self.per_folder * self.folders)
            say(f"  making {files:,} files of {TINY_SIZE} bytes in {self.folders:,} folders")
            self.machine.run([self.program, self.folder, str(self.folders), str(self.per_folder), str(per_folder),
                              str(TINY_SIZE)])
            self.per_folder = per_folder
            os.sync()
        tree = scan(self.folder)
        if tree.files != files:
            raise BenchError(f"{self.folder}: {tree.files} files instead of {files}")
        return tree

    def need_room(self, files):
        """One block and one inode per file, and 4 KiB per file for what is packed from them."""
        room = os.statvfs(os.path.dirname(self.folder))
        inodes, space = files + self.folders + 1000, 8192 * files + (64 << 20)
        free = room.f_bavail * room.f_frsize
        if room.f_files and room.f_favail < inodes:
            raise BenchError(f"needs {inodes:,} free inodes in the work folder, there are {room.f_favail:,}")
        if free < space:
            raise BenchError(f"needs {space >> 20:,} MiB in the work folder, {free >> 20:,} MiB are free")


# ---- datasets that are only opened ----

def read_manifest(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        return json.load(file)


def shard_paths(folder):
    table = os.path.join(folder, read_manifest(folder)["table"]["file"])
    with open(table, encoding="ascii") as file:
        return [os.path.join(folder, line.split("\t", 1)[0]) for line in file if not line.startswith("#")]


def make_catalog(template, folder, shards):
    """Writes manifest and table of a dataset of so many shards, none of which exists, after those of a real one."""
    manifest = read_manifest(template)
    with open(os.path.join(template, manifest["table"]["file"]), encoding="ascii") as file:
        header = file.readline()
    digests = [hashlib.sha256(b"shard %d" % i).digest() for i in range(shards)]
    fingerprint = hashlib.sha256(b"".join(digests)).hexdigest()
    samples, frames, size, tar_bytes, index_offset = 2000, 210, 257_000_000, 258_048_000, 256_900_000
    columns = f"{samples}\t{frames}\t{size}\t{tar_bytes}\t{index_offset}"
    os.makedirs(folder)
    name = f"shards-{fingerprint[:8]}.tsv"
    table = os.path.join(folder, name)
    whole = hashlib.sha256()
    with open(table, "wb") as file:
        lines = [header]
        for i, digest in enumerate(digests):
            lines.append(f"shard-{fingerprint[:8]}-{i:06d}.tar.zst\t{columns}\t{digest.hex()}\n")
            if len(lines) >= 10_000 or i + 1 == shards:
                data = "".join(lines).encode("ascii")
                whole.update(data)
                file.write(data)
                lines = []
    manifest.update(fingerprint=fingerprint, samples=samples * shards, shards=shards, frames=frames * shards,
                    bytes=size * shards, tar_bytes=tar_bytes * shards, payload_bytes=250_000_000 * shards)
    manifest["table"] = {"file": name, "bytes": os.path.getsize(table), "sha256": whole.hexdigest()}
    manifest.pop("images", None)
    for field in manifest["fields"]:
        field["samples"] = samples * shards
    with open(os.path.join(folder, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=2)
        file.write("\n")
    return os.path.getsize(table)
