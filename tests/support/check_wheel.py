#!/usr/bin/env python3
"""Checks a wheel that bundles its libraries: what its programs need from outside is what every Linux has, and it packs
and streams in an environment that has nothing else but NumPy.

check_wheel.py [--python PYTHON] --photos MAKE_PHOTOS WHEEL
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

# What the manylinux policies allow; the rest must be inside.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1", "libstdc++.so.6",
          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libresolv.so.2", "libutil.so.1",
          "libz.so.1"}
SCRIPT = """
import sys, shardpack
source, target = sys.argv[1:]
shardpack.pack(source, target)
loader = shardpack.Loader(target, batch_size=16, num_workers=2, shuffle=True)
n = sum(len(labels) for _, labels in loader)
maps = [line.split()[-1] for line in open("/proc/self/maps") if ".so" in line]
outside = {m.rsplit("/", 1)[-1] for m in maps if any(w in m for w in ("curl", "zstd", "archive", "jpeg", "png", "crypto",
           "xxhash", "jansson")) and "shardpack.libs" not in m and "/lib-dynload/" not in m and "numpy" not in m}
print(n, ",".join(sorted(outside)))
"""


def needed(path):
    out = subprocess.run(["readelf", "-d", path], capture_output=True, text=True).stdout
    return {line.split("[")[1].split("]")[0] for line in out.splitlines() if "(NEEDED)" in line}


def outside(folder):
    """(file, library) of what is neither in the wheel nor in every Linux."""
    files = [p for p in folder.rglob("*") if p.is_file() and p.open("rb").read(4) == b"\x7fELF"]
    inside = {p.name for p in files}
    for path in files:
        for name in sorted(needed(path) - inside - SYSTEM):
            yield path.relative_to(folder), name


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--photos", required=True)
    parser.add_argument("wheel", type=pathlib.Path)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as temp:
        temp = pathlib.Path(temp)
        with zipfile.ZipFile(options.wheel) as wheel:
            wheel.extractall(temp / "wheel")
        for path, name in outside(temp / "wheel"):
            print(f"{path}: needs {name}, which is not in the wheel")
            failed += 1
        subprocess.run([options.python, "-m", "venv", temp / "venv"], check=True)
        python = temp / "venv/bin/python"
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", options.wheel], check=True)
        subprocess.run([options.photos, temp / "photos", "4"], check=True)
        done = subprocess.run([python, "-c", SCRIPT, temp / "photos", temp / "set"], capture_output=True, text=True,
                              cwd=temp, env={"PATH": os.environ["PATH"]})
        print(done.stdout.strip() or done.stderr.strip())
        if done.returncode != 0 or done.stdout.split() != ["32"]:
            print("the wheel does not stream 32 samples with its own libraries alone")
            failed += 1
    print(f"{options.wheel.name}, {options.wheel.stat().st_size / 1e6:.1f} MB: {int(failed == 0)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
