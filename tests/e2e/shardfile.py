"""Taking shards and datasets apart, for tests that damage them. Written from format-spec/shard.md and dataset.md."""
import hashlib
import json
import pathlib
import struct


class Shard:
    """The parts of a shard file: data frames, index frame, seek table."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.data = self.path.read_bytes()
        entries, _, magic = struct.unpack("<IBI", self.data[-9:])
        assert magic == 0x8F92EAB1
        self.table = len(self.data) - (17 + 12 * entries)
        rows = [struct.unpack_from("<III", self.data, self.table + 8 + 12 * i) for i in range(entries)]
        self.frames = []  # (offset, compressed bytes, content bytes)
        offset = 0
        for size, content, _ in rows:
            self.frames.append((offset, size, content))
            offset += size
        self.index = self.frames.pop()[0]

    def flip(self, offset, bits=1):
        """Writes the file back with one byte changed."""
        data = bytearray(self.data)
        data[offset] ^= bits
        self.write(bytes(data))

    def write(self, data):
        # Shards are read-only files: a new one takes the name.
        self.path.unlink()
        self.path.write_bytes(data)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Dataset:
    """Manifest and table of a dataset, to be changed and written back in a consistent way."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.manifest = json.loads((self.folder / "manifest.json").read_text())
        self.rows = [
            line.split("\t") for line in (self.folder / self.manifest["table"]["file"]).read_text().splitlines()[1:]
        ]

    def seal(self):
        """Makes table and manifest vouch for the shard files as they are now: what a hostile publisher would do."""
        digests = b""
        for row in self.rows:
            data = (self.folder / row[0]).read_bytes()
            row[3], row[6] = str(len(data)), sha256(data[int(row[5]):])
            digests += bytes.fromhex(row[6])
        self.manifest["fingerprint"] = sha256(digests)
        self.manifest["bytes"] = sum(int(row[3]) for row in self.rows)
        self.write()

    def write(self):
        head = "#path\tsamples\tframes\tbytes\ttar_bytes\tindex_offset\ttail_sha256"
        text = "".join(line + "\n" for line in [head] + ["\t".join(row) for row in self.rows]).encode()
        name = "shards-%s.tsv" % self.manifest["fingerprint"][:8]
        for path in self.folder.glob("shards-*.tsv"):
            path.unlink()
        (self.folder / name).write_bytes(text)
        self.manifest["table"] = {"file": name, "bytes": len(text), "sha256": sha256(text)}
        self.write_manifest(json.dumps(self.manifest, indent=2) + "\n")

    def write_manifest(self, text):
        path = self.folder / "manifest.json"
        path.unlink()
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
