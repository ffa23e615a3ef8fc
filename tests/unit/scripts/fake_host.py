"""A made-up host for scripts/bringup.sh: a tree of sysfs and proc, and programs that act in it."""

import os
import pathlib
import sys
import textwrap

VFIO = "sys/bus/pci/drivers/vfio-pci"
NOIOMMU = "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"

# What the kernel does when a value is written to a file of sysfs. `log` has every write. `signal` is
# the number of a signal that the writer gets, and the write after which it does.
KERNEL = """
    import os, pathlib, shutil, sys
    value, file = sys.argv[1], pathlib.Path(sys.argv[2])
    root = pathlib.Path(__file__).resolve().parent.parent
    pci = root / "sys/bus/pci"
    with open(root / "log", "a") as log:
        log.write(f"{value} > {file.relative_to(root)}\\n")
    if str(file.relative_to(root)) in (root / "broken").read_text().split():
        sys.exit(f"{file}: Device or resource busy")
    def bind(address):
        device = pci / "devices" / address
        wanted = (device / "driver_override").read_text().strip()
        name = (device / "native").read_text() if wanted in ("", "(null)") else wanted
        if name and (pci / "drivers" / name).is_dir() and not (device / "driver").is_symlink():
            (device / "driver").symlink_to(pci / "drivers" / name)
    if file.name == "unbind":
        (pci / "devices" / value / "driver").unlink()
    elif file.name == "drivers_probe":
        bind(value)
    elif file.name == "nr_hugepages":
        room = int((file.parent / "room").read_text())
        file.write_text(f"{min(int(value), room)}\\n")
    elif file.name == "driver_override":
        file.write_text(f"{value or '(null)'}\\n")
    else:
        file.write_text(f"{value}\\n")
    number, _, write = (root / "signal").read_text().partition(" ")
    if write == f"{value} > {file.relative_to(root)}":
        os.kill(os.getppid(), int(number))
"""

MODPROBE = f"""
    import pathlib, shutil, sys
    root = pathlib.Path(__file__).resolve().parent.parent
    with open(root / "log", "a") as log:
        log.write("modprobe " + " ".join(sys.argv[1:]) + "\\n")
    if sys.argv[1:] == ["vfio-pci"]:
        (root / "{VFIO}").mkdir(parents=True)
        (root / "{NOIOMMU}").parent.mkdir(parents=True)
        (root / "{NOIOMMU}").write_text("N\\n")
    elif sys.argv[1:] == ["-r", "vfio-pci"]:
        shutil.rmtree(root / "{VFIO}")
        shutil.rmtree(root / "sys/module/vfio")
    else:
        sys.exit("modprobe: FATAL: Module not found")
"""

# ip -4|-6 -o route show table all dev NAME
IP = """
    import pathlib, sys
    root = pathlib.Path(__file__).resolve().parent.parent
    routes = root / "routes" / (sys.argv[-1] + sys.argv[1])
    sys.stdout.write(routes.read_text() if routes.exists() else "")
"""


class FakeHost:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        pci = "sys/bus/pci"
        for folder in (f"{pci}/devices", f"{pci}/drivers", "sys/class/net", "proc/net", "bin", "routes", "run"):
            (self.root / folder).mkdir(parents=True)
        self.write("broken", "")
        self.write("signal", "")
        self.write("proc/net/if_inet6", "")
        self.write("proc/meminfo", "MemTotal:  1000 kB\nHugepagesize:       2048 kB\n")
        for name, program in {"kernel": KERNEL, "modprobe": MODPROBE, "ip": IP}.items():
            path = self.root / "bin" / name
            path.write_text(f"#!{sys.executable} -SE\n" + textwrap.dedent(program))
            path.chmod(0o700)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def read(self, path):
        return (self.root / path).read_text().strip()

    def add_node(self, number, pages=0, room=1000):
        folder = f"sys/devices/system/node/node{number}/hugepages/hugepages-2048kB"
        self.write(f"{folder}/nr_hugepages", f"{pages}\n")
        self.write(f"{folder}/room", str(room))

    def pages(self, node):
        return int(self.read(f"sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"))

    def add_nic(self, address, interface=None, mac="02:00:00:00:00:01", driver="ixgbe", group=None, **more):
        device = self.root / "sys/bus/pci/devices" / address
        device.mkdir()
        (device / "class").write_text(more.get("device_class", "0x020000") + "\n")
        (device / "driver_override").write_text("(null)\n")
        (device / "native").write_text(driver)
        if driver:
            (self.root / "sys/bus/pci/drivers" / driver).mkdir(exist_ok=True)
            (device / "driver").symlink_to(self.root / "sys/bus/pci/drivers" / driver)
            # Written through the link, as in sysfs.
            (self.root / "sys/bus/pci/drivers" / driver / "unbind").touch()
        if group is not None:
            folder = self.root / "sys/kernel/iommu_groups" / str(group)
            (folder / "devices").mkdir(parents=True, exist_ok=True)
            (folder / "devices" / address).symlink_to(device)
            (device / "iommu_group").symlink_to(folder)
        if interface:
            below = device / "virtio0" if driver == "virtio-pci" else device
            below.mkdir(exist_ok=True)
            self.write(f"sys/class/net/{interface}/address", mac + "\n")
            (self.root / "sys/class/net" / interface / "device").symlink_to(below)

    def add_routes(self, interface, text, family=4):
        self.write(f"routes/{interface}-{family}", text)

    def driver(self, address):
        link = self.root / "sys/bus/pci/devices" / address / "driver"
        return os.path.basename(os.readlink(link)) if link.is_symlink() else None

    def override(self, address):
        return self.read(f"sys/bus/pci/devices/{address}/driver_override")

    def has_vfio(self):
        return (self.root / VFIO).is_dir()

    def noiommu(self):
        return self.read(NOIOMMU) if (self.root / NOIOMMU).exists() else None

    def log(self):
        return self.read("log") if (self.root / "log").exists() else ""
