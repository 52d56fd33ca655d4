"""The vectors that are datasets: dataset.md."""

import hashlib
import json
import os

from pieces import EXPECTED, JPEG, ONE, TWO, Build, coefficients, flip, write

HEAD = "#path\tsamples\tframes\tbytes\ttar_bytes\tindex_offset\ttail_sha256\n"


class Folder:
    """The two shards of a dataset, the table and the manifest; every part can be edited before it is written."""

    def __init__(self, builds):
        self.files, self.rows, sums = {}, [], hashlib.sha256()
        parts = []
        for b in builds:
            raw, offset = b.bytes(), sum(map(len, b.frames))
            sums.update(hashlib.sha256(raw[offset:]).digest())
            parts.append((b, raw, offset))
        self.fingerprint = sums.hexdigest()
        for i, (b, raw, offset) in enumerate(parts):
            name = "tiny-%s-%06d.tar.zst" % (self.fingerprint[:8], i)
            self.files[name] = raw
            self.rows.append(
                [
                    name,
                    sum(b.counts),
                    len(b.frames),
                    len(raw),
                    sum(map(len, b.tars)),
                    offset,
                    hashlib.sha256(raw[offset:]).hexdigest(),
                ]
            )

    def table(self):
        return (HEAD + "".join("\t".join(map(str, r)) + "\n" for r in self.rows)).encode()

    def manifest(self, fields, payload, classes, table):
        total = [sum(r[i] for r in self.rows) for i in range(1, 5)]
        return {
            "format": "shardpack",
            "version": "1.0",
            "fingerprint": self.fingerprint,
            "samples": total[0],
            "shards": len(self.rows),
            "frames": total[1],
            "bytes": total[2],
            "tar_bytes": total[3],
            "payload_bytes": payload,
            "table": {
                "file": "shards-%s.tsv" % self.fingerprint[:8],
                "bytes": len(table),
                "sha256": hashlib.sha256(table).hexdigest(),
            },
            "order": "stored",
            "fields": [{"name": n, "kind": k, "samples": s} for n, k, s in fields],
            "classes": classes,
        }


def dataset(out, name, rule, what, edit=None, table=None, text_edit=None, files=None, builds=None):
    """edit(manifest), table(bytes) and text_edit(str) change the parts; files(dict) the shards on disk."""
    folder = Folder([Build(TWO), Build(ONE)] if builds is None else builds)
    rows = folder.table()
    changed = table(rows, folder) if table else rows
    manifest = folder.manifest(
        [("cls", "label", 3), ("jpg", "image", 2), ("seg.png", "image", 1), ("txt", "text", 1)] if folder.rows else [],
        538 if folder.rows else 0,
        ["cat", "dog", "100%25 %ff"],
        changed,
    )
    if edit:
        edit(manifest)
    words = json.dumps(manifest, indent=2) + "\n"
    if text_edit:
        words = text_edit(words)
    if files:
        files(folder.files)
    write(out, name + "/manifest.json", words if isinstance(words, bytes) else words.encode())
    write(out, "%s/%s" % (name, os.path.basename(manifest["table"]["file"])), changed)
    for file, raw in folder.files.items():
        write(out, name + "/" + file, raw)
    EXPECTED.append((name, rule, what))


def put(*path_and_value):
    *path, last, value = path_and_value

    def edit(m):
        for step in path:
            m = m[step]
        m[last] = value

    return edit


def good_datasets(out):
    dataset(out, "good-dataset", "ok", "two shards, three classes")
    dataset(
        out,
        "good-dataset-later",
        "ok",
        "version 1.7 with members that nobody knows",
        edit=lambda m: m.update({"version": "1.7", "later": {"a": [1, None, {"b": -1.5}]}}),
    )
    dataset(out, "good-dataset-kind", "ok", "a kind that nobody knows", edit=put("fields", 3, "kind", "later"))
    dataset(out, "good-dataset-empty", "ok", "no samples and no shards", builds=[])


def encodings(out):
    blob, size = JPEG
    good = {"encoding": "jpeg_coefficients", "samples": 1, "bytes": len(blob), "original_bytes": size}
    other = {**good, "encoding": "identity"}
    for name, rule, stored, what in (
        ("good-dataset-stored", "ok", [good], "a field in an encoding"),
        ("bad-stored-missing", "fields", None, "the encoding is not told"),
        ("bad-stored-other", "fields", [other], "another encoding is told"),
        ("bad-stored-bytes", "fields", [{**good, "bytes": size}], "wrong bytes of an encoding"),
        ("bad-stored-original", "fields", [{**good, "original_bytes": 1}], "wrong original bytes of an encoding"),
        ("bad-stored-sum", "manifest-member", [{**good, "samples": 2}], "samples do not add up to those of the field"),
        ("bad-stored-order", "manifest-member", [good, {**other, "samples": 0}], "encodings not ascending"),
        ("bad-stored-name", "manifest-member", [{**good, "encoding": "A"}], "an encoding's name against the rules"),
    ):
        field = {"name": "jpg", "kind": "image", "samples": 1}
        if stored:
            field["stored"] = stored
        edit = {"fields": [field], "payload_bytes": size}
        dataset(out, name, rule, what, edit=lambda m, edit=edit: m.update(edit), builds=[coefficients()])


NO_IMAGES = {
    **dict.fromkeys(("count", "jpeg", "png", "other"), 0),
    **dict.fromkeys(("width", "height"), {"min": 0, "max": 0, "sum": 0}),
    "longer_side": [0] * 18,
}


def bad_manifests(out):
    for name, edit, rule, what in (
        ("format", put("format", "other"), "manifest-format", "another format"),
        ("version-2", put("version", "2.0"), "manifest-version", "version 2.0"),
        ("version-text", put("version", "1"), "manifest-version", "version without a minor number"),
        ("version-zeros", put("version", "1.00"), "manifest-version", "a leading zero in the version"),
        ("missing", lambda m: m.pop("samples"), "manifest-member", "no number of samples"),
        ("negative", put("samples", -4), "manifest-member", "a negative number"),
        ("fraction", put("samples", 4.5), "manifest-member", "a number with a fraction"),
        ("huge", put("payload_bytes", (1 << 53) + 1), "manifest-member", "a number above 2^53"),
        ("order", put("order", "sorted"), "manifest-member", "an order that does not exist"),
        ("fingerprint-form", put("fingerprint", "F" * 64), "manifest-member", "upper-case digits in the fingerprint"),
        (
            "fingerprint",
            lambda m: m.update(fingerprint=m["fingerprint"][:8] + "0" * 56),
            "fingerprint",
            "only the first 8 digits are right",
        ),
        ("table-parent", put("table", "file", "../shards.tsv"), "table-name", "table outside the folder"),
        ("table-bytes", put("table", "bytes", 1), "table-digest", "another size of the table"),
        ("table-sha", put("table", "sha256", "0" * 64), "table-digest", "another digest of the table"),
        ("samples", put("samples", 5), "table-sum", "samples do not add up"),
        ("frames", put("frames", 5), "table-sum", "frames do not add up"),
        ("bytes", put("bytes", 5), "table-sum", "bytes do not add up"),
        ("tar-bytes", put("tar_bytes", 5), "table-sum", "tar bytes do not add up"),
        ("shards", put("shards", 3), "table-sum", "another number of rows"),
        ("payload", put("payload_bytes", 540), "payload", "wrong payload"),
        ("fields-count", put("fields", 3, "samples", 2), "fields", "a field's number of samples is wrong"),
        ("fields-missing", lambda m: m["fields"].pop(), "fields", "a field is missing"),
        ("fields-name", put("fields", 3, "name", "tXt"), "manifest-member", "a field name against the rules"),
        ("fields-twice", lambda m: m["fields"].insert(0, m["fields"][0]), "manifest-member", "a field twice"),
        ("fields-order", lambda m: m["fields"].reverse(), "manifest-member", "fields not ascending"),
        ("class-number", put("classes", 0, 7), "manifest-member", "a class that is no string"),
        ("class-control", put("classes", 0, "c\ft"), "manifest-member", "a control character in a class"),
        ("kind-control", put("fields", 0, "kind", "im\nage"), "manifest-member", "a control character in a kind"),
        ("images-none", put("images", NO_IMAGES), "manifest-member", "images whose count is 0"),
        ("mirrors-many", put("mirrors", ["https://a.example"] * 17), "manifest-member", "17 mirrors"),
        ("mirrors-scheme", put("mirrors", ["ftp://a.example"]), "manifest-member", "a mirror of another scheme"),
        ("pack-text", put("pack", "options"), "manifest-member", "options that are no object"),
    ):
        dataset(out, "bad-manifest-" + name, rule, what, edit=edit)
    for name, change, what in (
        ("cut", lambda t: t[:-20], "cut off"),
        ("empty", lambda t: "", "no bytes"),
        ("array", lambda t: "[]\n", "an array"),
        ("more", lambda t: t + "{}", "text behind the object"),
        ("twice", lambda t: t.replace("{", '{"samples": 4, ', 1), "a member twice"),
        ("latin1", lambda t: t.replace("cat", "c\xe4t").encode("latin-1"), "not UTF-8"),
        ("zero-byte", lambda t: t.replace('"samples": 4', '"samples": 4\0', 1), "a zero byte between values"),
        ("string-zero", lambda t: t.replace("cat", "c\\u0000t"), "U+0000 in a string"),
        ("surrogate", lambda t: t.replace("cat", "c\\ud800t"), "an unpaired surrogate"),
        ("deep", lambda t: "[" * 4000 + "]" * 4000, "4000 brackets"),
    ):
        dataset(out, "bad-json-" + name, "manifest-json", what, text_edit=change)


def bad_tables(out):
    for name, table, rule, what in (
        ("parent", lambda t, f: t.replace(b"tiny-", b"../tiny-"), "table-path", "paths that leave the folder"),
        ("absolute", lambda t, f: t.replace(b"tiny-", b"/tiny-"), "table-path", "absolute paths"),
        (
            "path-twice",
            lambda t, f: t.replace(f.rows[1][0].encode(), f.rows[0][0].encode()),
            "table-path",
            "two rows with the same path",
        ),
        ("space", lambda t, f: t.replace(b"tiny-", b"ti ny-"), "table-path", "a path with a space"),
        ("head", lambda t, f: t.replace(b"#path", b"path"), "table-line", "no header line"),
        ("crlf", lambda t, f: t.replace(b"\n", b"\r\n"), "table-line", "carriage returns"),
        ("no-lf", lambda t, f: t[:-1], "table-line", "last line feed missing"),
        ("column", lambda t, f: t.replace(b"\t3\t", b"\t3\t3\t"), "table-line", "a column too many"),
        ("blank", lambda t, f: t + b"\n", "table-line", "an empty line"),
        ("zero", lambda t, f: t.replace(b"\t3\t", b"\t03\t"), "table-line", "a leading zero"),
        ("sign", lambda t, f: t.replace(b"\t3\t", b"\t+3\t"), "table-line", "a sign"),
        ("no-samples", lambda t, f: t.replace(b"\t3\t", b"\t0\t"), "table-line table-sum", "a shard without samples"),
        ("overflow", lambda t, f: t.replace(b"\t3\t", b"\t18446744073709551615\t"), "table-line", "2^64 - 1 samples"),
        (
            "offset",
            lambda t, f: t.replace(b"\t%d\t" % f.rows[1][5], b"\t%d\t" % f.rows[1][3]),
            "table-line",
            "index at the end of the file",
        ),
        (
            "digest",
            lambda t, f: t.replace(f.rows[0][6].encode(), b"g" * 64),
            "table-line",
            "a digest that is not hexadecimal",
        ),
    ):
        dataset(out, "bad-table-" + name, rule, what, table=table)


def bad_shards(out):
    def resize(files):
        name = sorted(files)[1]
        files[name] = files[name][:-1]

    def spoil(at):
        def change(files):
            name = sorted(files)[1]
            files[name] = flip(files[name], at)

        return change

    dataset(
        out, "bad-shard-missing", "shard-missing", "the second shard is not there", files=lambda f: f.pop(sorted(f)[1])
    )
    dataset(out, "bad-shard-cut", "shard-size", "a shard is one byte short", files=resize)
    dataset(out, "bad-shard-tail", "tail-digest", "a flipped bit in a shard's tail", files=spoil(-60))
    dataset(out, "bad-shard-data", "digest", "a flipped bit in a shard's data", files=spoil(30))

    def swap(files):
        name, other = sorted(files)[1], Build([[(b"a", [(b"txt", b"jello", b"=")])]]).frames[0]
        files[name] = other + files[name][len(other) :]

    what = "a data frame that is sound by itself in the place of another"
    dataset(out, "bad-shard-frame", "digest", what, files=swap)

    def tail(build):
        return hashlib.sha256(build.bytes()[sum(map(len, build.frames)) :])

    def rename(m):
        m["fingerprint"] = hashlib.sha256(tail(Build(TWO)).digest() + bytes(32)).hexdigest()
        m["table"]["file"] = "shards-%s.tsv" % m["fingerprint"][:8]

    dataset(
        out,
        "bad-shard-digest",
        "tail-digest",
        "table has another digest of a shard",
        edit=rename,
        table=lambda t, f: t.replace(tail(Build(ONE)).hexdigest().encode(), b"0" * 64),
    )
    dataset(
        out,
        "bad-shard-counts",
        "shard-counts",
        "table has other numbers of samples, with the same sum",
        table=lambda t, f: t.replace(b"\t3\t2\t", b"\t2\t2\t").replace(b"\t1\t1\t", b"\t2\t1\t"),
    )
    dataset(
        out,
        "bad-key-in-two-shards",
        "key-twice",
        "a key in both shards",
        builds=[Build(ONE), Build(ONE)],
        edit=lambda m: (
            m["fields"].__setitem__(slice(None), [{"name": "txt", "kind": "text", "samples": 2}]),
            m.update(payload_bytes=10),
        ),
    )
