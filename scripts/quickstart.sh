#!/usr/bin/env bash
# From a fresh clone to nine ranks that train one model over an embedded BCube(3,2): installs what is
# missing, builds, measures, trains, and leaves nothing running. See --help.
#
# Without PyTorch it trains with NumPy: PyTorch and its headers are three quarters of the download,
# and who has no use for them sees the same all-reduce sooner.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$source_root"

picture=out/quickstart.png
log=out/quickstart.log

usage() {
  cat <<'USAGE'
usage: ./scripts/quickstart.sh [--torch] [OPTION OF `gradcube up`...]
Builds Gradcube, brings up an embedded BCube(3,2), measures all-reduce on the gradient sizes of
LeNet-5 and ResNet-50, trains a model with nine ranks, and brings everything down again. Where
PyTorch (with its headers, scikit-learn and Matplotlib) is installed, the model is a LeNet-5-style
network on handwritten digits by DistributedDataParallel, else a network of NumPy's. For instance,
on links of 1 Gbit/s that lose a packet in 1000:
  ./scripts/quickstart.sh --rate 1gbit --mtu 9000 --loss 0.001
  --torch   installs PyTorch and its headers first (300 MB)
USAGE
}

# Beside its own options `gradcube up` has one for each setting. The tool is not built yet, so their
# names are read from the table, whose rows begin with name and section.
is_up_option() {
  [[ $1 == --cluster || $1 == --json ]] ||
    sed -nE 's/^ *\{"([a-z-]+)", "[a-z]+", Reach::.*/--\1/p' control/settings/cluster_settings.h |
    grep -qxF -- "$1"
}

up_options=()
with_torch=false
has_topology=false
value_of= # the option whose value comes next
for argument in "$@"; do
  if [[ -n $value_of ]]; then
    value_of=
    up_options+=("$argument")
    continue
  fi
  case $argument in
    --torch)
      with_torch=true
      continue
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    --topology | --topology=*) has_topology=true ;;
  esac
  if [[ $argument == *= ]]; then misuse "$argument: the value is missing"; fi
  is_up_option "${argument%%=*}" || misuse "\"$argument\" is no option of gradcube up"
  if [[ $argument != *=* && $argument != --json ]]; then value_of=$argument; fi
  up_options+=("$argument")
done
if [[ -n $value_of ]]; then misuse "$value_of: the value is missing"; fi
if ! $has_topology; then up_options=(--topology "bcube:3,2" "${up_options[@]}"); fi

run_directory=
cluster=none # none, starting, up

bring_down() {
  case $cluster in
    starting) timeout 30 "$gradcube" down >/dev/null 2>&1 || true ;;
    # A second signal may find the cluster down already: what counts is that none is left.
    up) timeout 30 "$gradcube" down || ! "$gradcube" status >/dev/null 2>&1 || return 1 ;;
  esac
  cluster=none
  if [[ -n $run_directory ]]; then rm -rf "$run_directory"; fi
  run_directory=
}

by_hand= # how a user does what the script does now
finish() {
  local code=$?
  trap '' INT TERM
  end_attended
  bring_down || echo "the cluster did not come down; see:" \
    "GRADCUBE_RUN=$run_directory $gradcube status" >&2
  if ((code != 0)); then
    echo "${red}the quick start did not finish (exit code $code)$plain" >&2
    if [[ -n $by_hand ]]; then echo "the last step by hand: $by_hand" >&2; fi
  fi
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

packages=("${build_packages[@]}" "${training_packages[@]}")
if $with_torch || [[ -z $(missing_packages "${torch_packages[@]}") ]]; then
  with_torch=true
  packages+=("${torch_packages[@]}")
fi

to_install=70
if [[ -z $(missing_packages "${packages[@]}") ]]; then to_install=1; fi
to_build=170
if [[ -x build/cli/gradcube ]]; then to_build=5; fi # what has changed since
expect "$to_install" "$to_build" 1 10 10 1
step "installing what is missing"
install_packages "${packages[@]}"

targets=(cli/gradcube:executable gradcubed trainer/gradcube:shared_library)
backend=
if $with_torch; then
  step "building the tool, the daemon, the trainer's library and the backend for PyTorch"
  configure_tree build -Dbuildtype=release -Dtorch=auto
  # With clang++, for instance, meson leaves it out, and says why.
  backend=$(meson introspect build --targets | grep -o '"_gradcube_torch[^"]*"' | tr -d '"' || true)
  if [[ -n $backend ]]; then
    targets+=("$backend")
  else
    grep -o 'the backend for PyTorch .*' build/meson-logs/meson-log.txt | sed 's/^/      /'
  fi
else
  step "building the tool, the daemon and the trainer's library"
  configure_tree build -Dbuildtype=release -Dtorch=disabled
fi
build_tree build "${targets[@]}"
gradcube=$source_root/build/cli/gradcube
[[ -x $gradcube ]] || die "the build made no $gradcube"
# This build's library, where several builds lie side by side.
export GRADCUBE_LIBRARY=$source_root/build/trainer/libgradcube.so
export PYTHONPATH=$source_root/trainer/python${PYTHONPATH:+:$PYTHONPATH} OMP_NUM_THREADS=1

# A directory of its own, so that a cluster that the user has up is not disturbed; directly in
# /tmp, because a socket's path holds only 107 characters.
run_directory=$(mktemp -d /tmp/gradcube-quickstart.XXXXXX)
export GRADCUBE_RUN=$run_directory

step "bringing up: gradcube up ${up_options[*]}"
cluster=starting
by_hand="./build/cli/gradcube up ${up_options[*]}"
# What the tool proposes next is for those who type it themselves.
without_next_steps() { "$@" | sed '/next:$/,$d'; }
attended without_next_steps "$gradcube" up "${up_options[@]}"
cluster=up

step "measuring all-reduce: LeNet-5's gradient (12.5 MB), ResNet-50's (97 MB), every element checked"
by_hand="./build/cli/gradcube perf allreduce --sizes 12.5M,97M --check (after gradcube up)"
attended "$gradcube" perf allreduce --sizes 12.5M,97M --iterations 5 --check

mkdir -p out
training=("$gradcube" run --no-prefix -- /usr/bin/python3 -u)
if [[ -n $backend ]]; then
  step "training on handwritten digits with DistributedDataParallel, one rank per server"
  rm -f "$picture"
  training+=(trainer/examples/ddp_digits.py --picture "$picture")
else
  step "training on points of three spirals with NumPy, one rank per server"
  training+=(trainer/examples/spirals.py)
fi
by_hand="PYTHONPATH=trainer/python ./build/cli/gradcube run -- ${training[*]:4} (after gradcube up); its output: $log"
# Through a pipe with a name, so that the launcher itself is what a signal ends.
mkfifo "$run_directory/training"
tee "$log" <"$run_directory/training" &
tee_process=$!
attended "${training[@]}" >"$run_directory/training"
wait "$tee_process"
if [[ -n $backend && ! -s $picture ]]; then die "training wrote no $picture"; fi

by_hand="GRADCUBE_RUN=$run_directory ./build/cli/gradcube down"
step "bringing everything down"
bring_down || die "the cluster did not come down"
step_done

echo
echo "${bold}It works.$plain One model, trained by a process for every server:"
grep -E '^(test accuracy|seconds per step|weights):' "$log" | sed 's/^/  /' ||
  die "training told no results"
if [[ -n $backend ]]; then echo "  picture of loss and step time: $picture"; fi
echo
echo "What to try next:"
if [[ -n $backend ]]; then
  cat <<NEXT
  trainer/examples/ddp_digits.py, docs/pytorch.md
      the script that was trained, and how to run one of your own
NEXT
else
  cat <<NEXT
  trainer/examples/spirals.py
      the script that was trained, to begin one of your own with
NEXT
fi
if ! $with_torch; then
  cat <<NEXT
  ./scripts/quickstart.sh --torch
      the same with PyTorch's DistributedDataParallel
NEXT
fi
cat <<NEXT
  ./scripts/quickstart.sh --rate 1gbit --mtu 9000 --loss 0.001
      the same on slow links that lose packets
  ./build/cli/gradcube plan --topology bcube:3,2 --algorithm bml --server 2,1
      who owns what, who sends what to whom
  ./scripts/bench.sh
      how fast it is, next to Open MPI and Gloo
NEXT
