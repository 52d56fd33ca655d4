"""Memory: views of slots, copies, and when a slot goes back."""
import ctypes
import gc
import threading
import warnings

import numpy as np
import pytest
from conftest import contents, loader

import shardpack

BIG = {"batch_size": 32, "shuffle": True}  # 32 x 3 x 64 x 64 floats


def address(array):
    return array.__array_interface__["data"][0]


def test_images_are_views_and_labels_are_copies(data):
    with loader(data, **BIG) as batches:
        labels, places = [], set()
        for images, label in batches:
            assert not images.flags.owndata and images.flags.writeable
            labels.append(label)
            places.add(address(images))
            del images
        assert batches.stats()["copies"] == 0  # the labels held nothing
        assert len(places) <= 6


def test_small_columns_hold_no_slot(data):
    with loader(data, batch_size=4, image=shardpack.RandomResizedCrop(16), prefetch=1) as batches:
        kept = [images for images, _ in batches]  # 12 KiB each
        assert len(kept) == 40 and batches.stats()["copies"] == 0


def test_slots_return_with_the_last_view(data):
    with loader(data, **BIG, prefetch=1) as batches:
        for epoch in range(3):
            part = None
            for images, _ in batches:
                part = images[3:5, :, ::2]
                del images
            assert part is not None
        assert batches.stats()["copies"] == 0


def test_kept_batches_are_never_overwritten(data):
    with loader(data, **BIG, num_workers=0) as batches:
        want = contents(batches)
    with loader(data, **BIG, prefetch=2) as batches:
        with pytest.warns(shardpack.ShardpackWarning, match="private copies") as told:
            kept = list(batches)
            kept += list(batches)
        assert len(told) == 1 and batches.stats()["copies"] > 0
        assert contents(kept)[:5] == want
        del kept[::2]
        later = list(batches)
    assert contents(kept)[:2] == [want[1], want[3]] and len(later) == 5  # also after close


def test_on_hold_error(data):
    with loader(data, **BIG, prefetch=2, on_hold="error") as batches:
        kept, steps = [], iter(batches)
        with pytest.raises(shardpack.LimitError, match="batches are held"):
            while True:
                kept.append(next(steps))
        assert len(kept) == 2


def test_on_hold_error_goes_on(data):
    with loader(data, **BIG, prefetch=2, on_hold="error") as batches:
        steps = iter(batches)
        kept = [next(steps), next(steps)]
        for _ in range(2):
            with pytest.raises(ValueError, match="batches are held"):
                next(steps)
        kept.clear()
        assert len([0 for _ in steps]) == 3


def test_prefetch_of_one(data):
    with loader(data, **BIG, prefetch=1) as one, loader(data, **BIG, num_workers=0) as zero:
        assert contents(one) == contents(zero)


def test_views_outlive_the_loader(data):
    batches = loader(data, **BIG)
    images, _ = next(iter(batches))
    before = images.copy()
    batches.close()
    del batches
    gc.collect()
    assert np.array_equal(images, before)
    images += 1  # still ours


def test_views_dropped_in_other_threads(data):
    """Views end in many threads while the loader waits without the GIL."""
    with loader(data, **BIG, num_workers=0) as zero:
        want = contents(zero)
    queue, seen, done = [], [], threading.Event()

    def drop():
        while not done.is_set() or queue:
            if queue:
                queue.pop()

    threads = [threading.Thread(target=drop) for _ in range(4)]
    for thread in threads:
        thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shardpack.ShardpackWarning)
        with loader(data, **BIG, prefetch=2) as batches:
            for _ in range(6):
                batches.set_epoch(0)
                for batch in batches:
                    seen += contents([batch])
                    queue.append(batch)
                    del batch
    done.set()
    for thread in threads:
        thread.join()
    assert seen == want * 6


def fortran(column):
    """Asks for its memory in the order of Fortran."""
    flags = 0x40 | 0x18  # PyBUF_F_CONTIGUOUS
    view = (ctypes.c_ssize_t * 32)()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(column), view, flags)
    ctypes.pythonapi.PyBuffer_Release(view)


def test_dlpack(data):
    with loader(data, **BIG, output="dlpack") as batches, loader(data, **BIG) as plain:
        for (images, labels), (want, want_labels) in zip(batches, plain):
            assert images.shape == (32, 3, 64, 64) and images.dtype == "float32" and images.nbytes == want.nbytes
            assert images.__dlpack_device__() == (1, 0)
            assert np.array_equal(np.from_dlpack(images), want)
            assert np.array_equal(np.from_dlpack(labels), want_labels)
            capsule = images.__dlpack__()
            assert "dltensor" in repr(capsule)
            with pytest.raises(BufferError, match="stream"):
                images.__dlpack__(stream=1)
            with pytest.raises(BufferError, match=r"dl_device=\(2, 0\): must be \(1, 0\)"):
                images.__dlpack__(dl_device=(2, 0))
            images.__dlpack__(dl_device=(1, 0), max_version=(1, 0), copy=False)
            with pytest.raises(BufferError, match="C-contiguous"):
                fortran(images)
            fortran(labels)
        assert batches.stats()["copies"] == 0
        view = memoryview(images)
        assert view.shape == images.shape and view.format == "f"
        del view


def test_a_dlpack_view_keeps_the_slot(data):
    with loader(data, **BIG, output="dlpack", on_hold="error", prefetch=1) as batches:
        steps = iter(batches)
        kept = [np.from_dlpack(next(steps)[0]) for _ in range(2)]
        with pytest.raises(shardpack.LimitError):
            next(steps)
        del kept
        next(steps)


def test_torch(data):
    torch = pytest.importorskip("torch")
    with loader(data, **BIG) as plain:
        want = contents(plain)
    with loader(data, **BIG, output="torch", layout="channels_last") as batches:
        have = []
        for images, labels in batches:
            assert images.is_contiguous(memory_format=torch.channels_last) and images.shape[1] == 3
            assert labels.dtype == torch.int64
            have.append((images.contiguous().numpy().tobytes(), labels.numpy().tobytes()))
            images.sub_(0.5)
            del images
        assert have == want and batches.stats()["copies"] == 0
    with loader(data, **BIG, output="torch", on_hold="error", prefetch=1) as batches:
        steps = iter(batches)
        kept = [next(steps)[0][:2].view(-1) for _ in range(2)]
        with pytest.raises(shardpack.LimitError):
            next(steps)
        kept.clear()
        next(steps)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_tensors_are_what_arrays_are(data, dtype):
    torch = pytest.importorskip("torch")
    options = {"fields": ["image", "label", "index", "valid", "key"], "dtype": dtype, "batch_size": 24, "tail": "pad"}
    with loader(data, **options) as plain, loader(data, output="torch", **options) as batches:
        for want, have in zip(plain, batches, strict=True):
            assert have.valid.dtype == torch.bool and have.key == want.key
            for array, tensor in zip(want[:4], have[:4]):
                assert tensor.numpy().dtype == array.dtype and np.array_equal(tensor.numpy(), array)
                tensor.zero_()  # may be written to


def test_tensors_are_dropped_in_a_thread(data):
    pytest.importorskip("torch")
    with loader(data, **BIG, output="torch", on_hold="error", prefetch=1) as batches:
        for images, labels in batches:
            held = [images, labels]
            del images, labels
            dropping = threading.Thread(target=held.clear)
            dropping.start()
            dropping.join()


def test_torch_autograd_keeps_views(data):
    torch = pytest.importorskip("torch")
    model = torch.nn.Conv2d(3, 4, 3)
    with loader(data, **BIG, output="torch", prefetch=1) as batches:
        for images, _ in batches:
            loss = model(images).mean()
            del images
            loss.backward()
        assert batches.stats()["copies"] == 0
