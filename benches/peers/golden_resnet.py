"""Golden outputs of torchvision's resnet18 and resnet50 on closed-form weights (closed_form.py).

    pip install torch torchvision safetensors
    python golden_resnet.py OUT_DIR        # CPU, 1 thread, 20 seconds

Writes OUT_DIR/resnet18.safetensors and OUT_DIR/resnet50.safetensors: eval-mode logits, then, from
a fresh copy in train mode, logits, mean cross-entropy loss, the gradient of conv1.weight and the
running statistics after that one forward. The values are computed in float64 from the float32
weights and rounded once to float32. The script also runs everything in float32 and prints how far
that lands from float64: a tolerance for another float32 implementation must lie well above it.
"""

import argparse
import pathlib

import torch
import torchvision
from safetensors.torch import save_file

import closed_form


def build(arch, dtype):
    model = torchvision.models.get_model(arch, weights=None, num_classes=1000)
    model.load_state_dict(closed_form.fill(model.state_dict()), strict=True)
    return model.to(dtype)


def outputs(arch, dtype):
    x = closed_form.example_input().to(dtype)
    y = torch.tensor(closed_form.TARGETS)
    with torch.no_grad():
        eval_logits = build(arch, dtype).eval()(x)

    model = build(arch, dtype).train()
    train_logits = model(x)
    loss = torch.nn.functional.cross_entropy(train_logits, y)
    loss.backward()
    return {
        "eval_logits": eval_logits,
        "train_logits": train_logits.detach(),
        "loss": loss.detach().reshape(1),
        "conv1_grad": model.conv1.weight.grad,
        "bn1_running_mean": model.bn1.running_mean,
        "bn1_running_var": model.bn1.running_var,
        # bn1 averages over so many values that n/(n-1) hides below 1e-4; here it does not, so this
        # one tells the unbiased running variance (PyTorch's) from the biased one.
        "layer4_bn1_running_var": model.layer4[0].bn1.running_var,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out_dir", type=pathlib.Path)
    out_dir = parser.parse_args().out_dir
    out_dir.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)

    for arch in ("resnet18", "resnet50"):
        exact, single = outputs(arch, torch.float64), outputs(arch, torch.float32)
        print(f"{arch}: loss {exact['loss'].item():.9f}")
        for name, value in exact.items():
            assert value.isfinite().all(), f"{arch} {name} is not finite"
            top = value.abs().max()
            error = (single[name].double() - value).abs().max() / top
            print(f"  {name:24} max abs {top:.6g}, float32 vs float64 {error:.1e} of that")
        golden = {name: value.float().contiguous() for name, value in exact.items()}
        save_file(golden, out_dir / f"{arch}.safetensors")


if __name__ == "__main__":
    main()
