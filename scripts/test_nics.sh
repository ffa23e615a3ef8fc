#!/usr/bin/env bash
# Runs a server on a NIC that DPDK drives, in each of two emulated machines. See --help.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$source_root"

usage() {
  cat <<'USAGE'
usage: ./scripts/test_nics.sh
Starts two machines under QEMU, which emulates an Intel 82540EM NIC and an IOMMU for each. In both,
bringup.sh reserves huge pages and binds the NIC to vfio-pci, gradcubed runs a server of a star:2 on
it, all-reduces are checked to the last bit, and bringup.sh puts everything back. Installs QEMU and
downloads a kernel of the distribution's (70 MB) into out/nics/. The processors are emulated too, so
it takes some minutes and says nothing about speed.
USAGE
}

case ${1:-} in
  "") ;;
  -h | --help)
    usage
    exit 0
    ;;
  *)
    usage >&2
    exit 2
    ;;
esac

folder=$source_root/out/nics
image=$folder/image
programs=(build/cli/gradcube build/dataplane/daemon/gradcubed)
drivers=(librte_mempool_ring librte_net_e1000 librte_bus_pci librte_bus_vdev)
patience=300
machines=()

# shellcheck disable=SC2317  # the trap calls it
end_machines() {
  local machine
  for machine in "${machines[@]}"; do kill "$machine" 2>/dev/null || true; done
}
trap end_machines EXIT

# The kernel and its modules, as the distribution packs them.
fetch_kernel() {
  local package
  package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[^ ]*\)/\1/p' |
    head -n 1)
  [[ -n $package ]] || die "the package linux-image-amd64 is not known; run apt-get update"
  if [[ ! -d $folder/kernel/lib/modules ]]; then
    rm -rf "$folder/kernel" "$folder"/linux-image-*.deb
    (cd "$folder" && apt-get -q download "$package")
    dpkg-deb --extract "$folder"/linux-image-*.deb "$folder/kernel"
  fi
  kernel_version=$(basename "$folder"/kernel/lib/modules/*)
  depmod --basedir "$folder/kernel" "$kernel_version"
}

# add_libraries_of FILE: at their own places. Those of DPDK's drivers are links into one folder, and
# stay that: from two places they would be loaded twice.
add_libraries_of() {
  local library
  ldd "$1" | sed -n 's/.*=> \(\/[^ ]*\).*/\1/p; s/^\t\(\/[^ ]*\).*/\1/p' |
    while read -r library; do
      mkdir -p "$image$(dirname "$library")"
      if [[ $(realpath "$library") == "$driver_folder"/* ]]; then
        cp --no-dereference "$library" "$image$library"
      else
        cp --dereference "$library" "$image$library"
      fi
    done
}

add_modules() {
  local module
  for module in e1000 vfio-pci vfio_iommu_type1; do
    modprobe --dirname "$folder/kernel" --set-version "$kernel_version" --show-depends "$module" |
      sed -n 's/^insmod \([^ ]*\).*/\1/p' | while read -r file; do
      install -D -m 644 "$file" "$image${file#"$folder/kernel"}"
    done
  done
  cp "$folder/kernel/lib/modules/$kernel_version"/modules.{builtin,builtin.modinfo,order} \
    "$image/lib/modules/$kernel_version/"
  depmod --basedir "$image" "$kernel_version"
}

make_image() {
  rm -rf "$image"
  mkdir -p "$image"/usr/{bin,sbin,lib,lib64} "$image"/{proc,sys,dev,run,scripts} \
    "$image$driver_folder"
  ln -s usr/bin usr/sbin usr/lib usr/lib64 "$image/"
  local tool
  for tool in $(busybox --list); do ln -s busybox "$image/usr/bin/$tool"; done
  for tool in busybox bash find flock grep ip modprobe readlink realpath sed stat; do
    tool=$(PATH=$PATH:/usr/sbin command -v "$tool")
    rm -f "$image/usr/bin/$(basename "$tool")"
    cp --dereference "$tool" "$image/usr/bin/"
    [[ $tool == */busybox ]] || add_libraries_of "$tool"
  done
  for tool in "${programs[@]}"; do
    install -s -m 755 "$tool" "$image/usr/bin/"
    add_libraries_of "$tool"
  done
  for tool in "${drivers[@]}"; do
    cp --no-dereference "$driver_folder/$tool".so* "$image$driver_folder/"
    add_libraries_of "$driver_folder/$tool.so"
  done
  add_modules
  cp scripts/{bringup,pci_devices,lib}.sh "$image/scripts/"
  cp tests/nics/init "$image/init"
  (cd "$image" && find . | cpio --quiet -o -H newc | gzip -1) >"$folder/image.gz"
}

# start_machine NUMBER on|off: which of the two makes the wire between them.
start_machine() {
  timeout "$patience" qemu-system-x86_64 -machine q35 -accel tcg -cpu max -smp 2 -m 1024 \
    -nographic -no-reboot -device intel-iommu,caching-mode=on \
    -kernel "$folder/kernel/boot/vmlinuz-$kernel_version" -initrd "$folder/image.gz" \
    -append "console=ttyS0 quiet no_timer_check intel_iommu=on server=$1" \
    -netdev "stream,id=wire,server=$2,addr.type=unix,addr.path=$folder/wire" \
    -device "e1000,netdev=wire,romfile=,mac=02:00:00:00:00:0$1" \
    </dev/null >"$folder/machine-$1.log" 2>&1 &
  machines+=($!)
}

run_machines() {
  rm -f "$folder/wire"
  start_machine 0 on
  local i
  for ((i = 0; i < 100; ++i)); do
    [[ ! -S $folder/wire ]] || break
    sleep 0.1
  done
  start_machine 1 off
  wait "${machines[@]}" || true
  machines=()
}

expect 60 150 60 300
step "installing what is missing"
install_packages "${build_packages[@]}" qemu-system-x86 busybox-static cpio kmod iproute2
step "building (release)"
configure_tree build -Dbuildtype=release
build_tree build cli/gradcube:executable gradcubed
step "making the machines' image in ${folder#"$source_root/"}"
mkdir -p "$folder"
# Where DPDK looks for drivers.
driver_folder=$(dirname "$(find /usr/lib -path '*dpdk/pmds*' -name librte_net_e1000.so)")
fetch_kernel
make_image
step "running two machines, at most $patience s"
run_machines
step_done

failed=0
for number in 0 1; do
  log=$folder/machine-$number.log
  echo "machine $number:"
  grep -a "guest: " "$log" | tr -d '\r' | sed "s/.*guest: /  /" || true
  if ! grep -aq "guest: passed" "$log"; then
    failed=1
    echo "  did not come to its end: see ${log#"$source_root/"}"
  fi
done
exit "$failed"
