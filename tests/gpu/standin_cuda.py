"""A stand-in for the part of PyTorch's CUDA that shardpack.gpu asks for, on top of tests/cudart_standin.c: for machines
without a GPU."""
import contextlib
import ctypes

import numpy as np
import torch


class Event:
    def __init__(self, lib):
        self.lib, self.handle = lib, ctypes.c_void_p()
        assert lib.cudaEventCreateWithFlags(ctypes.byref(self.handle), 2) == 0

    def __del__(self):
        self.lib.cudaEventDestroy(self.handle)


class Stream:
    def __init__(self, lib, handle):
        self.lib, self.cuda_stream = lib, handle

    def record_event(self):
        event = Event(self.lib)
        assert self.lib.cudaEventRecord(event.handle, ctypes.c_void_p(self.cuda_stream)) == 0
        return event

    def wait_event(self, event):
        assert self.lib.cudaStreamWaitEvent(ctypes.c_void_p(self.cuda_stream), event.handle, 0) == 0

    def synchronize(self):
        assert self.lib.cudaStreamSynchronize(ctypes.c_void_p(self.cuda_stream)) == 0


class StandInCuda:
    """In place of gpu._Cuda: "device" tensors are CPU tensors in the stand-in's memory."""

    def __init__(self, lib):
        self.lib = lib
        self.default = Stream(lib, 0)
        self.memory, self.streams, self.kept = [], [], 0

    def current_device(self):
        return 0

    def device(self, index):
        return contextlib.nullcontext()

    def current_stream(self, index):
        return self.default

    def new_stream(self, index):
        handle = ctypes.c_void_p()
        assert self.lib.cudaStreamCreateWithFlags(ctypes.byref(handle), 1) == 0
        self.streams.append(handle)
        return Stream(self.lib, handle.value)

    def on(self, stream):
        return self.device(0)

    def empty(self, shape, dtype, index):
        kind = getattr(torch, dtype)
        size = int(np.prod(shape)) * torch.empty(0, dtype=kind).element_size()
        pointer = ctypes.c_void_p()
        assert self.lib.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
        self.memory.append(pointer)
        raw = (ctypes.c_uint8 * size).from_address(pointer.value)
        return torch.frombuffer(raw, dtype=torch.uint8).view(kind).view(*shape)

    def keep_for(self, tensor, stream):
        self.kept += 1

    def free(self):
        for pointer in self.memory:
            assert self.lib.cudaFree(pointer) == 0
        for handle in self.streams:
            self.lib.cudaStreamDestroy(handle)
