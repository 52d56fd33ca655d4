#!/usr/bin/python3
"""Compares rendered pixels bit for bit with Pillow.

compare.py [FOLDER [COUNT]]: at most COUNT (100) images of FOLDER, evenly picked, or painted ones where the environment
names the program MAKE_PHOTOS; and always some made here in odd formats. RENDER_ONE names the program of render_one.c.
Prints what differs and "N passed, N failed".
"""
import io
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

from PIL import Image, ImageChops, ImageFile, ImageOps, ImageStat

ImageFile.MAXBLOCK = 1 << 24  # Pillow's encoder wants a progressive file in one piece
RANDOM, CENTRE, NONE = 0, 1, 2
FILTERS = [Image.BILINEAR, Image.BICUBIC, Image.NEAREST]
U8, F16, F32 = 0, 1, 2
NHWC, NCHW = 0, 1
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Renderer:
    def __init__(self):
        self.process = subprocess.Popen([os.environ["RENDER_ONE"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, path, crop=RANDOM, resize=256, size=(224, 224), filter=0, channels=3, type=U8, order=NHWC,
                 normalize=0, hflip=0, vflip=0, exif=0, fast=0, index=0):
        """(bytes, crop box, hflip, vflip)"""
        request = (crop, resize, *size, filter, channels, type, order, normalize, hflip, vflip, exif, fast, index, path)
        self.process.stdin.write((" ".join(map(str, request)) + "\n").encode())
        self.process.stdin.flush()
        head = self.process.stdout.readline().decode()
        if not head.startswith("ok "):
            raise RuntimeError(head.strip() or "render_one ended")
        length, x, y, w, h, hf, vf = map(int, head.split()[1:])
        return self.process.stdout.read(length), (x, y, x + w, y + h), hf, vf


def to_mode(image, channels, filter):
    """What the loader makes of any image: 16 bits are cut to the upper 8, a palette's indices are kept for masks."""
    if image.mode == "P" and channels == 1 and FILTERS[filter] == Image.NEAREST:
        return image
    if image.mode.startswith("I"):
        pixels = image.convert("I").tobytes()
        values = struct.unpack(f"<{len(pixels) // 4}i", pixels)
        image = Image.frombytes("L", image.size, bytes(v >> 8 for v in values))
    if channels == 1 and image.mode != "L":
        return image.convert("RGB").convert("L")
    return image.convert("RGB" if channels == 3 else "L")


def shorter_side(image, size):
    w, h = image.size
    short, long = min(w, h), max(w, h)
    new = int(size * long / short)
    return (size, new) if w <= h else (new, size)


def centre_crop(image, size):
    """torchvision's: zeros around an image that is smaller, then halves rounded to even."""
    w, h = image.size
    pad_w, pad_h = max(size[0] - w, 0), max(size[1] - h, 0)
    canvas = Image.new(image.mode, (w + pad_w, h + pad_h))
    canvas.paste(image, (pad_w // 2, pad_h // 2))
    left, top = round((canvas.width - size[0]) / 2.0), round((canvas.height - size[1]) / 2.0)
    return canvas.crop((left, top, left + size[0], top + size[1]))


def expected(path, box, hf, vf, crop=RANDOM, resize=256, size=(224, 224), filter=0, channels=3, exif=0, **_):
    image = Image.open(path)
    if exif:
        image = ImageOps.exif_transpose(image)
    image = to_mode(image, channels, filter)
    how = FILTERS[filter]
    if crop == CENTRE:
        image = centre_crop(image.resize(shorter_side(image, resize), how), size)
    else:
        image = image.crop(box).resize(size, how)
    if hf:
        image = ImageOps.mirror(image)
    return ImageOps.flip(image) if vf else image


def f32(v):
    return struct.unpack("<f", struct.pack("<f", v))[0]


def as_floats(data, size, channels, type, order, normalize):
    """The formula of ToTensor and Normalize on bytes; each step rounded to float32."""
    code = "<e" if type == F16 else "<f"
    tables = []
    for c in range(channels):
        values = [f32(v / 255) for v in range(256)]
        if normalize:
            values = [f32(f32(v - f32(MEAN[c])) / f32(STD[c])) for v in values]
        tables.append([struct.pack(code, v) for v in values])
    if order == NCHW:
        return b"".join(tables[c][v] for c in range(channels) for v in data[c::channels])
    return b"".join(tables[i % channels][v] for i, v in enumerate(data))


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, ok, text):
        self.passed += bool(ok)
        self.failed += not ok
        if not ok:
            print("FAILED:", text)


def compare(render, tally, path, **options):
    try:
        data, box, hf, vf = render(path, **options)
    except RuntimeError as why:
        tally.check(False, f"{path} {options}: {why}")
        return
    want = expected(path, box, hf, vf, **options).tobytes()
    channels, size = options.get("channels", 3), options.get("size", (224, 224))
    type, order = options.get("type", U8), options.get("order", NHWC)
    if type != U8:
        want = as_floats(want, size, channels, type, order, options.get("normalize", 0))
    elif order == NCHW:
        want = b"".join(want[c::channels] for c in range(channels))
    wrong = sum(a != b for a, b in zip(data, want)) if data != want else 0
    tally.check(data == want, f"{path} {options} crop {box}: {wrong} of {len(want)} bytes differ")


def fast_quality(render, tally, path, filter, denom):
    """Peak signal to noise of `fast` against exact, in dB, at the smallest reduction that is decoded at 1/denom."""
    with Image.open(path) as image:
        size = (image.width // (2 * denom), image.height // (2 * denom))
    options = dict(crop=NONE, size=size, filter=filter)
    exact = Image.frombytes("RGB", size, render(path, **options)[0])
    fast = Image.frombytes("RGB", size, render(path, fast=1, **options)[0])
    tally.check(exact.tobytes() != fast.tobytes(), f"{path}: fast did nothing at 1/{denom}")
    rms = ImageStat.Stat(ImageChops.difference(exact, fast)).rms
    mean = sum(v * v for v in rms) / 3
    return 10 * math.log10(255 * 255 / mean) if mean else 99.0


def variants(number):
    """Transforms of the image of this number: each kind comes up in any dozen of them."""
    filter = number % 2
    yield dict(index=number, filter=filter, hflip=0.5, vflip=0.1)
    yield dict(crop=CENTRE, resize=(256, 232, 240, 64)[number % 4], filter=(number // 2) % 2, hflip=0.5)
    if number % 5 == 0:
        yield dict(crop=NONE, size=(96 + number % 33, 64 + number % 29), filter=filter)
    if number % 7 == 0:
        yield dict(index=number, filter=2, channels=1, hflip=0.5)
        yield dict(crop=CENTRE, filter=2, size=(100, 200))
    if number % 25 == 0:
        yield dict(index=number, type=F32, order=NCHW, normalize=1, hflip=0.5)
        yield dict(index=number, type=F16, order=NHWC, normalize=1)
        yield dict(index=number, type=F16, order=NCHW)
        yield dict(index=number, order=NCHW, channels=3)


def source_images(folder, count):
    names = sorted(p for p in pathlib.Path(folder).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    step = max(1, len(names) // count)
    return names[::step][:count]


def test_picture(size):
    """Detail and sharp coloured edges, where chroma upsampling shows."""
    w, h = size
    waves = Image.effect_mandelbrot(size, (-1.5, -1.0, 0.7, 1.0), 90)
    noise = Image.effect_noise(size, 70)
    ramp = Image.linear_gradient("L").resize(size)
    picture = Image.merge("RGB", (waves, noise, ramp))
    for i in range(0, w, 37):
        picture.paste([(255, 0, 0), (0, 0, 255), (0, 255, 0)][i % 3], (i, i % h, i + 3, min(h, i % h + 40)))
    return picture


def odd_files(folder, size):
    """Writes images in every format the decoder takes, from one picture; yields their paths."""
    rgb = test_picture(size)
    gray, alpha = rgb.convert("L"), rgb.getchannel(1)
    cmyk = Image.merge("CMYK", (*rgb.split(), gray))
    tag = "%dx%d" % size

    def save(image, name, **options):
        path = pathlib.Path(folder, f"{tag}-{name}")
        image.save(path, **options)
        return path

    for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
        for progressive in (False, True):
            name = f"{subsampling.replace(':', '')}{'p' if progressive else ''}.jpg"
            yield save(rgb, name, subsampling=subsampling, progressive=progressive, quality=80)
    yield save(gray, "gray.jpg")
    yield save(gray, "grayp.jpg", progressive=True)
    yield save(cmyk, "cmyk.jpg", quality=90)
    yield save(cmyk, "cmykp.jpg", progressive=True)
    yield save(rgb, "rgb.png")
    yield save(gray, "gray.png")
    yield save(gray.convert("1"), "bit.png")
    yield save(rgb.convert("P", palette=Image.ADAPTIVE, colors=200), "palette.png")
    yield save(rgb.convert("P", palette=Image.ADAPTIVE, colors=3), "palette2.png", bits=2)
    yield save(rgb.convert("P", palette=Image.ADAPTIVE, colors=50), "palettet.png", transparency=7)
    yield save(rgb.convert("P", palette=Image.ADAPTIVE, colors=2), "palette1.png", bits=1, transparency=b"\0")
    yield save(rgb.convert("P", palette=Image.ADAPTIVE, colors=16), "palette4.png", bits=4)
    rgba, la = rgb.copy(), gray.copy()
    rgba.putalpha(alpha)
    la.putalpha(alpha)
    yield save(rgba, "rgba.png")
    yield save(la, "la.png")
    wide = Image.frombytes("I;16", size, b"".join(struct.pack("<H", v * 257 ^ 0x55) for v in gray.tobytes()))
    yield save(wide, "gray16.png")
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        yield save(rgb, f"turn{orientation}.jpg", exif=exif.tobytes(), quality=85)


def check_odd(render, tally, folder):
    """Odd formats and sizes, each with crops at many places, whole, and through every option."""
    for size in ((333, 250), (64, 90), (17, 13), (2, 3), (1, 1)):
        for path in odd_files(folder, size):
            for index in range(6):
                small = (24 + 9 * index, 40 - 5 * index)
                compare(render, tally, path, index=index, size=small, filter=index % 3, hflip=0.5, vflip=0.5,
                        channels=1 if index % 4 == 3 else 3, exif=index % 2)
            for channels in (1, 3):
                compare(render, tally, path, crop=NONE, size=size, channels=channels)
            for crop in (RANDOM, CENTRE, NONE):  # as masks are
                compare(render, tally, path, crop=crop, size=(41, 30), filter=2, channels=1, hflip=0.5, exif=1, index=crop)
            compare(render, tally, path, crop=CENTRE, resize=20, size=(37, 52), filter=2, channels=1, type=F32)
            for resize in (20, 50, size[0], 90):
                compare(render, tally, path, crop=CENTRE, resize=resize, size=(37, 52), exif=1, hflip=0.5, vflip=0.5,
                        filter=resize % 3, index=resize)


def check_restricted(render, tally, folder):
    """A progressive JPEG whose last scans are missing, but which ends properly: libjpeg smooths it."""
    data = io.BytesIO()
    test_picture((150, 120)).save(data, "JPEG", progressive=True, quality=60)
    scans = [i for i in range(len(data.getvalue()) - 1) if data.getvalue()[i:i + 2] == b"\xff\xda"]
    for keep in (1, 2, 4):
        cut = data.getvalue()[:scans[keep]]
        while cut.rfind(b"\xff\xc4") > cut.rfind(b"\xff\xda"):  # tables of the next scan
            cut = cut[:cut.rfind(b"\xff\xc4")]
        path = pathlib.Path(folder, f"scans{keep}.jpg")
        path.write_bytes(cut + b"\xff\xd9")
        for index in range(8):
            compare(render, tally, path, index=index, size=(60, 50))


def check_fast(render, tally, images):
    for denom in (2, 4, 8):
        quality = [fast_quality(render, tally, path, i % 2, denom) for i, path in enumerate(images)]
        if quality:
            mean = sum(quality) / len(quality)
            print(f"fast at 1/{denom}: {mean:.1f} dB on average, {min(quality):.1f} at least")
            tally.check(mean >= 45, f"fast at 1/{denom}: less than 45 dB")


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    render, tally = Renderer(), Tally()
    with tempfile.TemporaryDirectory() as folder:
        source = sys.argv[1] if len(sys.argv) > 1 else folder
        if len(sys.argv) < 2 and "MAKE_PHOTOS" in os.environ:
            subprocess.run([os.environ["MAKE_PHOTOS"], folder, "5"], check=True, stdout=subprocess.DEVNULL)
        images = source_images(source, count)
        for number, path in enumerate(images):
            for options in variants(number):
                compare(render, tally, path, **options)
        check_odd(render, tally, folder)
        check_restricted(render, tally, folder)
        check_fast(render, tally, [p for p in images if p.suffix.lower() != ".png"][:40])
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
