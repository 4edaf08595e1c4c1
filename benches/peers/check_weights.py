"""Does a .safetensors file that leanburn saved load into torchvision's model?

    pip install torch torchvision safetensors
    python check_weights.py FILE [--arch resnet18] [--classes 1000]      # seconds

Names, shapes and types must match the model's state_dict; only num_batches_tracked may be missing.
Prints the number of tensors and the sum and largest magnitude of the eval-mode logits on the input
of golden_resnet.py; on a mismatch prints the list and exits with 1.
"""

import argparse
import sys

import torch
import torchvision
from safetensors.torch import load_file

import closed_form


def mismatches(found, expected):
    for name, want in expected.items():
        if name not in found:
            if not name.endswith("num_batches_tracked"):
                yield f"missing: {name}"
        elif found[name].shape != want.shape or found[name].dtype != want.dtype:
            got = found[name]
            yield f"{name}: {got.dtype} {list(got.shape)}, not {want.dtype} {list(want.shape)}"
    for name in found.keys() - expected.keys():
        yield f"unexpected: {name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--arch", default="resnet18")
    parser.add_argument("--classes", type=int, default=1000)
    args = parser.parse_args()

    found = load_file(args.file)
    model = torchvision.models.get_model(args.arch, weights=None, num_classes=args.classes)
    expected = model.state_dict()
    problems = sorted(mismatches(found, expected))
    if problems:
        print("\n".join(problems))
        sys.exit(1)

    # The counters that a file may leave out keep the fresh model's value, so strict can hold.
    counters = {name: t for name, t in expected.items() if name.endswith("num_batches_tracked")}
    model.load_state_dict(counters | found, strict=True)
    with torch.no_grad():
        logits = model.eval()(closed_form.example_input())
    print(f"ok: {len(found)} tensors")
    print(f"eval logits: sum {logits.double().sum():.6f}, abs-max {logits.abs().max():.6f}")


if __name__ == "__main__":
    main()
