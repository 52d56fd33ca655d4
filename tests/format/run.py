#!/usr/bin/python3
"""Checks format-spec/: its reader against its vectors, and the shardpack command against both.

Without $SHARDPACK: reader.py accepts and refuses the vectors as expected.tsv says, make_vectors.py makes the committed
bytes, no flipped bit of a shard goes unnoticed, and epoch_order.py keeps its promises (order.py). With $SHARDPACK (path of the command): `verify` agrees on every
vector, and reader.py agrees with what `pack` made. Prints "N passed, N failed"; exit 1 if something failed.
-v names each test, -m prints the messages of `verify`.
"""

import os
import random
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPEC = os.path.join(ROOT, "format-spec")
VECTORS = os.path.join(SPEC, "vectors")
sys.dont_write_bytecode = True
sys.path.insert(0, SPEC)
import jpeg_coefficients  # noqa: E402
import keys  # noqa: E402
import order  # noqa: E402
import reader  # noqa: E402

SHARDPACK = os.environ.get("SHARDPACK")
COUNT = {"passed": 0, "failed": 0}


def result(ok, name, detail=""):
    COUNT["passed" if ok else "failed"] += 1
    if not ok:
        print("FAIL %s: %s" % (name, detail))
    elif "-v" in sys.argv:
        print("ok   %s" % name)


def problems(path):
    found = []
    try:
        reader.check(path, lambda name, p: found.append((p.rule, "%s: %s" % (name, p))))
    except Exception as e:  # anything but a Problem is an error of the reader
        found.append(("crash", repr(e)))
    return found


def expected():
    with open(os.path.join(VECTORS, "expected.tsv"), encoding="ascii") as f:
        return [line.rstrip("\n").split("\t") for line in f if not line.startswith("#")]


def test_reader():
    for name, wanted, _ in expected():
        found = problems(os.path.join(VECTORS, name))
        rules = {rule for rule, _ in found}
        ok = not found if wanted == "ok" else bool(rules) and rules <= set(wanted.split())
        result(ok, "reader " + name, "wanted %s, got %s" % (wanted, found))


def tree(folder):
    out = {}
    for at, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(at, name)
            if name != "README.md" and not name.endswith((".py", ".pyc")):
                with open(path, "rb") as f:
                    out[os.path.relpath(path, folder)] = f.read()
    return out


def test_vectors_are_reproduced(tmp):
    subprocess.run([sys.executable, os.path.join(VECTORS, "make_vectors.py"), tmp], check=True)
    made, committed = tree(tmp), tree(VECTORS)
    result(set(made) == set(committed), "vectors: same files", sorted(set(made) ^ set(committed)))
    differ = [name for name in made if name in committed and made[name] != committed[name]]
    result(not differ, "vectors: same bytes", differ)


def blobs():
    folder = os.path.join(SPEC, "jpeg-vectors")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".blob"):
            with open(os.path.join(folder, name), "rb") as f, open(os.path.join(folder, name[:-4] + "jpg"), "rb") as g:
                yield name, f.read(), g.read()


def test_jpeg_coefficients():
    """Each blob gives its file; a byte changed anywhere is refused or gives another file, and never an error of Python."""
    number = random.Random(5)
    for name, blob, wanted in blobs():
        result(jpeg_coefficients.restore(blob) == wanted, "restore " + name)
        crashes = []
        for _ in range(60):
            changed = bytearray(blob)
            changed[number.randrange(len(blob))] ^= 1 << number.randrange(8)
            try:
                jpeg_coefficients.restore(bytes(changed))
            except jpeg_coefficients.Bad:
                pass
            except Exception as e:
                crashes.append(repr(e))
        result(not crashes, "changed bytes of " + name, crashes[:3])


def test_every_bit_counts(tmp):
    """Each flipped bit of a small shard, and the top bit of each byte of a larger one, is refused."""
    path = os.path.join(tmp, "changed.tar.zst")
    for name, bits in (("good-one", range(8)), ("good-two", (7,))):
        with open(os.path.join(VECTORS, name + ".tar.zst"), "rb") as f:
            good = f.read()
        unseen = []
        for at in range(len(good)):
            for bit in bits:
                with open(path, "wb") as f:
                    f.write(good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :])
                found = problems(path)
                if not found or found[0][0] == "crash":
                    unseen.append((at, bit, found))
        result(not unseen, "every flipped bit of %s is refused" % name, unseen)


def test_brackets(tmp):
    with open(os.path.join(tmp, "manifest.json"), "wb") as f:
        for _ in range(200):
            f.write(b"[" * (1 << 20))
    found = problems(tmp)
    result([rule for rule, _ in found] == ["manifest-json"], "reader: 200 MiB of brackets", found)
    if SHARDPACK:
        verify("200 MiB of brackets", tmp, False)


def run(*arguments):
    p = subprocess.run(
        [SHARDPACK, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")


def verify(name, path, good):
    code, out, err = run("verify", path)
    text = err.strip() or out.decode("utf-8", "replace").strip()
    ok = code == 0 if good else code == 1 and bool(text)
    result(ok, "verify " + name, "exit %d: %s" % (code, text[:300]))
    if "-m" in sys.argv:
        print("     %s: %s" % (name, text[:200].replace("\n", " | ")))


ODD = [
    b"cat/1.jpg",
    b"cat/1.txt",
    b"cat/1.json",
    b"cat/A.txt",
    b"cat/a.txt",
    b"cat/b.JPG",
    b"cat/b.jpeg",
    b"cat/b.jpg",
    b"cat/c.JPG",
    b"cat/d.JPG",
    b"cat/d.jpeg",
    b"dog/img 1.0 (copy).txt",
    b"dog/img 1.1.txt",
    b"dog/new\nline.txt",
    b"dog/tab\t.txt",
    b"dog/\xff\xfe.txt",
    b"dog/\xc3\xa9t\xc3\xa9.txt",
    b"dog/e\xcc\x81.txt",
    b"dog/\xe2\x82.txt",
    b"dog/\xed\xa0\x80.txt",
    b"dog/.hidden",
    b"dog/.hidden.txt",
    b"dog/__x.txt",
    b"dog/___y.txt",
    b"__z__/q.txt",
    b"dog/#?;%{}.txt",
    b"dog/noext",
    b"dog/dot.",
    b"dog/two..txt",
    b"dog/x.__f",
    b"dog/x.tar.gz",
    b"dog/x.\xc3\xa9\xff",
    b"dog/x." + b"e" * 60,
    b"dog/-dash.txt",
    b"dog/ .txt",
    b"dog/'\"\\.txt",
    b"dog/" + b"n" * 200 + b".txt",
    b"dog/" + b"m" * 68 + b".txt",
    b"dog/" + b"m" * 69 + b".txt",
    b"/".join([b"deep" * 10] * 7) + b"/x.txt",
    b"x" * 53 + b"/y/" + b"z" * 40 + b".txt",
    b"x" * 54 + b"/" + b"z" * 40 + b".txt",
    b"UP/x.txt",
    b"up/x.txt",
    b"Up/X.txt",
    b"...",
    b"..txt",
    b"a.b/c",
    b"a.b/c.d.e",
    b"dog/empty.txt",
    b"dog/n.CLS",
    b"dog/m.cls",
]


def make_tree(folder):
    rng = random.Random(1)
    for path in ODD:
        full = os.path.join(os.fsencode(folder), path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as f:
            f.write(b"" if b"empty" in path else bytes(rng.randrange(256) for _ in range(rng.randrange(1, 3000))))


def members(dataset):
    """{(key, field): path} for a dataset, by reader.py."""
    return {(s.key, m.field): m.path for shard in reader.shards_of(dataset) for s in shard.samples() for m in s.members}


def test_pack(tmp, name, stem, *options):
    src, dst = os.path.join(tmp, "src"), os.path.join(tmp, name)
    if not os.path.isdir(src):
        make_tree(src)
    code, _, err = run("pack", src, dst, "--check", "none", "--quiet", *options)
    result(code == 0, "pack " + name, err)
    if code:
        return
    found = problems(dst)
    result(not found, "reader on pack " + name, found)
    verify("pack " + name, dst, True)
    have = members(dst)
    want = {(k.encode(), f.encode()): p for k, f, p in keys.keys_of(ODD, stem)}
    got = {k: p for k, p in have.items() if p is not None}
    result(
        got == want,
        "keys of pack " + name,
        "shardpack: %s; reader.py: %s"
        % (sorted(set(got.items()) - set(want.items())), sorted(set(want.items()) - set(got.items()))),
    )
    bad = []
    for (key, field), path in sorted(got.items()):
        code, out, err = run("cat", dst, os.fsdecode(key + b"." + field))
        with open(os.path.join(os.fsencode(src), path), "rb") as f:
            if code or out != f.read():
                bad.append((key, field, code, err))
    result(not bad, "cat on pack " + name, bad)


def test_splits(tmp):
    src, dst = os.path.join(tmp, "src"), os.path.join(tmp, "splits")
    splits = [("train", 0.6), ("val", 0.3), ("test", 0.1)]
    code, _, err = run("pack", src, dst, "--check", "none", "--quiet", "--split", ",".join("%s=%s" % s for s in splits))
    result(code == 0, "pack with splits", err)
    if code:
        return
    bad = []
    for name, _ in splits:
        folder = os.path.join(dst, name)
        found = problems(folder)
        result(not found, "reader on split " + name, found)
        for path in members(folder).values():
            if path is not None:
                right = keys.choose_split(keys.split_position(keys.split_stem(path)[0]), splits)
                if right != name:
                    bad.append((path, name, right))
    result(not bad, "splits", bad)


def main():
    with tempfile.TemporaryDirectory(prefix="shardpack-format-") as tmp:
        folders = iter(range(100))

        def fresh():
            path = os.path.join(tmp, str(next(folders)))
            os.mkdir(path)
            return path

        test_jpeg_coefficients()
        test_reader()
        test_vectors_are_reproduced(fresh())
        test_every_bit_counts(fresh())
        test_brackets(fresh())
        order.test_orders(result)
        if SHARDPACK:
            for name, wanted, _ in expected():
                verify(name, os.path.join(VECTORS, name), wanted == "ok")
            folder = fresh()
            test_pack(folder, "default", False)
            test_pack(folder, "small", False, "--frame-samples", "3", "--shard-samples", "10", "--no-shuffle")
            test_pack(folder, "single", False, "--frames", "single")
            test_pack(folder, "first-dot", True, "--stem", "first")
            test_splits(folder)
    print("%d passed, %d failed" % (COUNT["passed"], COUNT["failed"]))
    return 1 if COUNT["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
