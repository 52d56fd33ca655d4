#!/usr/bin/env python3
"""Refuses includes that point upward or sideways, third-party headers outside their place, and threads started elsewhere than
in base/, which keeps the program's signals away from them.

layers.py [ROOT]: prints one line per bad include and exits 1 if there is any. The picture is in lib/README.md.
"""
import pathlib
import re
import sys

BELOW = {
    "base": [],
    "io": ["base"],
    "plan": ["base"],
    "coef": ["base"],
    "image": ["coef", "base"],
    "shard": ["coef", "io", "base"],
    "dataset": ["shard", "io", "base"],
    "pack": ["dataset", "shard", "plan", "image", "coef", "io", "base"],
    "load": ["dataset", "shard", "plan", "image", "coef", "io", "base"],
}
# Third-party headers and the only files that may include them.
CONFINED = [
    (r"zstd\w*\.h|zdict\.h", r"lib/shard/frame\w*\.c|lib/coef/pack\.c"),
    (r"archive\w*\.h", r"lib/pack/archive\.c"),
    (r"jpeglib\.h|jerror\.h|jmorecfg\.h|turbojpeg\.h|png\.h", r"lib/image/.*|examples/.*"),
    (r"curl/.*", r"lib/io/.*"),
    (r"openssl/.*", r"lib/base/hash\.c"),
    (r"xxhash\.h", r"lib/.*|tools/digest\.c"),
    (r"jansson\w*\.h", r"lib/dataset/.*|lib/pack/.*|lib/load/loader_state\.c|lib/io/s3_metadata\.c|tools/.*"),
    (r"cuda.*", r"lib/load/pinned_cuda\.c"),
    (r"Python\.h", r"lib/python/.*"),
]
# Who starts threads: load/ has its own ways for the trainer's memory and in the worker, with the signals kept away too.
THREADS = r"lib/base/threads\.c|lib/load/(populate|worker)\.c|examples/.*"
SYSTEM = set(
    """assert ctype dirent dlfcn endian errno fcntl float fnmatch ftw getopt glob grp inttypes iso646 langinfo libgen link
    limits locale malloc math memory netdb poll pthread pwd regex sched search semaphore setjmp signal spawn stdalign
    stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string strings syslog termios tgmath threads time
    uchar unistd utime wchar wctype immintrin arm_neon""".split()
)
SYSTEM_FOLDERS = ("sys", "linux", "netinet", "arpa", "net", "asm")


def owner(path):
    """Layer of a file, or "public" or "user" (tools, examples, bindings); None: not checked."""
    parts = path.split("/")
    if parts[:2] == ["lib", "include"]:
        return "public"
    if parts[0] in ("tools", "examples") or parts[:2] == ["lib", "python"]:
        return "user"
    return parts[1] if parts[0] == "lib" and len(parts) > 2 else None


def problem(path, quote, name):
    """Why this file may not include that name, or None."""
    mine = owner(path)
    if name == "shardpack.h" or name.startswith("shardpack/"):
        if quote == '"':
            return "public headers are included with <>"
        return None
    if quote == "<":
        for headers, places in CONFINED:
            if re.fullmatch(headers, name):
                return None if re.fullmatch(places, path) else "this header belongs in " + places.replace("\\", "")
        if name.split("/")[0] in SYSTEM_FOLDERS or name.removesuffix(".h") in SYSTEM:
            return None
        return "unknown header: a new dependency goes into tests/lint/layers.py with the place that may use it"
    if mine == "public":
        return "public headers include public headers only"
    if mine == "user":
        return "outside lib/ only <shardpack/...> and own files" if "/" in name else None
    target = name.split("/")[0]
    if "/" not in name:
        return 'inside lib/ the form is "layer/file.h"'
    if target not in BELOW:
        return "no such layer"
    if target != mine and target not in BELOW.get(mine, []):
        return f"{mine}/ must not see {target}/"
    return None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    bad = 0
    for top in ("lib", "tools", "examples"):
        for file in sorted((root / top).rglob("*.[ch]")):
            path = file.relative_to(root).as_posix()
            mine = owner(path)
            if mine is None or mine not in ("public", "user") and mine not in BELOW:
                print(f"{path}: no layer: lib/ has {' '.join(BELOW)}")
                bad += 1
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
                why = found and problem(path, found[1], found[2])
                if why:
                    print(f"{path}:{number}: {found[2]}: {why}")
                    bad += 1
                if re.search(r"\bpthread_create\s*\(", line) and not re.fullmatch(THREADS, path):
                    print(f"{path}:{number}: pthread_create: threads are started by spk_thread_start")
                    bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
