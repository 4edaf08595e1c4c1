#!/usr/bin/env bash
# Lays out the LLVM that `--features cuda` links, where it cannot be downloaded as a bundle.
#
#     scripts/setup-llvm.sh
#
# You need this only if building with `--features cuda` stops at a download: the build script of
# tracel-llvm-bundler fetches a prebuilt LLVM from a GitHub release, unless its folder
# ${XDG_DATA_HOME:-~/.local/share}/tracel/tracel-llvm-VERSION says that it is installed. This script fills
# that folder from two packages on PyPI, mlc-llvm-static and mlc-llvm-static-extra-targets: static LLVM 23.1.1
# with headers, built by GCC against libstdc++. Of its backends X86 and NVPTX stay; burn's `rocm` also needs
# liblldELF.a, which the packages don't have.
#
# Runs on Linux x86_64 with python3 >= 3.10 and pip; takes 400 MB for a moment and 240 MB for good. A second
# run returns at once, and a bundle of another origin is left alone. The build then needs g++ (C++17).
set -euo pipefail

BUNDLER=23.1.0-4                # the tracel-llvm-bundler that this layout is for
SDK=23.1.1.post0                # version of both packages
WANT="$SDK rev 1"               # raise rev when the layout changes
BASE_SHA256=dcfec888abfaa418be77d41af585805f31463584cf9c90582992c00f392c1ac5
EXTRA_SHA256=c36e834d9a4e9cf9759f27fece65711ece7a2fc2b5a96dbb15d66f5e9e787929

die() { echo "setup-llvm: $*" >&2; exit 1; }

lock="$(cd "$(dirname "$0")/.." && pwd)/Cargo.lock"
locked=$(sed -n '/^name = "tracel-llvm-bundler"$/{n;s/^version = "\(.*\)"$/\1/p;}' "$lock")
[ "$locked" = "$BUNDLER" ] ||
  die "tracel-llvm-bundler in Cargo.lock is ${locked:-missing}, this script knows $BUNDLER: bring it up to date"
[ "$(uname -sm)" = "Linux x86_64" ] || die "only Linux on x86_64 is handled here"

prefix="${XDG_DATA_HOME:-$HOME/.local/share}/tracel/tracel-llvm-$BUNDLER"
stamp=.from-mlc-llvm-static
if [ -e "$prefix/.tracel-llvm-installed" ]; then
  if [ ! -e "$prefix/$stamp" ]; then
    echo "setup-llvm: $prefix holds a bundle of another origin; left as it is"
    exit
  elif [ "$(cat "$prefix/$stamp")" = "$WANT" ]; then
    echo "setup-llvm: already set up ($WANT) in $prefix"
    exit
  fi
fi

python="${PYTHON:-python3}"
mkdir -p "$(dirname "$prefix")"
# Beside the goal, so that the last step is a rename.
work=$(mktemp -d "$(dirname "$prefix")/.setup-llvm.XXXXXX")
trap 'rm -rf "$work"' EXIT

echo "setup-llvm: downloading mlc-llvm-static $SDK (92 MB in two wheels)"
cat > "$work/requirements.txt" <<REQ
mlc-llvm-static==$SDK --hash=sha256:$BASE_SHA256
mlc-llvm-static-extra-targets==$SDK --hash=sha256:$EXTRA_SHA256
REQ
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
  --only-binary=:all: --platform manylinux_2_28_x86_64 \
  --dest "$work/wheels" --requirement "$work/requirements.txt"
for wheel in "$work"/wheels/*.whl; do
  "$python" -m zipfile -e "$wheel" "$work/x"
done
stage="$work/x/mlc_llvm_static/static"
mv "$work/x/mlc_llvm_static/licenses" "$stage/"

# Drops the other backends, with their entries in the headers that list "all" targets, and writes the
# llvm-config that the bundler asks.
"$python" - "$stage" <<'PY'
import pathlib, re, subprocess, sys

stage = pathlib.Path(sys.argv[1])
keep = {"X86", "NVPTX"}


def ask(option):
    command = [sys.executable, stage / "bin/llvm-config.py", "--link-static", option]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def archive(name):
    return stage / "lib" / f"lib{name}.a"


def edit(path, pattern, dropped):
    text = path.read_text()
    path.write_text(re.sub(pattern, lambda m: m[0] if m[2] in keep else dropped(m), text, flags=re.M))


drop = tuple("LLVM" + name for name in ask("--targets-built") if name not in keep)
all_libs = [token.removeprefix("-l") for token in ask("--libs")]
libs = [name for name in all_libs if not name.startswith(drop)]
system = [token.removeprefix("-l") for token in ask("--system-libs")]
# zlib and zstd are among the archives, so they are linked like LLVM's own.
libs += [name for name in system if archive(name).is_file()]
system = [name for name in system if not archive(name).is_file()]
missing = [name for name in libs if not archive(name).is_file()]
assert not missing, missing
flags = {o: " ".join(t for t in ask(o) if not t.startswith("-I")) for o in ("--cflags", "--cxxflags")}
version = ask("--version")[0]

headers = stage / "include/llvm/Config/mlc-all"
for path in headers.glob("*.def"):
    edit(path, r"^(LLVM_[A-Z_]+)\((\w+)\)\n", lambda m: "")
edit(headers / "Targets.h", r"^(#define LLVM_HAS_(\w+)_TARGET) 1$", lambda m: m[1] + " 0")
# After the last question: llvm-config.py checks that all archives are there.
for name in set(all_libs) - set(libs):
    archive(name).unlink()

# The bundler asks one option at a time, each after --link-static.
config = stage / "bin/llvm-config"
config.write_text(f"""#!/bin/sh
# Written by setup-llvm.sh: the answers tracel-llvm-bundler asks for, and no others.
prefix=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
for option in "$@"; do
  case "$option" in
    --link-static) ;;
    --version) echo "{version}" ;;
    --prefix) echo "$prefix" ;;
    --libdir) echo "$prefix/lib" ;;
    --includedir) echo "$prefix/include" ;;
    --cflags) echo "-I$prefix/include {flags['--cflags']}" ;;
    --cxxflags) echo "-I$prefix/include {flags['--cxxflags']}" ;;
    --libs) echo "{' '.join('-l' + n for n in libs)}" ;;
    --libnames) echo "{' '.join('lib' + n + '.a' for n in libs)}" ;;
    --system-libs) echo "{' '.join('-l' + n for n in system)}" ;;
    --targets-built) echo "NVPTX X86" ;;
    *) echo "llvm-config: unknown option: $option" >&2; exit 1 ;;
  esac
done
""")
config.chmod(0o755)
(stage / "bin/llvm-config.py").unlink()
PY
rm -rf "$stage/share" "$stage/lib/cmake" "$stage/lib/pkgconfig" "$stage/lib/clang"

echo "$WANT" > "$stage/$stamp"
# Cargo watches the time of this file: a fixed old one keeps builds fresh when the folder is laid out again.
touch -d '2026-10-01 00:00:00 UTC' "$stage/.tracel-llvm-installed"
rm -rf "$prefix"
mv "$stage" "$prefix"
config="$prefix/bin/llvm-config"
echo "setup-llvm: LLVM $("$config" --version) ($("$config" --targets-built)) is in $prefix"
