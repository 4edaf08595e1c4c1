#!/usr/bin/env bash
# Memory and time of leanburn on a GPU beside PyTorch: packed on one machine, run on another.
#
#     scripts/gpu-bench.sh pack                    # build machine: fills gpu-bench/
#     gpu-bench/gpu-bench.sh run [OUT.json]        # GPU machine: needs that folder alone
#
# `pack` builds `leanburn` and the example `resnet_amp` (release, cuda and vulkan) and puts them, compressed,
# into gpu-bench/ with libdevice, the Vulkan loader of this machine, PyTorch's script and this script. It needs
# what a build with CUDA needs (docs/gpu.md), pip, strip and xz. LEANBURN_BIN and RESNET_AMP_BIN name programs
# to pack instead of building them, PYTHON another python3.
#
# `run` builds nothing and fetches nothing. It needs python3 and the GPU's driver; torch and torchvision for
# PyTorch's half (`pip install torch torchvision`). ResNet-50, SGD with momentum, one process for each case: the
# programs, backends, precisions and checkpoint policies below, those that matter most first. A case that
# fails becomes an entry, the rest still runs. PYTHON, LEANBURN_BIN and RESNET_AMP_BIN as above.
#
#     OUT.json             [gpu-bench.json] written after every case; one that is there becomes OUT.json.old
#     --limit SECONDS      [540] for all; cases that are left then are entered as "not run"
#     --case-limit SECONDS [150] for one case
#     --only TEXT          only cases whose name contains it, such as "cuda bf16" or torch; may be repeated
#     --batch N --size N --steps N   [64, 224, 12]
#     --cache DIR          keep compiled kernels and tuning there; without it each run tunes anew
#     --dry                try it without a GPU: flex and PyTorch on the CPU, tiny batch and images
#
# Exit codes: 0 every case ran, 1 some failed or did not run, 2 wrong use, 130 interrupted (and written).
#
# OUT.json, one object; bytes and seconds throughout, and null where something is not known:
#     schema      1
#     started, seconds, dry, interrupted
#     settings    limit, case_limit, batch, image_size, steps, warm_up (updates that medians leave out), recipe
#     build       commit, rustc, features, libdevice: what `pack` built, null for programs named by hand
#     machine     system, cpu, cores, python, gpu { name, memory, driver, cuda } or null, environment
#     devices     status, reason, report: what `leanburn devices --json` printed
#     cases       a list in the order of running:
#       name, program (leanburn, torch), backend (cuda, vulkan, flex, cpu), channels_last
#       precision       fp32, bf16, f16; torch also tf32 (its fp32 is without TF32)
#       checkpoint      none, every-block
#       status          ok, failed, not run
#       reason          why not, with the last lines on stderr
#       exit            exit code, -N for signal N
#       process_seconds the whole process: start, prediction, kernel tuning, evaluation
#       losses, seconds of each update in turn; skipped: updates that found an overflow
#       median_seconds  of an update, after warm_up and without skipped ones; images_per_second follows from it
#       memory          predicted_peak and measured_peak (leanburn), or max_allocated and max_reserved (torch);
#                       process: the driver's figure at the end, as torch asks for it
#       sampled         NVML every 50 ms: process_peak of this process, null where the driver does not list it (in
#                       a container, say); device_peak: the whole GPU at most; device_before: just before
#       report          the JSON that the program printed
#       stderr          its last lines
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python="${PYTHON:-python3}"

# Any version will do that LLVM reads; its licence is packed with it.
LIBDEVICE=13.0.88
LIBDEVICE_SHA256=91334d6e12748f6cb5bbf0a1cd965a56bcd93dc4f496d2e5c5f8c6e523094356
FEATURES=cuda,vulkan

die() { echo "gpu-bench: $*" >&2; exit 2; }
size() { stat -c %s "$1"; }
# NAME BYTES
row() { awk -v name="$1" -v bytes="$2" 'BEGIN { printf "  %-34s %7.1f MiB\n", name, bytes / 1048576 }'; }

pack() {
  [ $# = 0 ] || die "pack takes no arguments"
  [ -e "$here/../Cargo.toml" ] || die "pack runs in the repository; this is the packed folder"
  cd "$here/.."
  for tool in strip tar xz "$python"; do
    command -v "$tool" > /dev/null || die "pack needs $tool"
  done

  if [ -n "${LEANBURN_BIN:-}" ] && [ -n "${RESNET_AMP_BIN:-}" ]; then
    build=null
  else
    # The whole workspace, so that both programs share one build of Burn (docs/building.md).
    cargo build --release --workspace --features "$FEATURES" --bin leanburn --example resnet_amp
    target="${CARGO_TARGET_DIR:-target}/release"
    LEANBURN_BIN="$target/leanburn" RESNET_AMP_BIN="$target/examples/resnet_amp"
    build=$(printf '{ "commit": "%s", "rustc": "%s", "features": "%s", "libdevice": "%s" }' \
      "$(git describe --always --dirty 2> /dev/null || echo unknown)" "$(rustc --version)" "$FEATURES" "$LIBDEVICE")
  fi

  out=gpu-bench
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$out"
  strip -o "$work/leanburn" "$LEANBURN_BIN"
  strip -o "$work/resnet_amp" "$RESNET_AMP_BIN"
  echo "gpu-bench: compressing (minutes)"
  # One stream whose window spans both programs, which have most of their code in common.
  tar -C "$work" -c leanburn resnet_amp | xz --lzma2=preset=6,dict=256MiB > "$work/programs.tar.xz"
  mv "$work/programs.tar.xz" "$out/"
  echo "$build" > "$out/build.json"
  cp "$here/gpu-bench.sh" benches/peers/torch_gpu.py "$out/"

  libdevice="$out/cuda/nvvm/libdevice"
  check() { echo "$LIBDEVICE_SHA256  $libdevice/libdevice.10.bc" | sha256sum --check --status 2> /dev/null; }
  if ! check; then
    mkdir -p "$libdevice"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
      --platform manylinux2010_x86_64 --dest "$work/wheel" "nvidia-nvvm==$LIBDEVICE"
    "$python" -m zipfile -e "$work"/wheel/*.whl "$work/x"
    cp "$work/x/nvidia/cu13/nvvm/libdevice/libdevice.10.bc" "$work"/x/*.dist-info/licenses/License.txt "$libdevice/"
    check || die "libdevice.10.bc of nvidia-nvvm $LIBDEVICE is not the one that this script knows"
  fi
  # For a GPU machine that has NVIDIA's Vulkan driver and no loader, as servers do.
  loader=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p | awk '/libvulkan\.so\.1 .*x86-64/ { print $NF; exit }')
  if [ -n "$loader" ]; then
    mkdir -p "$out/lib"
    cp -L "$loader" "$out/lib/libvulkan.so.1"
  fi

  row "leanburn, stripped" "$(size "$work/leanburn")"
  row "resnet_amp, stripped" "$(size "$work/resnet_amp")"
  total=0
  while IFS= read -r file; do
    row "$file" "$(size "$file")"
    total=$((total + $(size "$file")))
  done < <(find "$out" -type f | sort)
  row "the folder $out" "$total"
}

case "${1:-}" in
  pack) shift; pack "$@"; exit ;;
  run) shift ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
     case "${1:-}" in -h | --help) exit ;; *) exit 2 ;; esac ;;
esac

command -v "$python" > /dev/null || die "run needs python3 (or PYTHON=...)"
exec "$python" - "$here" "$@" <<'PY'
import argparse
import collections
import csv
import ctypes
import json
import lzma
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

# Every key that either side has: no clipping, no decay and a constant rate are what PyTorch's script does.
RECIPE = """\
[model]
depth = 50
stem = "imagenet"
[data]
source = "digits"
image_size = {size}
workers = 8
[train]
batch = {batch}
epochs = 1
steps = {steps}
[optimizer]
name = "sgd"
lr = 0.01
weight_decay = 0.0
clip_norm = 0.0
[schedule]
shape = "constant"
warmup = 0.0
"""
# What is left of the limit for less than this is not worth a start.
SHORTEST = 5.0
LINES = 12


class Nvml:
    """One GPU as the driver counts it."""

    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    class Process(ctypes.Structure):
        _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gpu", ctypes.c_uint), ("ci", ctypes.c_uint)]

    def __init__(self):
        self.lib = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self.call("nvmlInit_v2")
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        if first.isdigit():
            self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(int(first)), ctypes.byref(self.device))
        else:
            self.call("nvmlDeviceGetHandleByUUID", first.encode(), ctypes.byref(self.device))

    def call(self, name, *arguments):
        code = getattr(self.lib, name)(*arguments)
        if code != 0:
            raise OSError(f"{name}: code {code}")

    def text(self, name, *before):
        buffer = ctypes.create_string_buffer(96)
        self.call(name, *before, buffer, ctypes.c_uint(96))
        return buffer.value.decode()

    def memory(self):
        memory = self.Memory()
        self.call("nvmlDeviceGetMemoryInfo", self.device, ctypes.byref(memory))
        return memory

    def of_process(self, pid):
        """Bytes of a process, None where the driver does not list it."""
        most = None
        for kind in ("Compute", "Graphics"):
            count, found = ctypes.c_uint(256), (self.Process * 256)()
            try:
                name = f"nvmlDeviceGet{kind}RunningProcesses_v3"
                self.call(name, self.device, ctypes.byref(count), ctypes.byref(found))
            except (OSError, AttributeError):
                continue
            for process in found[: count.value]:
                # All ones is NVML's "not available".
                if process.pid == pid and process.used != 2**64 - 1:
                    most = max(most or 0, process.used)
        return most

    def about(self):
        cuda = ctypes.c_int()
        self.call("nvmlSystemGetCudaDriverVersion_v2", ctypes.byref(cuda))
        return {
            "name": self.text("nvmlDeviceGetName", self.device),
            "memory": self.memory().total,
            "driver": self.text("nvmlSystemGetDriverVersion"),
            "cuda": f"{cuda.value // 1000}.{cuda.value % 1000 // 10}",
        }


class Sampler(threading.Thread):
    """Follows the GPU while one process runs."""

    def __init__(self, nvml, pid, before):
        super().__init__(daemon=True)
        self.nvml, self.pid, self.done = nvml, pid, threading.Event()
        self.found = {"process_peak": None, "device_peak": before, "device_before": before}

    def run(self):
        try:
            while not self.done.wait(0.05):
                found, own = self.found, self.nvml.of_process(self.pid)
                found["device_peak"] = max(found["device_peak"], self.nvml.memory().used)
                if own is not None:
                    found["process_peak"] = max(found["process_peak"] or 0, own)
        except OSError as error:
            self.found["error"] = str(error)


Ended = collections.namedtuple("Ended", "exit reason seconds stdout stderr sampled")


class Bench:
    def __init__(self, here, options, work):
        self.options, self.work = options, work
        self.start = time.monotonic()
        self.child = None
        repo = here.parent
        packed = (here / "torch_gpu.py").is_file()
        self.folder = here if packed else repo / "gpu-bench"
        self.peer = here / "torch_gpu.py" if packed else repo / "benches/peers/torch_gpu.py"
        self.recipe = RECIPE.format(size=options.size, batch=options.batch, steps=options.steps)
        (work / "recipe.toml").write_text(self.recipe)
        try:
            self.nvml, self.no_nvml = Nvml(), None
        except (OSError, AttributeError) as error:
            self.nvml, self.no_nvml = None, str(error)
        self.programs, self.no_program = {}, None
        self.result = {
            "schema": 1,
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "seconds": None,
            "dry": options.dry,
            "interrupted": False,
            "settings": {
                "limit": options.limit,
                "case_limit": options.case_limit,
                "batch": options.batch,
                "image_size": options.size,
                "steps": options.steps,
                "warm_up": options.warm_up,
                "recipe": self.recipe,
            },
            "build": self.build(),
            "machine": self.machine(),
            "devices": {"status": "not run", "reason": None, "report": None},
            "cases": self.cases(),
        }

    def build(self):
        named = os.environ.get("LEANBURN_BIN") or os.environ.get("RESNET_AMP_BIN")
        try:
            return None if named else json.loads((self.folder / "build.json").read_text())
        except (OSError, ValueError):
            return None

    def machine(self):
        try:
            text = pathlib.Path("/proc/cpuinfo").read_text()
            cpu = re.search(r"^model name\s*: (.*)$", text, re.M)[1]
        except (OSError, TypeError):
            cpu = None
        try:
            gpu = self.nvml and self.nvml.about()
        except (OSError, AttributeError) as error:
            gpu, self.no_nvml = None, str(error)
        kept = ("CUBECL_", "BURN_", "CUDA_", "NVIDIA_", "VK_", "PYTORCH_", "TORCH_")
        return {
            "system": platform.platform(),
            "cpu": cpu,
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "gpu": gpu,
            "no_gpu": self.no_nvml,
            "environment": {key: value for key, value in sorted(os.environ.items()) if key.startswith(kept)},
        }

    def cases(self):
        """What matters most comes first."""
        cases = []

        def add(program, backend, checkpoint, *precisions, channels_last=False):
            for precision in precisions:
                name = f"{program} {backend} {precision} {checkpoint}" + " channels-last" * channels_last
                cases.append({
                    "name": name,
                    "program": program,
                    "backend": backend,
                    "precision": precision,
                    "checkpoint": checkpoint,
                    "channels_last": channels_last,
                    "status": "not run",
                    "reason": None,
                })

        lean, peer = ("flex", "cpu") if self.options.dry else ("cuda", "cuda")
        add("leanburn", lean, "none", "bf16", "fp32")
        add("torch", peer, "none", "bf16", "fp32", "tf32")
        add("leanburn", lean, "every-block", "bf16", "fp32")
        add("torch", peer, "every-block", "bf16", "fp32", "tf32")
        for checkpoint in ("none", "every-block"):
            add("leanburn", lean, checkpoint, "f16")
            add("torch", peer, checkpoint, "f16")
        add("torch", peer, "none", "bf16", channels_last=True)
        if not self.options.dry:
            add("leanburn", "vulkan", "none", "bf16", "fp32", "f16")
            add("leanburn", "vulkan", "every-block", "bf16", "fp32", "f16")
        wanted = self.options.only
        return [case for case in cases if not wanted or any(text in case["name"] for text in wanted)]

    def unpack(self):
        """Finds the programs, or why they are not there."""
        names = ("leanburn", "resnet_amp")
        named = {name: os.environ.get(name.upper() + "_BIN") for name in names}
        self.programs = {name: pathlib.Path(path).absolute() for name, path in named.items() if path}
        archive, self.no_program = self.folder / "programs.tar.xz", None
        if len(self.programs) == len(names):
            return
        if not archive.is_file():
            self.no_program = f"{archive} is not there: run `scripts/gpu-bench.sh pack` first"
            return
        try:
            # As a stream: going back would decompress it again.
            with tarfile.open(archive, "r|xz") as tar:
                for member in tar:
                    program = self.work / member.name
                    with program.open("wb") as file:
                        shutil.copyfileobj(tar.extractfile(member), file)
                    program.chmod(0o755)
                    self.programs.setdefault(member.name, program)
        except (OSError, EOFError, lzma.LZMAError, tarfile.TarError) as error:
            self.no_program = f"{archive} does not unpack: {error!r}"

    def environment(self):
        """For leanburn's programs alone."""
        env = dict(os.environ)
        # NVML counts GPUs in this order.
        env.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        # For exp, log and the like; cubecl-llvm 0.11.3, src/nvptx/libdevice.rs:35.
        if (self.folder / "cuda/nvvm/libdevice/libdevice.10.bc").is_file():
            env["CUDA_PATH"] = str(self.folder / "cuda")
        try:
            ctypes.CDLL("libvulkan.so.1")
        except OSError:
            paths = [env.get("LD_LIBRARY_PATH"), str(self.folder / "lib")]
            env["LD_LIBRARY_PATH"] = ":".join(filter(None, paths))
        # Outside a workspace cubecl keeps kernels and tuning there.
        env["XDG_CACHE_HOME"] = str(self.options.cache or self.work / "cache")
        return env

    def left(self):
        return self.options.limit - (time.monotonic() - self.start)

    def run(self, command, env):
        """One process, to its end or to a limit."""
        limit = min(self.options.case_limit, self.left())
        try:
            before = self.nvml and self.nvml.memory().used
        except OSError:
            before = None
        out, err = self.work / "stdout", self.work / "stderr"
        start = time.monotonic()
        with out.open("wb") as stdout, err.open("wb") as stderr:
            try:
                self.child = subprocess.Popen(
                    [str(part) for part in command], env=env, cwd=self.work, stdin=subprocess.DEVNULL,
                    stdout=stdout, stderr=stderr, start_new_session=True,
                )
            except OSError as error:
                return Ended(None, f"does not start: {error}", 0.0, "", "", None)
        sampler = None
        if before is not None:
            sampler = Sampler(self.nvml, self.child.pid, before)
            sampler.start()
        reason = None
        try:
            code = self.child.wait(limit)
            if code < 0:
                reason = f"ended by signal {-code} ({signal.strsignal(-code)})"
            elif code > 0:
                reason = f"exit code {code}"
        except subprocess.TimeoutExpired:
            reason, code = f"stopped after {limit:.0f} s", self.stop()
        finally:
            self.stop()
        if sampler:
            sampler.done.set()
            sampler.join(5)
        read = [path.read_bytes().decode(errors="replace") for path in (out, err)]
        return Ended(code, reason, time.monotonic() - start, *read, sampler and sampler.found)

    def stop(self):
        """Ends the process of now and what it started."""
        child, self.child = self.child, None
        if child is None:
            return None
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            return child.wait(20)
        except subprocess.TimeoutExpired:
            return None  # stuck in the driver

    def judge(self, entry, ended):
        """Enters how a process ended; true where it printed its JSON."""
        last = [line for line in ended.stderr.splitlines() if line.strip()][-LINES:]
        reason, report = ended.reason, None
        if reason is None:
            try:
                report = json.loads(ended.stdout.splitlines()[-1])
            except (ValueError, IndexError):
                reason = "printed no JSON"
        if reason:
            reason = "\n".join([reason] + last)
        entry.update(status="failed" if reason else "ok", reason=reason, report=report)
        entry.update(exit=ended.exit, process_seconds=ended.seconds, stderr=last)
        return reason is None

    def devices(self):
        if "leanburn" not in self.programs:
            self.result["devices"].update(status="failed", reason=self.no_program)
            return
        ended = self.run([self.programs["leanburn"], "devices", "--json"], self.environment())
        self.judge(self.result["devices"], ended)

    def case(self, case):
        with tempfile.TemporaryDirectory(dir=self.work) as output:
            output = pathlib.Path(output)
            if case["program"] == "torch":
                command, env = self.torch(case), {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **os.environ}
            elif "resnet_amp" in self.programs:
                command, env = self.leanburn(case, output), self.environment()
            else:
                case.update(status="failed", reason=self.no_program)
                return
            ended = self.run(command, env)
            case["sampled"] = ended.sampled
            self.judge(case, ended)
            # A run that failed may have made some updates.
            self.updates(case, output)
        report = case["report"] or {}
        memory = report.get("memory") or {}
        if case["program"] == "torch":
            keys = {key: report.get(key) for key in ("losses", "seconds", "skipped", "median_seconds")}
            case.update(keys if report else {}, memory=memory)
        else:
            peak = memory.get("peak") or {}
            case["memory"] = {"predicted_peak": peak.get("predicted"), "measured_peak": peak.get("measured")}
        median = case.get("median_seconds")
        case["images_per_second"] = self.options.batch / median if median else None

    def leanburn(self, case, output):
        return [
            self.programs["resnet_amp"], "--json", "--config", self.work / "recipe.toml", "--output", output,
            "--backend", case["backend"], "--precision", case["precision"], "--checkpoint", case["checkpoint"],
        ]

    def torch(self, case):
        options = self.options
        command = [
            sys.executable, self.peer, "--batch", options.batch, "--size", options.size, "--steps", options.steps,
            "--warm-up", options.warm_up, "--precision", case["precision"], "--checkpoint", case["checkpoint"],
            "--device", case["backend"],
        ]
        return command + ["--channels-last"] * case["channels_last"]

    def updates(self, case, output):
        """Reads the updates.csv of leanburn's run."""
        try:
            with (output / "updates.csv").open(newline="") as file:
                lines = [line for line in csv.DictReader(file) if line.get("outcome") and line.get("seconds")]
        except OSError:
            return
        skipped = [index for index, line in enumerate(lines) if line["outcome"] != "applied"]
        seconds = [float(line["seconds"]) for line in lines]
        kept = [s for index, s in enumerate(seconds) if index >= self.options.warm_up and index not in skipped]
        case.update(losses=[float(line["loss"]) for line in lines], seconds=seconds, skipped=skipped)
        case["median_seconds"] = statistics.median(kept) if kept else None

    def interrupted(self):
        self.stop()
        self.result["interrupted"] = True
        for case in self.result["cases"]:
            if case["status"] == "not run":
                case["reason"] = case["reason"] or "interrupted"

    def write(self):
        self.result["seconds"] = time.monotonic() - self.start
        out, new = self.options.out, self.options.new
        # JSON has no NaN.
        text = json.dumps(finite(self.result), indent=1, allow_nan=False) + "\n"
        try:
            new.write_text(text)
            new.replace(out)
        except OSError as error:
            say(f"cannot write {out}: {error}")

    def all(self):
        self.unpack()
        self.write()
        self.devices()
        say(f"devices: {first_line(self.result['devices'])}")
        for case in self.result["cases"]:
            if self.left() < SHORTEST:
                case["reason"] = f"the limit of {self.options.limit:.0f} s was reached"
            else:
                self.case(case)
                self.write()
            say(f"{case['name']}: {first_line(case)}")


def finite(value):
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say(text):
    print(f"gpu-bench: {text}", flush=True)


def first_line(entry):
    if entry["status"] != "ok":
        lines = (entry["reason"] or "").splitlines()
        return ", ".join([entry["status"]] + lines[:1] + lines[1:][-1:])
    parts = ["ok"]
    if entry.get("median_seconds"):
        parts.append(f"{entry['median_seconds']:.4f} s an update")
    memory = entry.get("memory") or {}
    peak = memory.get("measured_peak") or memory.get("max_allocated")
    if peak:
        parts.append(f"peak {peak / 2**30:.2f} GiB")
    return ", ".join(parts)


def positive(kind):
    def parse(text):
        number = kind(text)
        if not 0 < number < math.inf:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return number

    parse.__name__ = "number"
    return parse


def arguments(given):
    parser = argparse.ArgumentParser(prog="gpu-bench.sh run", description="scripts/gpu-bench.sh --help says more.")
    parser.add_argument("out", nargs="?", type=pathlib.Path, default="gpu-bench.json", metavar="OUT.json")
    parser.add_argument("--limit", type=positive(float), default=540.0)
    parser.add_argument("--case-limit", type=positive(float), default=150.0)
    parser.add_argument("--only", action="append", metavar="TEXT")
    parser.add_argument("--batch", type=positive(int))
    parser.add_argument("--size", type=positive(int))
    parser.add_argument("--steps", type=positive(int))
    parser.add_argument("--cache", type=lambda text: pathlib.Path(text).absolute(), metavar="DIR")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args(given)
    batch, size, steps = (2, 32, 4) if options.dry else (64, 224, 12)
    options.batch, options.size = options.batch or batch, options.size or size
    options.steps = options.steps or steps
    options.warm_up = min(1 if options.dry else 3, options.steps - 1)
    options.out = pathlib.Path(options.out).absolute()
    options.new = options.out.with_name(options.out.name + ".new")
    if options.out.is_dir():
        parser.error(f"{options.out} is a folder")
    return options


def main():
    options = arguments(sys.argv[2:])
    try:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.new.touch()
    except OSError as error:
        say(f"cannot write {options.out}: {error}")
        return 2
    with tempfile.TemporaryDirectory(prefix="gpu-bench-") as work:
        bench = Bench(pathlib.Path(sys.argv[1]), options, pathlib.Path(work))
        if not bench.result["cases"]:
            options.new.unlink()
            say("no case has such a name")
            return 2
        if options.out.exists():
            old = options.out.with_name(options.out.name + ".old")
            options.out.replace(old)
            say(f"{options.out} was there, and is {old} now")

        def interrupt(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGTERM, interrupt)
        try:
            bench.all()
        except KeyboardInterrupt:
            bench.interrupted()
        bench.write()
    cases = bench.result["cases"] + [bench.result["devices"]]
    counts = collections.Counter(case["status"] for case in cases)
    say(", ".join(f"{count} {status}" for status, count in counts.items()) + f"; all of it is in {options.out}")
    if bench.result["interrupted"]:
        return 130
    return 0 if set(counts) == {"ok"} else 1


sys.exit(main())
PY
