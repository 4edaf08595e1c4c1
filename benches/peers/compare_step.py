"""PyTorch's and leanburn's training step side by side: one process each, one after the other.

    pip install torch torchvision
    cargo bench --profile dev --bench step --no-run     # prints the path of the executable
    python compare_step.py PATH_OF_EXECUTABLE --batch 8 --size 224

Prints a line for each with seconds of the fastest step, the ratio to PyTorch in f32, and the peak
resident memory of the whole process.
"""

import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def last_json(command):
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("executable", help="the bench `step`, built with the dev profile")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--size", type=int, default=224)
    args = parser.parse_args()
    size = [str(args.batch), str(args.size)]

    rows = []
    for mode in ["fp32", "amp"]:
        line = last_json([sys.executable, str(HERE / "torch_step.py"), *size, mode])
        rows.append((f"PyTorch {mode}", line))
    for mode in ["plain", "balanced", "fp32", "f16", "bf16"]:
        command = [args.executable, "process", mode, "--batch", size[0], "--size", size[1]]
        name = {"plain": "plain Burn", "balanced": "Burn, Balanced"}.get(mode, f"leanburn {mode}")
        rows.append((name, last_json(command)))

    base = rows[0][1]["seconds"]
    for name, line in rows:
        mib = line.get("process_peak_mib", line.get("peak_rss_mib"))
        print(f"{name:<16} {line['seconds']:8.2f} s {line['seconds'] / base:7.2f}x {mib:8} MiB")


if __name__ == "__main__":
    main()
