"""A small file in the layout of torchvision's resnet18 weights, for import tests.

    pip install torch torchvision safetensors
    python tiny_weights.py OUT_DIR         # seconds

Writes OUT_DIR/tiny_resnet18.pth (torch.save of a state_dict) and tiny_resnet18.safetensors:
the keys and order of resnet18's state_dict, num_batches_tracked counters included, with every
channel count divided by 16 (64 -> 4, 512 -> 32), 5 classes, and the values of closed_form.py.
(The safetensors format stores its tensors in an order of its own.)
"""

import argparse
import pathlib

import torch
import torchvision
from safetensors.torch import save_file

import closed_form


def shrink(t):
    # Of the first two dimensions, those that are not channels (3 inputs, 5 classes) are below 16.
    shape = [n // 16 if i < 2 and n >= 16 else n for i, n in enumerate(t.shape)]
    return torch.zeros(shape, dtype=t.dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out_dir", type=pathlib.Path)
    out_dir = parser.parse_args().out_dir
    out_dir.mkdir(parents=True, exist_ok=True)

    # Updated in place: an OrderedDict with _metadata, pickled just as published weights are.
    tiny = torchvision.models.resnet18(weights=None, num_classes=5).state_dict()
    tiny.update(closed_form.fill({name: shrink(t) for name, t in tiny.items()}))
    torch.save(tiny, out_dir / "tiny_resnet18.pth")
    save_file(tiny, out_dir / "tiny_resnet18.safetensors")
    print(f"{len(tiny)} tensors, {sum(t.numel() for t in tiny.values())} values")


if __name__ == "__main__":
    main()
