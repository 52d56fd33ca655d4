"""pin_memory, device= and gpu.normalize, without a GPU: tests/cudart_standin.c is a stand-in for the CUDA runtime that
copies late, and StandInCuda one for PyTorch's CUDA part on top of it."""
import ctypes
import gc
import os
import pathlib
import pickle
import sys

import numpy as np
import pytest

import shardpack
from conftest import contents, loader

torch = pytest.importorskip("torch")
from shardpack import gpu  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "gpu"))
from standin_cuda import StandInCuda  # noqa: E402

LIBRARY = pathlib.Path(os.environ.get("BUILD_DIR", "build/release")).resolve() / "tests/libcudart_standin.so"


@pytest.fixture
def lib(monkeypatch):
    if not LIBRARY.exists():
        pytest.fail(f"{LIBRARY} is not built")
    found = ctypes.CDLL(str(LIBRARY))
    found.standin_calls.restype = found.standin_violations.restype = ctypes.c_uint64
    found.standin_is_locked.argtypes = [ctypes.c_void_p]
    monkeypatch.setenv("SHARDPACK_CUDART", str(LIBRARY))
    found.standin_forgive()
    yield found
    found.standin_hold(0)
    gc.collect()
    assert found.standin_violations(None) == 0
    assert found.standin_live() == 0
    found.standin_delay_us(500)


@pytest.fixture
def cuda(lib, monkeypatch):
    made = StandInCuda(lib)
    monkeypatch.setattr(gpu, "cuda", lambda: made)
    yield made
    made.free()


def test_pinned_tensors(data, lib, cuda):
    plain = contents(loader(data, output="torch"))
    before = lib.standin_calls(b"HostRegister")
    with loader(data, output="torch", pin_memory=True) as pinned:
        have = []
        for images, labels in pinned:
            assert lib.standin_is_locked(images.data_ptr())
            assert isinstance(labels, torch.Tensor)
            have.append((images, labels))
            have[-1] = contents([have[-1]])[0]
        assert pinned.stats()["pinned"] is True
        assert contents([next(iter(pinned))]) != plain[:1]  # the next epoch
        del images, labels
    assert have == plain
    assert lib.standin_calls(b"HostRegister") == before + 1


def copy_to_device(lib, cuda, tensor, stream=0):
    """As tensor.to("cuda", non_blocking=True)."""
    out = cuda.empty(tuple(tensor.shape), str(tensor.dtype).rpartition(".")[2], 0)
    size = tensor.numel() * tensor.element_size()
    assert lib.cudaMemcpyAsync(ctypes.c_void_p(out.data_ptr()), ctypes.c_void_p(tensor.data_ptr()),
                               ctypes.c_size_t(size), 1, ctypes.c_void_p(stream)) == 0
    return out


def test_dropping_waits_for_the_current_stream(data, lib, cuda):
    lib.standin_delay_us(3000)
    with loader(data, output="torch", pin_memory=True, prefetch=1) as pinned:
        want, have = [], []
        for _ in range(2):
            for images, _ in pinned:
                want.append(images.clone())
                have.append(copy_to_device(lib, cuda, images))
                del images  # nothing views it any more
        assert pinned.stats()["copies"] == 0
    cuda.default.synchronize()
    assert all(torch.equal(a, b) for a, b in zip(want, have, strict=True))


@pytest.mark.parametrize("fields", [None, ["image", "label"], {"image": "image"}])
def test_release_after(data, lib, cuda, fields):
    lib.standin_delay_us(3000)
    other = cuda.new_stream(0)
    with loader(data, output="torch", pin_memory=True, prefetch=1, fields=fields) as pinned:
        want, have = [], []
        for batch in pinned:
            images = batch["image"] if isinstance(batch, dict) else batch[0]
            want.append(images.clone())
            have.append(copy_to_device(lib, cuda, images, other.cuda_stream))
            batch.release_after(other)
            del batch, images
    other.synchronize()
    assert all(torch.equal(a, b) for a, b in zip(want, have, strict=True))


def test_another_stream_without_release_after_is_caught(data, lib, cuda):
    """What the documentation warns of; it proves that the tests above can fail."""
    other = cuda.new_stream(0)
    before = lib.standin_violations(None)
    with loader(data, output="torch", pin_memory=True, prefetch=1) as pinned:
        batches = iter(pinned)
        lib.standin_hold(1)
        images, _ = next(batches)
        copy_to_device(lib, cuda, images, other.cuda_stream)
        del images
        cuda.current_stream = lambda index: cuda.new_stream(0)  # an idle one
        for images, _ in batches:
            del images
        lib.standin_hold(0)
        other.synchronize()
    assert lib.standin_violations(None) > before
    lib.standin_forgive()


def test_batches_of_pinned_memory(data, lib, cuda):
    with loader(data, output="torch", pin_memory=True, fields=["image", "label"]) as pinned:
        batch = next(iter(pinned))
        again = pickle.loads(pickle.dumps(batch))
        assert torch.equal(again.image, batch.image) and again.label.tolist() == batch.label.tolist()
        with pytest.raises(TypeError, match="stream='x': must be a torch.cuda.Stream"):
            batch.release_after("x")
        batch.release_after(0)
    with loader(data, output="torch", pin_memory=True) as pinned:
        batch = next(iter(pinned))
        assert isinstance(batch, tuple) and type(pickle.loads(pickle.dumps(batch))) is tuple
        del batch


@pytest.mark.parametrize("options", [{}, {"dtype": "uint8", "layout": "channels_last"}, {"prefetch": 1},
                                     {"fields": ["image", "label", "index", "valid", "key", "txt"]},
                                     {"fields": {"x": "image", "k": "key"}}, {"num_workers": 0}])
def test_device(data, lib, cuda, options):
    lib.standin_delay_us(2000)
    plain, have = [], []
    with loader(data, output="torch", **options) as host, \
            loader(data, output="torch", device="cuda:0", pin_memory=True, **options) as fed:
        for _ in range(2):
            plain += contents(batch.values() if isinstance(batch, dict) else batch for batch in host)
            kept = list(fed)
            cuda.default.synchronize()
            have += contents(batch.values() if isinstance(batch, dict) else batch for batch in kept)
        stats = fed.stats()
        assert stats["uploads"] > 0 and stats["copies"] == 0
        assert type(kept[0]) is type(next(iter(host)))
        if "layout" in options:
            assert kept[0][0].is_contiguous(memory_format=torch.channels_last)
    assert have == plain
    assert cuda.kept > 0


def test_state_is_that_of_the_batch_that_came(data, lib, cuda):
    with loader(data, output="torch") as host, loader(data, output="torch", device=0) as fed:
        for _ in range(2):
            for _ in zip(host, fed):
                assert fed.state_dict() == host.state_dict()
                assert (fed.epoch, fed.remaining) == (host.epoch, host.remaining)
        batches = iter(fed)
        next(batches), next(batches)
        state = fed.state_dict()
        rest = [batch[1].tolist() for batch in _synchronized(batches, cuda)]
        fed.load_state_dict(state)
        assert [batch[1].tolist() for batch in _synchronized(fed, cuda)] == rest
        for _ in fed:
            break
        fed.set_epoch(0)
        first = [batch[1].tolist() for batch in _synchronized(fed, cuda)]
        assert first == [batch[1].tolist() for batch in loader(data, output="torch")]


def _synchronized(batches, cuda):
    kept = list(batches)
    cuda.default.synchronize()
    return kept


def test_an_error_ahead_comes_in_its_turn(data, lib, cuda):
    with loader(data, output="torch", device="cuda:0", num_workers=1) as fed:
        batches = iter(fed)
        next(batches)
        lib.standin_fail(b"MemcpyAsync", 0, 1, 77)
        with pytest.raises(shardpack.DeviceError, match="column 0: copying .* CUDA error 77"):
            for _ in range(3):
                next(batches)


def test_what_cannot_be(data, lib, monkeypatch):
    for options, words in [
        ({"pin_memory": "often"}, "must be True, False or \"auto\""),
        ({"device": "tpu"}, "device='tpu': must be"),
        ({"device": "cuda:0"}, "finds no CUDA device"),
        ({"device": "cuda:0", "output": "numpy"}, "needs output=\"torch\""),
        ({"device": "cuda:0", "pin_memory": False}, "needs pin_memory True or"),
        ({"pin_memory_device": "cuda"}, "device= names the device"),
    ]:
        with pytest.raises(shardpack.ArgumentError, match=words):
            loader(data, **{"output": "torch", **options})
    with pytest.raises(TypeError, match="pin_memory=1"):
        loader(data, pin_memory=1)
    monkeypatch.setenv("SHARDPACK_CUDART", "/nowhere.so")
    with pytest.raises(shardpack.UnsupportedError, match="pin_memory: SHARDPACK_CUDART: /nowhere.so"):
        loader(data, pin_memory=True)
    with pytest.warns(shardpack.ShardpackWarning, match="pageable memory"):
        made = loader(data, pin_memory="auto")
    assert made.stats()["pinned"] is False
    for batch in made:
        batch.release_after(0)
    made.close()
    assert loader(data, device="cpu", output="torch").stats()["pinned"] is False


def test_numpy_pinned(data, lib):
    with loader(data, pin_memory=True) as pinned:
        assert contents(pinned) == contents(loader(data))


@pytest.mark.parametrize("name, tolerance", [("float32", 2e-6), ("float16", 2e-3), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "channels_last"])
def test_normalize(data, name, tolerance, layout):
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    want = next(iter(loader(data, output="torch", mean=mean, std=std)))[0]
    for given in ("NHWC", "channels_last"):
        raw = next(iter(loader(data, output="torch", dtype="uint8", layout=given)))[0]
        have = gpu.normalize(raw, mean, std, dtype=name, layout=layout)
        assert have.dtype == getattr(torch, name)
        if layout == "channels_last":
            assert have.is_contiguous(memory_format=torch.channels_last)
        if layout == "NHWC":
            have = have.permute(0, 3, 1, 2)
        assert have.shape == want.shape
        assert torch.allclose(have.float(), want, rtol=tolerance, atol=tolerance * 3)


def test_normalize_refuses():
    with pytest.raises(TypeError, match="must be a uint8 tensor of 4 dimensions, not torch.float32"):
        gpu.normalize(torch.zeros(1, 2, 2, 3))
    with pytest.raises(shardpack.ArgumentError, match="std=0: must not be 0"):
        gpu.normalize(torch.zeros(1, 2, 2, 3, dtype=torch.uint8), 0, 0)
    with pytest.raises(shardpack.ArgumentError, match="must have 1 or 3 channels"):
        gpu.normalize(torch.zeros(1, 2, 2, 2, dtype=torch.uint8))
