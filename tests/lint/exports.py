#!/usr/bin/env python3
"""Checks that three lists agree: what the shared library exports, what lib/shardpack.map names, and what the public
headers declare; and that every name begins with spk_.

exports.py LIBRARY.so [ROOT]
"""
import fnmatch
import pathlib
import re
import subprocess
import sys


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()[-2] in "TDBRVW"}
    # Version nodes are listed as absolute symbols ("A"), which are not in the list above.
    return names


def declared(root):
    names = set()
    for header in sorted((root / "lib/include").rglob("*.h")):
        text = re.sub(r"/\*.*?\*/|^#.*?$", "", header.read_text(), flags=re.S | re.M)
        for found in re.finditer(r"\bSPK_API\b([^;{]*)", text):
            name = re.search(r"(\w+)\s*\(", found[1].replace("SPK_CHECK", ""))
            if name:
                names.add(name[1])
    return names


def named(root):
    text = (root / "lib/shardpack.map").read_text()
    body = "".join(re.findall(r"global:(.*?)(?:local:|\})", text, flags=re.S))
    return [word.strip() for word in body.split(";") if word.strip()]


def main():
    root = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")
    have, want, patterns = exported(sys.argv[1]), declared(root), named(root)
    bad = [f"{n}: exported, but no public header declares it" for n in sorted(have - want)]
    bad += [f"{n}: declared in a public header, but not exported" for n in sorted(want - have)]
    bad += [f"{n}: does not begin with spk_" for n in sorted(have | want) if not n.startswith("spk_")]
    bad += [f"{p}: in lib/shardpack.map, but nothing is exported by it" for p in patterns if not fnmatch.filter(have, p)]
    bad += [f"{n}: not named in lib/shardpack.map" for n in sorted(want) if not any(fnmatch.fnmatch(n, p) for p in patterns)]
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
