# shellcheck shell=bash
# What bringup.sh knows of NICs, NUMA nodes and drivers: it reads sysfs, and writes it in one place.
# Sourced after lib.sh, never run.
#
# GRADCUBE_FAKE_HOST is for tests alone: a directory that holds a `sys`, a `proc` and a `bin` of
# made-up files. Then nothing of this host is looked at or changed, `ip` and `modprobe` come from its
# `bin`, and `bin/kernel VALUE FILE` does what the kernel does when VALUE is written to FILE.

host_root=${GRADCUBE_FAKE_HOST:-}
pci_bus=$host_root/sys/bus/pci
net_class=$host_root/sys/class/net
node_folder=$host_root/sys/devices/system/node
# shellcheck disable=SC2034  # used by bringup.sh
noiommu_switch=$host_root/sys/module/vfio/parameters/enable_unsafe_noiommu_mode
PATH=$PATH:/usr/sbin:/sbin
if [[ -n $host_root ]]; then PATH=$host_root/bin:$PATH; fi

pci_pattern='^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$'

# put VALUE FILE: the only write to sysfs.
put() {
  if [[ -n $host_root ]]; then
    kernel "$1" "$2"
  else
    printf '%s\n' "$1" >"$2"
  fi
}

# The name that a link points to, or nothing.
linked_name() {
  local target
  if target=$(readlink "$1"); then basename "$target"; fi
}

driver_of() { linked_name "$pci_bus/devices/$1/driver"; }
iommu_group_of() { linked_name "$pci_bus/devices/$1/iommu_group"; }

# The driver that a device is to get in place of the one that its id says; nothing for none.
override_of() {
  local override=
  read -r override <"$pci_bus/devices/$1/driver_override" || true
  if [[ $override != '(null)' ]]; then echo "$override"; fi
}

# The PCI device of a network interface. A virtio interface lies one folder below it.
pci_of_interface() {
  local path
  path=$(readlink -f "$net_class/$1/device") || return 0
  while [[ $path == */* ]]; do
    if [[ ${path##*/} =~ $pci_pattern ]]; then
      echo "${path##*/}"
      return 0
    fi
    path=${path%/*}
  done
}

interfaces() {
  local path
  for path in "$net_class"/*; do
    if [[ -e $path/address ]]; then echo "${path##*/}"; fi
  done
}

interfaces_of_pci() {
  local name
  for name in $(interfaces); do
    if [[ $(pci_of_interface "$name") == "$1" ]]; then echo "$name"; fi
  done
}

# find_nic NAME: the PCI address of what is named by PCI address, MAC or interface; nothing if there
# is none. Several interfaces may have one MAC (a bond and what it is made of): each has its device.
find_nic() {
  local name=${1,,} interface address
  if [[ $name =~ ^[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$ ]]; then name=0000:$name; fi
  if [[ $name =~ $pci_pattern ]]; then
    if [[ -d $pci_bus/devices/$name ]]; then echo "$name"; fi
  elif [[ $name =~ ^([0-9a-f]{2}:){5}[0-9a-f]{2}$ ]]; then
    for interface in $(interfaces); do
      read -r address <"$net_class/$interface/address" || true
      if [[ ${address,,} == "$name" ]]; then pci_of_interface "$interface"; fi
    done | sort -u
  elif [[ $1 =~ ^[^/[:space:]]+$ && -e $net_class/$1/address ]]; then
    pci_of_interface "$1"
  fi
}

# Why the kernel cannot do without an interface, or nothing: a route over it, or an interface above
# it. IPv6's routes on each link (fe80::, ff00::) are not counted: each interface that is up has them.
use_of_interface() {
  local routes upper family
  local families=(-4)
  if [[ -e $host_root/proc/net/if_inet6 ]]; then families+=(-6); fi
  routes=$(for family in "${families[@]}"; do
    ip "$family" -o route show table all dev "$1" || exit
  done) || {
    echo "it cannot be told which routes it has: \`ip route\` fails (package iproute2)"
    return 0
  }
  routes=$(grep -vE '^((local|multicast|anycast|unicast) )?(fe80|ff[0-9a-f]{2}):' <<<"$routes" || true)
  if grep -q '^default' <<<"$routes"; then
    echo "the default route goes over it"
  elif [[ -n $routes ]]; then
    echo "a route goes over it ($(head -n 1 <<<"$routes" | cut -d' ' -f1-2))"
  fi
  for upper in "$net_class/$1"/upper_*; do
    if [[ -e $upper ]]; then echo "the interface ${upper##*/upper_} is made of it"; fi
  done
}

# The pids of the processes that hold a device open, which is bound to vfio-pci.
users_of_pci() {
  local group
  group=$(iommu_group_of "$1")
  if [[ -z $group ]]; then return 0; fi
  find "$host_root"/proc/[0-9]*/fd -maxdepth 1 \( -lname "/dev/vfio/$group" -o \
    -lname "/dev/vfio/noiommu-$group" \) 2>/dev/null | sed -E 's|.*/proc/([0-9]+)/fd/.*|\1|' | sort -un
}

# The kernel would wait for the users of a device with vfio-pci, for ever if need be.
release_from_driver() {
  local users
  if [[ ! -e $pci_bus/devices/$1/driver ]]; then return 0; fi
  users=$(users_of_pci "$1" | paste -sd ' ')
  if [[ -n $users ]]; then
    echo "$1 is in use by process $users: end it first" >&2
    return 1
  fi
  put "$1" "$pci_bus/devices/$1/driver/unbind"
}

# give_to_driver PCI DRIVER OVERRIDE: takes the device from its driver, sets what overrides the
# choice of one ('' for nothing), and lets the kernel choose. No DRIVER leaves it without one.
give_to_driver() {
  release_from_driver "$1" && put "$3" "$pci_bus/devices/$1/driver_override" || return 1
  if [[ -z $2 ]]; then return 0; fi
  put "$1" "$pci_bus/drivers_probe" || return 1
  if [[ $(driver_of "$1") == "$2" ]]; then return 0; fi
  echo "$1 has the driver '$(driver_of "$1")' and not '$2': \`dmesg\` says more" >&2
  return 1
}

# Devices that share the isolation of one are handed out together: each has to have vfio-pci or no
# driver. Bridges (class 06) do not count.
group_companions() {
  local path driver class
  for path in "$pci_bus/devices/$1"/iommu_group/devices/*; do
    if [[ ! -e $path || ${path##*/} == "$1" ]]; then continue; fi
    read -r class <"$path/class" || true
    driver=$(linked_name "$path/driver")
    if [[ $class != 0x06* && -n $driver && $driver != vfio-pci ]]; then
      echo "${path##*/}"
    fi
  done
}

numa_nodes() {
  local path
  for path in "$node_folder"/node[0-9]*; do
    if [[ -d $path/hugepages ]]; then echo "${path##*/node}"; fi
  done | sort -n
}
