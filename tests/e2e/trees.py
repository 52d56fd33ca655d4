"""Trees of files for tests: odd names, and images of every kind of badness."""
import hashlib
import io
import os
import struct
import unicodedata
import zlib

from PIL import Image

# Names that are awkward for tar readers, shells, URLs, CSV, case-blind file systems, or for us.
ODD_NAMES = [
    b"plain.jpg", b"two.dots.jpg", b"dots...many.tar.gz", b"trailing.", b"noext", b".hidden", b".hidden.jpg", b"..jpg",
    b"...", b"img 1.0 (copy).jpg", b"img 1.0.jpg", b"img 1.0.txt", b"img 1.1.jpg", b" lead.jpg", b"trail .jpg",
    b"new\nline.jpg", b"tab\there.jpg", b"cr\rhere.jpg", b"esc\x1b[31m.jpg", b"del\x7f.jpg", b"bell\x07", b"\xff\xfe.jpg",
    b"caf\xc3\xa9.jpg", b"cafe\xcc\x81.jpg", b"latin1-\xe9.jpg", b"half-\xc3.jpg", b"over\xc0\xaf.jpg",
    "\u65e5\u672c\u8a9e.jpg".encode(), "\U0001f600.png".encode(), "\u202egpj.exe.jpg".encode(),
    b"Upper.jpg", b"upper.jpg", b"UPPER.jpg", b"a.jpg", b"a.JPG", b"a.jpeg", b"a.JpEg", b"a.txt", b"a.k/z.jpg",
    b"__init__.jpg", b"__meta__.json", b"____", b"__dir__/x.jpg", b"___three/__x__.jpg", b"_one.jpg", b"d/__x__/y.jpg",
    b"hash#tag.jpg", b"query?x=1.jpg", b"semi;colon.jpg", b"per%cent.jpg", b"%20.jpg", b"brace{000..009}.jpg", b"{a,b}.jpg",
    b"star*.jpg", b"[set].jpg", b"quote'.jpg", b'quote".jpg', b"back\\slash.jpg", b"back`tick.jpg", b"dollar$HOME.jpg",
    b"pipe|.jpg", b"amp&.jpg", b"lt<gt>.jpg", b"colon:x.jpg", b"at@x.jpg", b"bang!.jpg", b"tilde~.jpg", b"~", b"-dash.jpg",
    b"--help", b"-", b"plus+.jpg", b"comma,.jpg", b"equals=.jpg", b"2023-01-01T00:00:00.123.jpg", b"x.__key__", b"x.__url__",
    b"con.jpg", b"aux", b"a_b.jpg", b"a b.jpg", b"a-b.jpg", b"dir with space/sub.dir/file name.jpg", b"d.jpg/inner.png",
    b"cls.cls2", b"x.seg.png", b"x.png", b"many.upper.EXT.TXT", b"ext.with space", b"ext.\xff", b"ext.UPPER_lower-9",
    b"longext." + b"e" * 60, b"." * 20 + b"jpg", b"0", b"00", b"0.0", b"case/Sub/x.jpg", b"case/sub/X.jpg", b"case/SUB/x.jpg",
    b"empty.bin",
]  # fmt: skip
JUNK = [b"._plain.jpg", b".DS_Store", b"sub/.DS_Store", b"Thumbs.db", b"THUMBS.DB", b"desktop.ini", b"Desktop.ini",
        b"__MACOSX/x.jpg", b"sub/__MACOSX/deep/y.jpg", b"sub/._x"]  # fmt: skip


def odd_tree(case, name="odd"):
    """A tree of odd names and junk; returns its folder. Contents differ, so that a mix-up is seen."""
    names = list(ODD_NAMES)
    names.append(b"/".join([b"p" * 60] * 5)[:296] + b".jpg")  # 300 bytes in one path
    names.append(b"n" * 240 + b".jpg")
    names.append(b"/".join([b"deep%d" % i for i in range(100)]) + b"/x.jpg")
    names.append("e\u0301".encode() * 60 + b".jpg")
    names += [unicodedata.normalize(form, "\u00c5ngstr\u00f6m").encode() + b".jpg" for form in ("NFC", "NFD")]
    for path in names + JUNK:
        data = b"" if path == b"empty.bin" else b"content of " + path + b"\0" * (len(path) % 7)
        case.write(os.fsencode(name) + b"/" + path, data)
    return case.dir / name, names


def texture(seed, count):
    """That many bytes of noise, always the same."""
    return b"".join(hashlib.sha256(b"%d %d" % (seed, i)).digest() for i in range(count // 32 + 1))[:count]


def jpeg(size=(40, 30), mode="RGB", seed=1, quality=85):
    """A small JPEG with some texture."""
    count = size[0] * size[1] * len(Image.new(mode, (1, 1)).getbands())
    out = io.BytesIO()
    Image.frombytes(mode, size, texture(seed, count)).save(out, "JPEG", quality=quality)
    return out.getvalue()


def png(size=(40, 30), mode="RGB", seed=1, noise=False):
    count = size[0] * size[1] * len(Image.new(mode, (1, 1)).getbands())
    out = io.BytesIO()
    pixels = texture(seed, count) if noise else bytes((i * seed) & 255 for i in range(count))
    Image.frombytes(mode, size, pixels).save(out, "PNG")
    return out.getvalue()


def jpeg_bomb(width=60000, height=60000):
    """A JPEG whose header promises that many pixels; the data is that of a small one."""
    data = bytearray(jpeg())
    at = data.index(b"\xff\xc0") + 5
    struct.pack_into(">HH", data, at, height, width)
    return bytes(data)


def png_bomb(width=60000, height=60000):
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    body = zlib.compress(b"\0" * 4096)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
