"""Shared tensors of the harness as tensors of PyTorch."""

import sys

import torch

DEVICE = "cpu" if sys.argv[1:] == ["cpu"] else "cuda"  # of this process
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i32": torch.int32, "u8": torch.uint8}


def host(tensor):
    """The shared memory itself, as a tensor."""
    if not tensor.memory:
        return torch.empty(tensor.shape, dtype=DTYPES[tensor.dtype])
    return torch.frombuffer(tensor.memory, dtype=DTYPES[tensor.dtype]).view(tensor.shape)


def device(tensor):
    """A copy where this process computes; on the processors too, as the shared memory is another process's."""
    return host(tensor).to(DEVICE, copy=True)
