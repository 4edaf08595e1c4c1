"""Memory, time and losses of PyTorch training steps of resnet50 (SGD with momentum), eager, on a GPU.

    pip install torch torchvision
    python torch_gpu.py --precision bf16 --checkpoint every-block

Prints one JSON object; scripts/gpu-bench.sh runs it beside leanburn's examples/resnet_amp.rs with the same
batch, image size, classes, optimizer and number of steps. Precisions:

    fp32   plain f32: TF32 is off for matrix products and for cuDNN (PyTorch's default has it on for cuDNN)
    tf32   f32 tensors, TF32 on for both
    bf16   autocast, f32 weights, TF32 off
    f16    the same with a GradScaler; a step that it skips is in "skipped" and has no part in the median

A step includes the copy of its batch to the device and reading the loss back, as in leanburn. The images are
random, so the losses say only that the training is sound: they start near ln(classes).
"""

import argparse
import json
import math
import os
import statistics
import time

import torch
import torchvision
from torch.utils.checkpoint import checkpoint

DTYPES = {"fp32": None, "tf32": None, "bf16": torch.bfloat16, "f16": torch.float16}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=224, help="height and width of the images")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--warm-up", type=int, default=3, help="steps that the median leaves out")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--precision", choices=list(DTYPES), default="bf16")
    parser.add_argument("--checkpoint", choices=["none", "every-block"], default="none")
    parser.add_argument("--channels-last", action="store_true", help="the layout that tensor cores like")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu (no memory figures there)")
    return parser.parse_args()


def forward(model, x, every_block):
    if not every_block:
        return model(x)
    x = model.maxpool(model.relu(model.bn1(model.conv1(x))))
    for layer in (model.layer1, model.layer2, model.layer3, model.layer4):
        for block in layer:
            x = checkpoint(block, x, use_reentrant=False)
    return model.fc(torch.flatten(model.avgpool(x), 1))


def process_memory(device):
    """What the driver counts for this process on this GPU, in bytes; None where it does not say."""
    try:
        import pynvml  # package nvidia-ml-py

        pynvml.nvmlInit()
        uuid = str(torch.cuda.get_device_properties(device).uuid)
        uuid = uuid if uuid.startswith("GPU-") else "GPU-" + uuid
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(pynvml.nvmlDeviceGetHandleByUUID(uuid))
        return next(process.usedGpuMemory for process in processes if process.pid == os.getpid())
    except Exception:  # no nvidia-ml-py, another PID namespace, an old driver: the figure is optional
        return None


def main():
    args = arguments()
    device = torch.device(args.device)
    on_gpu = device.type == "cuda"
    if on_gpu and not torch.cuda.is_available():
        raise SystemExit(f"torch {torch.__version__} finds no CUDA device")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = args.precision == "tf32"
    layout = torch.channels_last if args.channels_last else torch.contiguous_format

    torch.manual_seed(0)
    # As leanburn makes it: the last norm of each block starts at zero.
    model = torchvision.models.resnet50(weights=None, num_classes=args.classes, zero_init_residual=True)
    model = model.train().to(device, memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scaler = torch.amp.GradScaler(device.type, enabled=args.precision == "f16")
    images = torch.randn(args.batch, 3, args.size, args.size).contiguous(memory_format=layout)
    labels = torch.randint(0, args.classes, (args.batch,))
    if on_gpu:
        images, labels = images.pin_memory(), labels.pin_memory()
        torch.cuda.reset_peak_memory_stats(device)

    dtype = DTYPES[args.precision]
    losses, seconds, skipped = [], [], []
    for index in range(args.steps):
        start = time.perf_counter()
        x, y = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = torch.nn.functional.cross_entropy(forward(model, x, args.checkpoint == "every-block"), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scale = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() < scale:
            skipped.append(index)
        losses.append(loss.item())
        if on_gpu:
            torch.cuda.synchronize(device)
        seconds.append(time.perf_counter() - start)

    measured = [s for i, s in enumerate(seconds) if i >= args.warm_up and i not in skipped]
    median = statistics.median(measured) if measured else None
    memory = None
    if on_gpu:
        memory = {
            "max_allocated": torch.cuda.max_memory_allocated(device),
            "max_reserved": torch.cuda.max_memory_reserved(device),
            "process": process_memory(device),
        }
    result = {
        "model": "resnet50",
        "torch": torch.__version__,
        "cudnn": torch.backends.cudnn.version() if on_gpu else None,
        "device": torch.cuda.get_device_name(device) if on_gpu else "cpu",
        "precision": args.precision,
        "checkpoint": args.checkpoint,
        "channels_last": args.channels_last,
        "batch": args.batch,
        "image_size": args.size,
        "steps": args.steps,
        "skipped": skipped,
        "losses": [loss if math.isfinite(loss) else None for loss in losses],
        "seconds": seconds,
        "median_seconds": median,
        "memory": memory,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
