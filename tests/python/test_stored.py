"""Datasets packed with --jpeg fast give what those of the files give: pixels, metadata, bytes, errors, limits."""
import io
import pathlib
import pickle
import re
import shutil
import threading

import numpy as np
import pytest
from conftest import paint

import shardpack

PIL = pytest.importorskip("PIL")
import PIL.Image  # noqa: E402
import PIL.ImageOps  # noqa: E402

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "format-spec/jpeg-vectors"


def picture(width, height, mode="RGB"):
    y, x = np.mgrid[:height, :width]
    noise = np.random.default_rng(width * 1000 + height).integers(0, 25, (height, width))
    bands = [(x * (3 + band) + y * 5 + x * y // 32 + noise) % 256 for band in range(len(mode) if mode != "L" else 1)]
    return PIL.Image.fromarray(np.stack(bands, 2).astype(np.uint8).squeeze(2 if mode == "L" else ()), mode)


def jpeg(image, **options):
    out = io.BytesIO()
    image.save(out, "JPEG", **{"quality": 90, **options})
    return out.getvalue()


def turned(orientation):
    exif = PIL.Image.Exif()
    exif[0x0112], exif[0x010E] = orientation, "a picture"
    return exif.tobytes()


def filled(file):
    """The same with a fill byte before a marker, as T.81 allows: not to be made anew byte for byte."""
    at = file.index(b"\xff\xda")
    return file[:at] + b"\xff" + file[at:]


def odd_files():
    files = {f"size-{w}x{h}": jpeg(picture(w, h)) for w, h in ((1, 1), (7, 5), (16, 16), (17, 33), (300, 9), (130, 90))}
    files |= {f"sampling-{s}": jpeg(picture(67, 45), subsampling=s) for s in (0, 1, 2)}
    files |= {f"turned-{o}": jpeg(picture(61, 40), exif=turned(o)) for o in range(1, 9)}
    files |= {f"progressive-{m}": jpeg(picture(95, 64, m), progressive=True) for m in ("RGB", "L")}
    files |= {f"gray-{w}": jpeg(picture(w, 31, "L")) for w in (8, 45)}
    files["cmyk"] = jpeg(picture(40, 40, "CMYK"))
    files["metadata"] = jpeg(picture(80, 60), icc_profile=b"profile" * 20000, dpi=(72, 144), comment=b"a comment")
    files["gray-turned"] = jpeg(picture(50, 34, "L"), exif=turned(6))
    files["coarse"] = jpeg(picture(120, 80), quality=5)
    files["fill"] = filled(jpeg(picture(100, 70)))
    files["fill-turned"] = filled(jpeg(picture(100, 70), exif=turned(5), comment=b"odd"))
    files["tail"] = jpeg(picture(64, 64)) + b"bytes behind the end"
    out = io.BytesIO()
    picture(90, 70).save(out, "MPO", save_all=True, append_images=[picture(45, 35)])
    files["two"] = out.getvalue()
    out = io.BytesIO()
    picture(33, 20).save(out, "PNG")
    files["png"] = out.getvalue()
    files |= {"vector-" + path.stem: path.read_bytes() for path in VECTORS.glob("*.jpg")}
    return files


def bad_files():
    whole = jpeg(picture(200, 150))
    return {"short": whole[: len(whole) // 2], "text": b"no image at all", "empty": b""}


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """The same files as they are ("keep"), as coefficients ("fast"), and with those that cannot be made anew ("pixels")."""
    folder = tmp_path_factory.mktemp("odd")
    source = paint(folder / "source", 3)
    for number, (name, file) in enumerate({**odd_files(), **bad_files()}.items()):
        path = source / f"class{number % 3}" / f"{name}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(file)
    options = {"on_bad": "keep", "frame_samples": 8}
    results = {"keep": shardpack.pack(source, folder / "keep", **options),
               "fast": shardpack.pack(source, folder / "fast", jpeg="fast", **options),
               "pixels": shardpack.pack(source, folder / "pixels", jpeg="fast", allow_unrestorable=True, **options)}
    assert results["keep"].samples > 60 and results["fast"].jpeg_fast > 50 and results["pixels"].jpeg_pixels >= 2
    shutil.rmtree(source)
    return {name: str(folder / name) for name in results}


def is_other_file(name, key):
    """Whether the dataset gives another file with the same pixels."""
    return name == "pixels" and "/fill" in key


def seen_of(image):
    """All that a user sees of an image, whatever it is."""
    if isinstance(image, PIL.Image.Image):
        return (type(image), image.mode, image.size, image.tobytes(), image.info, dict(image.getexif()),
                PIL.ImageOps.exif_transpose(image).tobytes())
    if hasattr(image, "numpy"):
        image = image.numpy()  # DataLoader makes tensors of arrays
    return (image.shape, image.dtype, image.tobytes()) if isinstance(image, np.ndarray) else image


def outcome(call):
    """What a call gives, or how it fails. Shards have other names in each dataset, and Pillow tells addresses."""
    try:
        return seen_of(call())
    except Exception as problem:
        text = re.sub("0x[0-9a-f]+", "0x", str(problem).rpartition(".tar.zst: ")[2])
        return type(problem), text, getattr(problem, "sample", None)


@pytest.mark.parametrize("name", ["fast", "pixels"])
@pytest.mark.parametrize("decode", ["array", "pil", "bytes"])
def test_random_access(packed, name, decode):
    keep, fast = (shardpack.Dataset(packed[n], decode=decode) for n in ("keep", name))
    keys = [sample.key for sample in shardpack.Dataset(packed["keep"])]
    assert len(fast) == len(keys)
    failed = 0
    for key in keys:
        want, have = outcome(lambda: keep[key][0]), outcome(lambda: fast[key][0])
        failed += isinstance(want, tuple) and isinstance(want[0], type) and issubclass(want[0], Exception)
        assert have == want or (decode == "bytes" and is_other_file(name, key)), key
        assert fast.sample(key).label == keep.sample(key).label
    assert failed == (0 if decode == "bytes" else 3)


@pytest.mark.parametrize("name", ["fast", "pixels"])
def test_samples(packed, name):
    for want, have in zip(shardpack.Dataset(packed["keep"]), shardpack.Dataset(packed[name])):
        assert (have.key, have.index, have.label, have.path()) == (want.key, want.index, want.label, want.path())
        for decode in ("pil", "array"):
            assert outcome(lambda: have.image(decode)) == outcome(lambda: want.image(decode))
        again = pickle.loads(pickle.dumps(have))
        if not is_other_file(name, have.key):
            assert repr(have) == repr(want) == repr(again) and have.image_bytes == want.image_bytes
            assert have.fields == want.fields == again.fields == dict(have.fields) and "jpg" in have.fields
            assert have.image("bytes") == have.fields.get("jpg") == want.fields["jpg"] and len(have.fields) == 2
            assert list(have.fields) == list(want.fields) and have.fields | {"a": b"b"} == want.fields | {"a": b"b"}
            assert repr(have.fields) == repr(want.fields) and have.fields.copy() == want.fields.copy()
        assert have.image_bytes is have.image_bytes
        assert outcome(lambda: again.image("array")) == outcome(lambda: have.image("array"))


@pytest.mark.parametrize("name", ["fast", "pixels"])
def test_gray(packed, name):
    """decode_array on the files, of any number of channels."""
    for want, have in zip(shardpack.Dataset(packed["keep"]), shardpack.Dataset(packed[name])):
        for channels in (1, 3):
            assert (outcome(lambda: shardpack.decode_array(have.image_bytes, channels))
                    == outcome(lambda: shardpack.decode_array(want.image_bytes, channels)))


def test_transforms_see_files(packed):
    """A transform that is given the sample, too."""
    def look(image, sample):
        return image.shape, sample.fields["jpg"], sample.image("pil").tobytes()

    keep, fast = (shardpack.Dataset(packed[name], decode="array", transform=look, with_sample=True)
                  for name in ("keep", "fast"))
    for i in range(0, len(keep), 5):
        assert outcome(lambda: fast[i]) == outcome(lambda: keep[i])


def test_pillows_limit(packed, monkeypatch):
    """Its own, which programs set."""
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 2000)
    told = []
    for name in ("keep", "fast"):
        with pytest.warns(PIL.Image.DecompressionBombWarning):
            told.append([outcome(lambda: sample.image("pil")) for sample in shardpack.Dataset(packed[name])])
    assert told[0] == told[1]
    assert sum(one[0] is PIL.Image.DecompressionBombError for one in told[0]) > 20


def test_many_threads(packed):
    keep, fast = (shardpack.Dataset(packed[name], decode="array") for name in ("keep", "fast"))
    want = [outcome(lambda: keep[i][0]) for i in range(len(keep))]
    bad = []

    def read(start):
        for i in range(start, start + len(want)):
            if outcome(lambda: fast[i % len(want)][0]) != want[i % len(want)]:
                bad.append(i)

    threads = [threading.Thread(target=read, args=(start,)) for start in range(0, 40, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bad == []


def test_no_file_is_made(good, monkeypatch):
    """Where pixels are asked for."""
    def refuse(data):
        raise AssertionError("a file is made")

    monkeypatch.setattr(shardpack.samples._core, "restore", refuse)
    ds = shardpack.Dataset(good["pixels"])
    stored = next(i for i, sample in enumerate(ds) if isinstance(sample._have["jpg"], shardpack.samples.Stored))
    for decode in ("array", "pil"):
        assert [shardpack.Dataset(good["pixels"], decode=decode)[i][1] for i in range(len(ds))]
        assert [len(rows[1]) for rows in shardpack.ShardDataset(good["pixels"], batch_size=7, decode=decode)]
    assert "jpg" in ds[stored].fields and repr(ds[stored]) and ds[stored].path() and ds[stored].label >= 0
    with pytest.raises(AssertionError, match="a file is made"):
        ds[stored].image_bytes


def test_damaged_forms(good):
    ds = shardpack.Dataset(good["fast"])
    sample = next(sample for sample in ds if isinstance(sample._have["jpg"], shardpack.samples.Stored))
    data, size = sample._have["jpg"].data, sample._have["jpg"].size

    def damaged(data, size):
        return shardpack.Sample("a/b", 3, {"jpg": shardpack.samples.Stored(data, size)}, "x.tar.zst")

    for look in (lambda one: one.image("array"), lambda one: one.image("pil"), lambda one: one.fields["jpg"],
                 lambda one: one.image("bytes"), lambda one: dict(one.fields)):
        for _ in range(2):
            with pytest.raises(shardpack.FormatError, match='^x.tar.zst: sample "a/b": .*bad jpeg_coefficients') as told:
                look(damaged(data[:-5], size))
            assert (told.value.sample, told.value.shard) == ("a/b", "x.tar.zst")
    assert damaged(data, size).fields == {"jpg": sample.fields["jpg"]}
    with pytest.raises(shardpack.FormatError, match=f'field "jpg": the file made anew has {size} bytes, the index says'):
        damaged(data, size + 1).fields["jpg"]


def test_decoder(good):
    """The extension's own, misused."""
    file = jpeg(picture(20, 10))
    decoder = shardpack.samples._core.Decoder()
    pixels = np.empty((10, 20, 3), np.uint8)
    assert decoder.open(file, 3, 0) == (20, 10, None)
    decoder.read(pixels)
    assert np.array_equal(pixels, shardpack.decode_array(file))
    with pytest.raises(RuntimeError, match="no image is open"):
        decoder.read(pixels)
    decoder.open(file, 3, 0)
    with pytest.raises(ValueError, match="199 bytes"):
        decoder.read(pixels.reshape(-1)[:199])
    with pytest.raises(shardpack.LimitError, match="199"):
        decoder.open(file, 3, 199)
    with pytest.raises(TypeError):
        shardpack.samples._core.Decoder(3)
    with pytest.raises(shardpack.FormatError, match="bad jpeg_coefficients"):
        shardpack.samples._core.restore(file)


# ---- ShardDataset ----

@pytest.fixture(scope="module")
def good(packed, tmp_path_factory):
    """The same without files that are no images."""
    folder = tmp_path_factory.mktemp("good")
    source = folder / "source"
    for number, (name, file) in enumerate(odd_files().items()):
        path = source / f"class{number % 3}" / f"{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file)
    for name, options in (("keep", {}), ("fast", {"jpeg": "fast"}),
                          ("pixels", {"jpeg": "fast", "allow_unrestorable": True})):
        shardpack.pack(source, folder / name, frame_samples=8, **options)
    return {name: str(folder / name) for name in ("keep", "fast", "pixels")}


def batches(path, **options):
    torch = pytest.importorskip("torch")
    workers = options.pop("workers", 0)
    ds = shardpack.ShardDataset(path, **{"batch_size": 7, "shuffle": True, "seed": 5, **options})
    rows = []
    for batch in torch.utils.data.DataLoader(ds, batch_size=None, num_workers=workers):
        columns = [column.tolist() if hasattr(column, "tolist") else list(column) for column in batch]
        rows += [tuple(map(seen_of, row)) for row in zip(*columns)]
    return rows


@pytest.mark.parametrize("name", ["fast", "pixels"])
@pytest.mark.parametrize("options", [{"decode": "array"}, {}, {"workers": 2}, {"decode": "array", "echo": 2},
                                     {"fields": ["image", "label", "key"]}, {"image_field": "jpg", "decode": "array"}])
def test_batches(good, name, options):
    want = batches(good["keep"], **options)
    assert len(want) > 40 and batches(good[name], **options) == want


@pytest.mark.parametrize("options", [{"decode": "bytes"}, {"fields": ["key", "jpg", "cls", "label"]},
                                     {"fields": ["jpg"], "decode": "array", "transform": np.mean}])
def test_files_in_batches(good, options):
    assert batches(good["fast"], **options) == batches(good["keep"], **options)


def files_of(image, sample):
    return image.shape, sample.image_bytes, sample.key, len(sample.fields), repr(sample)


def test_samples_in_batches(good):
    for options in ({"transform": files_of, "with_sample": True, "collate_fn": list}, {"fields": ["sample", "key"]}):
        told = []
        for name in ("keep", "fast"):
            ds = shardpack.ShardDataset(good[name], batch_size=7, decode="array", **options)
            told.append([[row[0] if "transform" in options else (row.key, row.fields, row.image_bytes, row.valid)
                          for row in (batch if "transform" in options else batch.sample)] for batch in ds])
        assert told[0] == told[1] and len(told[0]) > 5


def test_bad_images_in_batches(packed):
    pytest.importorskip("torch")
    for decode in ("array", "pil"):
        told = []
        for name in ("keep", "fast", "pixels"):
            ds = shardpack.ShardDataset(packed[name], batch_size=1, decode=decode)
            told.append([outcome(lambda: next(run)[0][0]) for run in [iter(ds)] for _ in range(len(ds))])
        assert told[0] == told[1] == told[2]
        assert sum(isinstance(one[0], type) and issubclass(one[0], shardpack.FormatError) for one in told[0]) == 3
