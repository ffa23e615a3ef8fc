#!/usr/bin/env bash
# Prints one table: figure, value, bound or peer, ratio, target. Installs the peers (Open MPI, Gloo
# and DPDK's testpmd, the distribution's) and measures them in the same run. See --help.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$source_root"

usage() {
  cat <<'USAGE'
usage: ./scripts/bench.sh [--quick] [--check] [--json] [GROUP...]
Builds, measures, and prints one table: figure, value, bound or peer, ratio, target. Without a GROUP
it measures the engine beside its bounds and peers, some 6 minutes. A GROUP is a part of the names of
groups of rows, in any case: only these are measured ("hosts" or "idle jobs"); one that names none
prints all names, and "all" measures all, more than half an hour. The rows of "hosts" and "udp" need
root, as does one of "training": they make network namespaces. Only the rows of "training" and the
last of "hub" need PyTorch.
  --quick          fewer iterations: rougher, sooner
  --check          fail where a target is missed, too, and not only what could not be measured
  --json           one JSON object in place of the table
USAGE
}

options=("$@")
measuring=360
for option in "$@"; do
  case $option in
    --quick | --check | --json) ;;
    -h | --help)
      usage
      exit 0
      ;;
    -*) misuse "there is no option \"$option\"" ;;
    *) measuring=1800 ;;
  esac
done
# Before anything is built, where the tables' program can run already. Otherwise all may be wanted.
groups="training hub"
if [[ -x /usr/bin/python3 ]]; then
  groups=$(/usr/bin/python3 scripts/bench_table.py --check-groups "${options[@]}")
fi
packages=("${build_packages[@]}" "${bench_packages[@]}")
backend=disabled
if [[ $groups == *training* || $groups == *hub* ]]; then
  packages+=("${training_packages[@]}" "${torch_packages[@]}")
  backend=enabled
fi

# Standard output is the table's, or with --json the object's: what is told on the way goes to
# standard error.
{
  expect 70 300 $measuring
  step "installing what is missing"
  install_packages "${packages[@]}"
  # A directory of its own: meson remembers for the life of a build directory that a header of the
  # peers was not there. Benches that are enabled must all be there.
  step "building (release)"
  configure_tree build-bench -Dbuildtype=release -Dbenches=enabled -Dtorch=$backend
  build_tree build-bench
  step "measuring; anything else that runs on this machine now shows in the figures"
} >&2
exec /usr/bin/python3 scripts/bench_table.py --build build-bench "${options[@]}"
