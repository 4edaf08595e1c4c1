"""Time and memory of one PyTorch training step of resnet50 (SGD with momentum) on the CPU.

    pip install torch torchvision
    python torch_step.py BATCH SIZE MODE [--channels-last] [--threads N]

MODE is fp32 or amp (bf16 autocast). Prints one JSON line: seconds of the fastest of 3 steps after
one warm-up, and the peak resident memory of the whole process in MiB (Linux). Time it on idle
cores: with another build on the same two cores the seconds came out many times too long. amp pays
only on a CPU with bf16 instructions (avx512_bf16 or amx_bf16 in lscpu).
"""

import argparse
import json
import resource
import time

import torch
import torchvision


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("batch", type=int)
    parser.add_argument("size", type=int)
    parser.add_argument("mode", choices=["fp32", "amp"])
    parser.add_argument("--channels-last", action="store_true", help="PyTorch's faster layout")
    parser.add_argument("--threads", type=int, help="default: PyTorch's choice")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)

    layout = torch.channels_last if args.channels_last else torch.contiguous_format
    torch.manual_seed(0)
    model = torchvision.models.resnet50(weights=None, num_classes=1000).train().to(memory_format=layout)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(args.batch, 3, args.size, args.size).to(memory_format=layout)
    y = torch.randint(0, 1000, (args.batch,))

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.mode == "amp"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    step()  # warm-up: also allocates the gradients and the momentum
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)

    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = {
        "batch": args.batch,
        "size": args.size,
        "mode": args.mode,
        "channels_last": args.channels_last,
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "seconds": round(min(seconds), 4),
        "peak_rss_mib": peak_kib // 1024,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
