#!/usr/bin/env bash
# Prepares this host for DPDK programs as testpmd's users know it: huge pages on each NUMA node,
# vfio-pci, NICs bound to it; and puts everything back. See --help.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/pci_devices.sh
source "$(dirname "${BASH_SOURCE[0]}")/pci_devices.sh"

usage() {
  cat <<'USAGE'
usage: ./scripts/bringup.sh [OPTION...] [-- OPTION OF gradcubed...]
       ./scripts/bringup.sh --undo [--dry-run]
Reserves huge pages and binds NICs to vfio-pci, as root. gradcubed takes its packet memory from huge
pages where enough are free. NICs with vfio-pci are for `gradcubed --server ... --nics` and other
programs of DPDK's, as testpmd; `--interfaces` uses interfaces of the kernel, and a NIC that is bound
to vfio-pci has none.
  --huge-pages SIZE  have at least SIZE of huge pages on each NUMA node: 1G, 512M
  --page-size SIZE   of which size: 2M (as a rule the default) or 1G
  --nic NIC          bind this NIC, named by its PCI address, its MAC or its interface. Can be
                     repeated. A NIC that has a route or carries a bond, a bridge or a VLAN is
                     refused; one of mlx4 or mlx5 stays with the kernel's driver, which DPDK uses
  --no-iommu         let NICs without an IOMMU have vfio-pci, too. Whoever uses such a NIC can make
                     it read and write all of this host's memory
  --dry-run          say what would be done, and do nothing
  --undo             put drivers, huge pages, module and no-IOMMU mode back as they were
  --                 then become gradcubed with these options; --undo after it has ended
  --run-dir DIR      the run directory of that gradcubed (default: gradcubed's own)
What --undo needs is kept in /run/gradcube-bringup, whoever starts it. If a step fails, what this run
has done is undone. A second run adds to what the first has done.
Exit codes: 0 success, 1 failure, 2 wrong command line or a NIC that is refused.
Examples:
  ./scripts/bringup.sh --huge-pages 1G --nic 0000:3b:00.0 --nic 0000:3b:00.1 --dry-run
  ./scripts/bringup.sh --huge-pages 1G --nic 02:00:5e:10:00:01
  dpdk-testpmd -a 0000:3b:00.0 -a 0000:3b:00.1 -- --interactive
  ./scripts/bringup.sh --undo
  ./scripts/bringup.sh --huge-pages 512M --nic 0000:3b:00.0 --nic 0000:3b:00.1 \
    -- --server 2,1 --nics 3b:00.0,3b:00.1 --cluster cube.toml
USAGE
}

refuse() {
  printf '%s%s: %s%s\n' "$red" "$(basename "$0")" "$*" "$plain" >&2
  exit 2
}

state_header='gradcube bringup 1'
huge_bytes=0
page_kilobytes=
nics=()
no_iommu=false
dry_run=false
undo=false
run_directory=
# The changes are the host's, and so is this: it outlives the login of whoever makes them, and a
# restart of the host ends both.
state_directory=$host_root/run/gradcube-bringup
state=$state_directory/bringup.state
start=false
daemon_options=()

# bytes_of SIZE OPTION: 512M, 1G, with the units of 1024 that huge pages have.
bytes_of() {
  [[ $1 =~ ^([1-9][0-9]{0,5})([KMG])i?B?$ ]] || refuse "$2 $1: expected a size such as 512M or 1G"
  local exponent=10
  case ${BASH_REMATCH[2]} in
    M) exponent=20 ;;
    G) exponent=30 ;;
  esac
  echo $((BASH_REMATCH[1] << exponent))
}

read_options() {
  while (($# > 0)); do
    case $1 in
      --huge-pages | --page-size | --nic | --run-dir)
        if (($# < 2)) || [[ -z $2 ]]; then refuse "$1 needs a value: see --help"; fi
        ;;&
      --huge-pages) huge_bytes=$(bytes_of "$2" "$1") && shift || exit ;;
      --page-size) page_kilobytes=$(($(bytes_of "$2" "$1") >> 10)) && shift || exit ;;
      --nic) nics+=("$2") && shift ;;
      --run-dir) run_directory=$2 && shift ;;
      --no-iommu) no_iommu=true ;;
      --dry-run) dry_run=true ;;
      --undo) undo=true ;;
      -h | --help) usage && exit ;;
      --)
        start=true
        shift
        daemon_options=("$@")
        return 0
        ;;
      *) refuse "unknown option $1: see --help" ;;
    esac
    shift
  done
}

check_options() {
  if $undo; then
    if ((huge_bytes > 0 || ${#nics[@]} > 0)) || $start || $no_iommu; then
      refuse "--undo puts everything back, and takes no option but --dry-run"
    fi
  elif ((huge_bytes == 0 && ${#nics[@]} == 0)); then
    refuse "nothing to do: name --huge-pages, --nic or --undo; see --help"
  fi
  if [[ -z $run_directory ]]; then return 0; fi
  $start || refuse "--run-dir is for the gradcubed that -- starts, and there is no --"
  daemon_options=(--run-dir "$run_directory" "${daemon_options[@]}")
}

# ---- the state: what to put back, a line for each change, the oldest first

changes=()       # the lines, without the header
changes_before=0 # of earlier runs

is_change() {
  local number='[0-9]{1,9}' name='[A-Za-z0-9_-]{1,63}'
  [[ $1 =~ ^pages\ [0-9]{1,4}\ [0-9]{1,8}\ $number$ || $1 == 'module vfio-pci' ||
    $1 =~ ^noiommu\ [YN]$ || $1 =~ ^nic\ ([0-9a-f:.]+)\ $name\ $name$ ]] || return 1
  [[ $1 != nic* || ${BASH_REMATCH[1]} =~ $pci_pattern ]]
}

# is_ours PATH: root's or this user's, no link, and writable by nobody else.
is_ours() {
  [[ ! -L $1 && ! $(stat -c %A "$1") =~ ^.{5}w|^.{8}w ]] || return 1
  [[ -O $1 || $(stat -c %u "$1") == 0 ]]
}

# What is in the state decides what root writes to sysfs, and where root writes the state must be no
# trap: nobody else may have a hand in either.
read_state() {
  if [[ ! -e $state && ! -L $state ]]; then return 0; fi
  if [[ ! -f $state ]] || ! is_ours "$state" || ! is_ours "$state_directory"; then
    die "$state is not a file that root or this user alone can write: nothing was changed"
  fi
  local lines line
  mapfile -t lines <"$state"
  [[ ${lines[0]:-} == "$state_header" ]] || die "$state is not a state of this script"
  for line in "${lines[@]:1}"; do
    is_change "$line" || die "$state has a line that this script does not write: ${line@Q}"
  done
  changes=("${lines[@]:1}")
  changes_before=${#changes[@]}
}

write_state() {
  if $dry_run; then return 0; fi
  if ((${#changes[@]} == 0)); then
    rm -f "$state"
    return 0
  fi
  printf '%s\n' "$state_header" "${changes[@]}" >"$state.new"
  mv "$state.new" "$state"
}

# remember CHANGE: before it is made, so that it can be undone however this ends.
remember() {
  changes+=("$1")
  write_state
}

# try TEXT COMMAND...: says what is done and does it, or says what would be.
try() {
  if $dry_run; then
    echo "      would $1"
  else
    echo "      $1"
    "${@:2}"
  fi
}

# ---- undo

undo_change() {
  local kind a b c
  read -r kind a b c <<<"$1"
  case $kind in
    pages)
      local count=$node_folder/node$a/hugepages/hugepages-${b}kB/nr_hugepages
      try "put node $a back to $c huge pages of $b kB" put "$c" "$count"
      ;;
    module) try "unload vfio-pci" modprobe -r vfio-pci ;;
    noiommu)
      # Gone with the module.
      if [[ ! -e $noiommu_switch ]]; then return 0; fi
      try "put the no-IOMMU mode back to $a" put "$a" "$noiommu_switch"
      ;;
    nic)
      if [[ ! -d $pci_bus/devices/$a ]]; then
        echo "      $a is not there any more: nothing to put back"
        return 0
      fi
      b=${b#-} c=${c#-}
      if [[ $(driver_of "$a") == "$b" && $(override_of "$a") == "$c" ]]; then return 0; fi
      try "give $a back to ${b:-no driver}" give_to_driver "$a" "$b" "$c"
      ;;
  esac
}

# undo_after COUNT: the newest first; what cannot be undone stays in the state.
undo_after() {
  local kept=("${changes[@]:0:$1}") stuck=() i
  for ((i = ${#changes[@]} - 1; i >= $1; --i)); do
    undo_change "${changes[i]}" || stuck=("${changes[i]}" "${stuck[@]}")
  done
  changes=("${kept[@]}" "${stuck[@]}")
  write_state
  ((${#stuck[@]} == 0))
}

# ---- bring-up

check_pages() {
  if ((huge_bytes == 0)); then return 0; fi
  [[ -n $(numa_nodes) ]] || die "the kernel has no huge pages (CONFIG_HUGETLBFS)"
  if [[ -z $page_kilobytes ]]; then
    page_kilobytes=$(sed -nE 's/^Hugepagesize: +([0-9]+) kB$/\1/p' "$host_root/proc/meminfo")
  fi
  local sizes folder
  folder=$node_folder/node$(numa_nodes | head -n 1)/hugepages
  sizes=$(find "$folder" -maxdepth 1 -name 'hugepages-*kB' -printf '%f ' | sort)
  [[ -n $page_kilobytes && -d $folder/hugepages-${page_kilobytes}kB ]] ||
    refuse "this CPU has no huge pages of $page_kilobytes kB, but $sizes"
}

reserve_pages() {
  if ((huge_bytes == 0)); then return 0; fi
  local wanted=$(((huge_bytes / 1024 + page_kilobytes - 1) / page_kilobytes)) node count file
  for node in $(numa_nodes); do
    file=$node_folder/node$node/hugepages/hugepages-${page_kilobytes}kB/nr_hugepages
    read -r count <"$file"
    if ((count >= wanted)); then
      echo "      node $node has $count huge pages of $page_kilobytes kB already"
      continue
    fi
    remember "pages $node $page_kilobytes $count"
    try "reserve $wanted huge pages of $page_kilobytes kB on node $node, which has $count" \
      put "$wanted" "$file"
    if $dry_run; then continue; fi
    read -r count <"$file"
    ((count >= wanted)) ||
      die "node $node has memory for $count of $wanted huge pages: ask for fewer, or reserve them" \
        "when Linux starts (hugepagesz=${page_kilobytes}K hugepages=$wanted on its command line)"
  done
}

to_bind=() # PCI addresses, checked

check_nic() {
  local name=$1 pci class driver interface use
  pci=$(find_nic "$name")
  [[ -n $pci ]] ||
    refuse "--nic $name: no NIC of this host has this PCI address, MAC or interface (a NIC without" \
      "a driver of the kernel is known by its PCI address alone)"
  [[ $pci != *$'\n'* ]] || refuse "--nic $name: several NICs have it: ${pci//$'\n'/, }"
  read -r class <"$pci_bus/devices/$pci/class" || true
  [[ $class == 0x02* ]] || refuse "--nic $name: $pci is no network controller (its class is $class)"
  driver=$(driver_of "$pci")
  case $driver in
    mlx4_core | mlx5_core)
      echo "      $pci stays with $driver: DPDK uses it beside the kernel"
      return 0
      ;;
    vfio-pci)
      echo "      $pci is bound to vfio-pci already"
      return 0
      ;;
  esac
  for interface in $(interfaces_of_pci "$pci"); do
    use=$(use_of_interface "$interface")
    use=${use%%$'\n'*}
    [[ -z $use ]] ||
      refuse "--nic $name: $pci is $interface, and the kernel needs it: $use. Without it this host" \
        "may be out of reach; take its routes and addresses away first if that is what you want"
  done
  if [[ " ${to_bind[*]} " != *" $pci "* ]]; then to_bind+=("$pci"); fi
}

check_isolation() {
  local pci companion
  for pci in "${to_bind[@]}"; do
    if [[ -z $(iommu_group_of "$pci") ]] && ! $no_iommu; then
      die "$pci has no IOMMU, which vfio-pci needs. Switch it on in the firmware (VT-d, AMD-Vi) and" \
        "on Linux's command line (intel_iommu=on iommu=pt; AMD: iommu=pt), and start again. A" \
        "machine that has none: --no-iommu, whose price --help names"
    fi
    for companion in $(group_companions "$pci"); do
      [[ " ${to_bind[*]} " == *" $companion "* ]] ||
        die "$pci shares its IOMMU group with $companion ($(driver_of "$companion")): vfio-pci" \
          "hands them out together only, so name both, or put the NIC into another slot"
    done
  done
}

load_driver() {
  if ((${#to_bind[@]} == 0)); then return 0; fi
  if [[ ! -d $pci_bus/drivers/vfio-pci ]]; then
    remember "module vfio-pci"
    try "load vfio-pci" modprobe vfio-pci ||
      die "the module vfio-pci does not load: is it part of this kernel's package?"
  fi
  local pci mode=
  for pci in "${to_bind[@]}"; do
    if [[ -z $(iommu_group_of "$pci") ]]; then mode=Y; fi
  done
  if [[ -z $mode ]]; then return 0; fi
  if $dry_run; then
    echo "      would switch the no-IOMMU mode on"
    return 0
  fi
  [[ -e $noiommu_switch ]] || die "this kernel has no no-IOMMU mode (CONFIG_VFIO_NOIOMMU)"
  read -r mode <"$noiommu_switch"
  if [[ $mode == Y ]]; then return 0; fi
  remember "noiommu $mode"
  try "switch the no-IOMMU mode on: NICs without an IOMMU reach all memory" put Y "$noiommu_switch"
}

bind_nics() {
  local pci driver override
  for pci in "${to_bind[@]}"; do
    driver=$(driver_of "$pci") override=$(override_of "$pci")
    remember "nic $pci ${driver:--} ${override:--}"
    try "bind $pci to vfio-pci, and take it from ${driver:-no driver}" \
      give_to_driver "$pci" vfio-pci vfio-pci || die "$pci cannot be bound"
  done
}

# However this ends, what this run has changed stays only if all of it has succeeded. A signal may
# come when the last command has succeeded, so the exit code does not say whether it has.
changing=false
finish() {
  # In a trap, `return` alone would return this code from each function: so all here return 0.
  local code=$?
  # Nothing stops the undoing: neither a terminal that has gone nor a reader of what is said.
  trap '' HUP INT TERM PIPE
  set +e
  if $changing; then
    echo "      undoing what this run has done" >&2
    undo_after "$changes_before" || echo "      not all of it could be undone: see $state" >&2
  fi
  exit "$code"
}

find_daemon() {
  local path
  for path in "${GRADCUBED:-}" "$source_root/build/dataplane/daemon/gradcubed" \
    "$(command -v gradcubed || true)"; do
    if [[ -x $path ]]; then
      echo "$path"
      return 0
    fi
  done
  refuse "no gradcubed: build it (meson setup build && ninja -C build), or set GRADCUBED"
}

bring_up() {
  local name daemon
  if $start; then daemon=$(find_daemon) || exit; fi
  check_pages
  for name in "${nics[@]}"; do check_nic "$name"; done
  check_isolation
  trap finish EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 141' PIPE
  trap 'exit 143' TERM
  changing=true
  reserve_pages
  load_driver
  bind_nics
  changing=false
  if ! $start; then return 0; fi
  try "start $daemon ${daemon_options[*]}" exec "$daemon" "${daemon_options[@]}" 9<&-
}

read_options "$@"
check_options
if ! $dry_run; then
  ((EUID == 0)) || [[ -n $host_root ]] || die "run it as root: drivers and huge pages are the host's"
  # Others may look, for --dry-run.
  [[ -d $state_directory ]] || mkdir -m 755 "$state_directory"
  is_ours "$state_directory" ||
    die "$state_directory is not a directory that root or this user alone can write: nothing was" \
      "changed"
  exec 9<"$state_directory"
  flock -n 9 || die "another bringup.sh is at work on this host"
fi
read_state
if $undo; then
  ((${#changes[@]} > 0)) || echo "      nothing to undo: there is no $state"
  undo_after 0 || die "not all could be put back; run --undo again when what is in the way is gone"
else
  bring_up
fi
