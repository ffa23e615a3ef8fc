#!/usr/bin/env bash
# Runs the tests of the backend for PyTorch with a PyTorch of your choice, from PyPI. See --help.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$source_root"

usage() {
  cat <<'USAGE'
usage: ./scripts/test_torch.sh [OPTION...] VERSION [TEST...]
Makes a virtual environment with this version of PyTorch (2.6.0, for instance, or "newest"; "debian" is
that of /usr/bin/python3, and needs no environment), builds Gradcube and the backend for it, and runs
tests of tests/integration/: torch, torch_device, torch_training and torch_examples, unless others are
named.
PyPI's PyTorch comes with CUDA: some 3 GB to download, and 7 GB on the disk.
  --python PYTHON   of which the virtual environment is made (/usr/bin/python3)
  --toolkit FOLDER  takes CUDA 13's libraries from this folder of an installed toolkit, which saves
                    2 GB; PyPI has the rest
  --build FOLDER    a build folder of Gradcube's; it is made where there is none (build)
  --frameworks      installs PyTorch Lightning, Accelerate, Transformers, DeepSpeed, Ray and torchft,
                    and runs torch_frameworks unless other tests are named
  --wheel FILE      builds nothing, and installs this wheel of ./scripts/package.sh wheel instead
Virtual environments lie in $GRADCUBE_VENVS, else in ~/.cache/gradcube/venvs, and are used again.
USAGE
}

python=/usr/bin/python3
toolkit=
build=build
wheel=
frameworks=no
words=()
while (($# > 0)); do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --python | --toolkit | --build | --wheel)
      (($# > 1)) || misuse "$1: the value is missing"
      printf -v "${1#--}" '%s' "$2"
      shift
      ;;
    --frameworks) frameworks=yes ;;
    -*) misuse "there is no option \"$1\"" ;;
    *) words+=("$1") ;;
  esac
  shift
done
((${#words[@]} > 0)) || misuse "which version of PyTorch?"
version=${words[0]}
tests=("${words[@]:1}")
if [[ $frameworks == yes ]] && ((${#tests[@]} == 0)); then tests=(torch_frameworks); fi
if ((${#tests[@]} == 0)); then tests=(torch torch_device torch_training torch_examples); fi
for name in "${tests[@]}"; do
  [[ -f tests/integration/${name}_test.py ]] || misuse "there is no test \"$name\""
done

trap end_attended EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# What PyTorch $1 asks for, without CUDA's libraries that a toolkit has. A line each.
requirements() {
  "$python" - <<'PYTHON'
import importlib.metadata
import re

from pip._vendor.packaging.requirements import Requirement

print("nvidia-cufile", "nvidia-cuda-cupti", sep="\n")
for one in map(Requirement, importlib.metadata.requires("torch")):
    if one.marker is not None and not one.marker.evaluate({"extra": ""}):
        continue
    if re.match("nvidia-(cusparselt|nvshmem|nccl)", one.name) or not re.match("nvidia-|cuda-|triton", one.name):
        print(f"{one.name}{one.specifier}")
PYTHON
}

make_environment() {
  local venv=${GRADCUBE_VENVS:-$HOME/.cache/gradcube/venvs}/torch-$version
  local torch=torch==$version
  if [[ $version == newest ]]; then torch=torch; fi
  [[ -x $venv/bin/python ]] || attended "$python" -m venv "$venv"
  python=$venv/bin/python
  local pip=("$python" -m pip install --quiet --disable-pip-version-check)
  if [[ -n $toolkit ]]; then
    export LD_LIBRARY_PATH=$toolkit${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    attended "${pip[@]}" --no-deps "$torch"
    local needed
    mapfile -t needed < <(requirements)
    attended "${pip[@]}" "${needed[@]}"
  else
    attended "${pip[@]}" "$torch"
  fi
  # The examples' and ours; setuptools is what PyTorch's C++ extension tools need.
  attended "${pip[@]}" numpy scikit-learn matplotlib setuptools
  if [[ $frameworks == yes ]]; then
    # Those that ask for PyTorch come alone: pip would get all of CUDA after all.
    attended "${pip[@]}" --no-deps lightning pytorch-lightning lightning-utilities torchmetrics accelerate torchft
    attended "${pip[@]}" huggingface_hub safetensors psutil pyyaml tqdm aiohttp transformers 'ray[train]' \
      opentelemetry-api opentelemetry-sdk opentelemetry-exporter-otlp-proto-http \
      wheel einops hjson msgpack ninja py-cpuinfo pydantic
    # DeepSpeed's own build looks at the PyTorch that is there, and builds what it needs as it runs.
    attended env DS_BUILD_OPS=0 "${pip[@]}" --no-deps --no-build-isolation deepspeed
  fi
}

say_version() {
  "$python" -c 'import sys, torch; print(f"      PyTorch {torch.__version__}, Python {sys.version.split()[0]}")'
}

build_gradcube() {
  if [[ ! -f $build/build.ninja ]]; then configure_tree "$build" -Dtorch=disabled; fi
  build_tree "$build" cli/gradcube:executable gradcubed trainer/gradcube:shared_library
}

# Debian's PyTorch is taken into an environment, too: a wheel is installed nowhere else.
install_wheel() {
  if [[ $version == debian ]]; then
    local venv=${GRADCUBE_VENVS:-$HOME/.cache/gradcube/venvs}/torch-debian
    [[ -x $venv/bin/python ]] || attended "$python" -m venv --system-site-packages "$venv"
    python=$venv/bin/python
  fi
  attended "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
}

environment() {
  local place
  PATH=$(dirname "$python"):$PATH # the programs that some tests start by name are this Python's
  export PYTHONDONTWRITEBYTECODE=1 GRADCUBE_TEST_FABRIC=embedded
  if [[ -n $wheel ]]; then
    GRADCUBE_TOOL=$(command -v gradcube) GRADCUBE_DAEMON=$(command -v gradcubed)
    export GRADCUBE_TOOL GRADCUBE_DAEMON
    return
  fi
  place=$(cd "$build" && pwd)
  export GRADCUBE_TOOL=$place/cli/gradcube GRADCUBE_DAEMON=$place/dataplane/daemon/gradcubed
  export GRADCUBE_LIBRARY=$place/trainer/libgradcube.so PYTHONPATH=$source_root/trainer/python
}

run_tests() {
  local name failed=()
  for name in "${tests[@]}"; do
    echo "      $name"
    attended env --default-signal=INT "$python" "tests/integration/${name}_test.py" || failed+=("$name")
  done
  ((${#failed[@]} == 0)) || die "failed with PyTorch $version: ${failed[*]}"
}

expect 300 170 60 300
step "making a virtual environment with PyTorch $version"
if [[ $version != debian ]]; then make_environment; fi
say_version
if [[ -n $wheel ]]; then
  step "installing $wheel"
  install_wheel
else
  step "building Gradcube"
  build_gradcube
fi
step "building the backend for PyTorch"
environment
attended "$python" -m gradcube torch build
step "testing: ${tests[*]}"
run_tests
step_done
echo "passed with PyTorch $version: ${tests[*]}"
