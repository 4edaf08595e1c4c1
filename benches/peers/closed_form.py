"""Closed-form weights and inputs shared by the PyTorch peers and leanburn's Rust tests.

Every value is computed from the tensor's name and its flat row-major index with integer
arithmetic alone, so Rust and Python get the same bits without exchanging weight files and
without depending on any library's random generator or libm.
"""

import math

import numpy as np
import torch

BATCH, SIZE, TARGETS = 2, 64, [3, 7]


def phase(name):
    """A small number that differs between most tensors, so that they get different values."""
    return sum(name.encode()) % 97


def c(name, count):
    """c(k) in [-1, 1) for k = 0..count, as float64 (every value is exact: 32 hashed bits)."""
    # uint64 holds each product without overflow; the mask is the "mod 2^32".
    mask = np.uint64(0xFFFFFFFF)
    k = np.arange(count, dtype=np.uint64)
    h = (k * np.uint64(2654435761) + np.uint64(phase(name) * 40503 + 12345)) & mask
    h ^= h >> np.uint64(15)
    h = (h * np.uint64(2246822519)) & mask
    h ^= h >> np.uint64(13)
    return 2.0 * (h.astype(np.float64) / 2.0**32) - 1.0


def tensor(name, shape, last_norm):
    """The float32 value of the parameter or buffer that torchvision calls `name`.

    `last_norm` names the BatchNorm that ends each residual branch. Scaling that one by 0.2 keeps
    the activations from doubling at every block. BatchNorm biases of +-2.5 keep values away from
    the kink of the ReLU that follows: with small biases about one value among the million lies
    within float32 rounding of zero, falls on either side by luck, and changes conv1's gradient by
    up to 1 %.
    """
    v = c(name, math.prod(shape))
    gain = 0.2 if f".{last_norm}." in name else 1.0
    if name.endswith("running_var"):
        v = 1 + 0.5 * v * v
    elif name.endswith("running_mean") or name == "fc.bias":
        v = 0.1 * v
    elif name.endswith("bias"):  # BatchNorm
        v = gain * (np.where(v >= 0, 2.5, -2.5) + 0.1 * v)
    elif len(shape) == 1:  # BatchNorm scale
        v = gain * (1 + 0.1 * v)
    elif len(shape) == 4:  # convolution [out, in, kh, kw]
        v = v * math.sqrt(6 / math.prod(shape[1:]))
    else:  # linear [out, in]
        v = v * math.sqrt(1 / shape[1])
    return torch.from_numpy(v.astype(np.float32).reshape(shape))


def fill(state):
    """`state` with every tensor in closed form; the num_batches_tracked counters stay."""
    last_norm = "bn3" if "layer1.0.bn3.weight" in state else "bn2"
    return {
        name: t if name.endswith("num_batches_tracked") else tensor(name, tuple(t.shape), last_norm)
        for name, t in state.items()
    }


def example_input():
    shape = (BATCH, 3, SIZE, SIZE)
    v = c("input", math.prod(shape))
    return torch.from_numpy(v.astype(np.float32).reshape(shape))
