#!/usr/bin/env bash
# Prints one table: figure, value, bound or peer, ratio, target. Installs the peers (Open MPI and
# Gloo, the distribution's) and measures them in the same session. Options: see bench_table.py.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$source_root"

for argument in "$@"; do
  if [[ $argument == -h || $argument == --help ]]; then
    exec /usr/bin/python3 scripts/bench_table.py --help
  fi
done

# Standard output is the table's, or with --json the object's: what is told on the way goes to
# standard error.
{
  steps_total=3
  step "installing what is missing"
  install_packages "${build_packages[@]}" "${bench_packages[@]}"
  # A directory of its own: meson remembers for the life of a build directory that a header of the
  # peers was not there. Benches that are enabled must all be there.
  step "building (release)"
  configure_tree build-bench -Dbuildtype=release -Dbenches=enabled -Dtests=disabled -Dheaders=false
  build_tree build-bench
  step "measuring; anything else that runs on this machine now shows in the figures"
} >&2
exec /usr/bin/python3 scripts/bench_table.py --build build-bench "$@"
