"""Batches on a GPU: how `Loader` feeds one, and `normalize` for what went up as uint8."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Optional

from . import _args, _columns
from ._errors import ArgumentError

__all__ = ["normalize"]

_PIN_MODES = {False: 0, True: 1, "auto": 2}  # as spk_pin


class _Cuda:
    """All that is asked of PyTorch's CUDA part."""

    def __init__(self) -> None:
        import torch

        self.torch = torch

    def current_device(self) -> int:
        index: int = self.torch.cuda.current_device()
        return index

    def device(self, index: int) -> Any:
        """While it lasts, that device is the current one."""
        return self.torch.cuda.device(index)

    def current_stream(self, index: int) -> Any:
        return self.torch.cuda.current_stream(index)

    def new_stream(self, index: int) -> Any:
        return self.torch.cuda.Stream(index)

    def on(self, stream: Any) -> Any:
        """While it lasts, that stream and its device are the current ones."""
        return self.torch.cuda.stream(stream)

    def empty(self, shape: tuple[int, ...], dtype: str, index: int) -> Any:
        return self.torch.empty(shape, dtype=getattr(self.torch, dtype), device=f"cuda:{index}")

    def keep_for(self, tensor: Any, stream: Any) -> None:
        """Its memory is not used for another tensor before what is queued on the stream has passed."""
        tensor.record_stream(stream)


def cuda() -> Optional[_Cuda]:
    """None if this PyTorch cannot use a GPU."""
    made = _Cuda()
    return made if made.torch.cuda.is_available() else None


def cuda_index(device: Any) -> Optional[int]:
    """Number of a CUDA device; None for the CPU."""
    if device is None:
        return None
    if isinstance(device, int) and not isinstance(device, bool):
        return _args.integer("device", device, 0)
    text = str(device)
    kind, _, number = text.partition(":")
    if kind == "cpu":
        return None
    if kind != "cuda" or (number and not number.isdecimal()):
        raise ArgumentError(f'device={device!r}: must be "cuda", "cuda:N", the number N or "cpu"')
    if number:
        return int(number)
    found = cuda()
    return found.current_device() if found else 0


def pin_mode(pin_memory: Any, device: Optional[int], output: str) -> int:
    if pin_memory is None:
        pin_memory = device is not None
    if not isinstance(pin_memory, (bool, str)) or pin_memory not in _PIN_MODES:
        kind = ArgumentError if isinstance(pin_memory, str) else TypeError
        raise kind(f'pin_memory={pin_memory!r}: must be True, False or "auto"')
    if device is None:
        return _PIN_MODES[pin_memory]
    if output != "torch":
        raise ArgumentError(f'device="cuda:{device}": needs output="torch", not {output!r}')
    if pin_memory is False:
        raise ArgumentError(f'device="cuda:{device}": needs pin_memory True or "auto", not False')
    if cuda() is None:
        raise ArgumentError(f'device="cuda:{device}": this PyTorch finds no CUDA device')
    return _PIN_MODES[pin_memory]


def current_stream_of(index: int) -> Callable[[], int]:
    """What gives the handle of the device's current stream; called whenever the last view of a batch is gone."""
    found = cuda()
    assert found is not None
    current_stream = found.current_stream
    return lambda: int(current_stream(index).cuda_stream)


_END = object()


class Feed:
    """Sends batches to a device, on a stream of its own, one ahead of the one that is used."""

    def __init__(self, index: int, plan: _columns.Plan) -> None:
        found = cuda()
        assert found is not None
        self.cuda = found
        self.index = index
        self.rows = plan.on_device()
        self.side = found.new_stream(index)
        self.ahead: Any = None  # what is on its way to the device
        self.before: Optional[tuple[str, tuple[int, int]]] = None  # state and position of the loader without it

    def take(self, core: Any) -> Any:
        """What was sent of the next batch, for `deliver`; None at the end of an epoch."""
        sent = self.ahead or self._send_next(core)
        self.drop()
        if isinstance(sent, BaseException):
            raise sent
        return None if sent is _END else sent

    def look_ahead(self, core: Any) -> None:
        """Sends the batch behind that on its way if it is there. An error of it is kept for whoever asks for it."""
        if not core.ready():
            return
        self.before = core.save(), core.position()
        try:
            self.ahead = self._send_next(core)
        except Exception as problem:
            self.ahead = problem

    def drop(self) -> None:
        self.ahead = self.before = None

    def _send_next(self, core: Any) -> Any:
        taken = core.next()
        return _END if taken is None else self.send(*taken)

    def send(self, columns: tuple[Any, ...], lease: Any) -> tuple[list[Any], Any]:
        """Queues the copies; (tensors and lists, event behind the copies)."""
        out: list[Any] = list(columns)
        with self.cuda.on(self.side):
            pairs = []
            for i, dtype, _ in self.rows:
                if dtype is not None:
                    out[i] = self.cuda.empty(columns[i].shape, dtype, self.index)
                    pairs.append((i, out[i].data_ptr()))
            lease.upload(pairs, int(self.side.cuda_stream))
            event = self.side.record_event()
        return out, event

    def deliver(self, sent: tuple[list[Any], Any]) -> list[Any]:
        """Makes the current stream wait for the copies. The tensors' memory was taken for the side stream: it must not
        be used for another batch before the current stream is through with this one."""
        out, event = sent
        current = self.cuda.current_stream(self.index)
        current.wait_event(event)
        for i, dtype, finish in self.rows:
            if dtype is not None:
                self.cuda.keep_for(out[i], current)
            out[i] = finish(out[i])
        return out


def normalize(images: Any, mean: Any = None, std: Any = None, *, dtype: Any = "float32", layout: str = "NCHW") -> Any:
    """What ``Loader(dtype=..., mean=..., std=...)`` does on the CPU, for images that went to the device as uint8 NHWC, a
    quarter of the bytes: floats ``(x / 255 - mean) / std``.

    Args:
        images: uint8 tensor ``[batch, height, width, channels]`` (``layout="NHWC"`` of the loader), or its
            ``layout="channels_last"``, on any device
        mean, std: on the scale 0 to 1; a number or one per channel. None: 0 and 1
        dtype: ``"float32"``, ``"float16"`` or ``"bfloat16"``, or PyTorch's object. The arithmetic is float32
        layout: of the result: ``"NCHW"``, ``"channels_last"`` (shape NCHW over NHWC memory) or ``"NHWC"``

    It is made of PyTorch's own operations, so torch.compile can fuse it into what follows.
    """
    import torch

    if not isinstance(images, torch.Tensor) or images.dtype != torch.uint8 or images.ndim != 4:
        what = f"{images.dtype} of {images.ndim} dimensions" if isinstance(images, torch.Tensor) else type(images).__name__
        raise TypeError(f"images: must be a uint8 tensor of 4 dimensions, not {what}")
    name = str(dtype).rsplit(".", 1)[-1]
    _args.choice("dtype", name, "float32", "float16", "bfloat16")
    _args.choice("layout", layout, "NCHW", "NHWC", "channels_last")
    if images.shape[3] not in (1, 3):  # channels_last: the memory is NHWC
        images = images.permute(0, 2, 3, 1)
    if images.shape[3] not in (1, 3):
        raise ArgumentError(f"images: shape {tuple(images.shape)}: must have 1 or 3 channels")
    channels = images.shape[3]
    scale = _args.per_channel("std", 1.0 if std is None else std)[:channels]
    shift = _args.per_channel("mean", 0.0 if mean is None else mean)[:channels]
    if 0 in scale:
        raise ArgumentError(f"std={std!r}: must not be 0")
    factor, offset = _constants(shift, scale, images.device)
    floats = torch.addcmul(offset, images.to(torch.float32), factor).to(getattr(torch, name))
    if layout == "NHWC":
        return floats
    floats = floats.permute(0, 3, 1, 2)
    return floats.contiguous() if layout == "NCHW" else floats


@functools.lru_cache(maxsize=64)
def _constants(shift: tuple[float, ...], scale: tuple[float, ...], device: Any) -> tuple[Any, Any]:
    """Kept, since making them would copy to the device, which makes the host wait."""
    import torch

    factor = torch.tensor([1 / (255 * v) for v in scale], dtype=torch.float32, device=device)
    return factor, torch.tensor([-m / v for m, v in zip(shift, scale)], dtype=torch.float32, device=device)
