"""`gradcube setup`: hosts whose ports are cabled in any order find out what they are, and no line is edited by hand.

A network namespace stands for a host, a bridge for a switch, a pair of veths for a cable. What is cabled where is drawn
by the seed. Needs root and iproute2.
"""

import contextlib
import json
import os
import pathlib
import random
import subprocess
import tempfile
import tomllib

from fabrics import PATIENCE, TOOL, seed, skip_without_namespaces
from harness import TestCase, main, wait_until


def joints_of(spec):
    """The (server, port) that each switch or cable joins, servers by number, of a star, a bcube:n,k or a torus."""
    kind, numbers = spec.split(":")
    numbers = [int(number) for number in numbers.split(",")]
    radix, levels = numbers[0], (numbers[1:] or [1])[0]
    for level in range(levels):
        weight = radix**level
        for server in range(radix**levels):
            digit = server // weight % radix
            if kind == "torus":
                after = server + weight * ((digit + 1) % radix - digit)
                yield [(server, 2 * level), (after, 2 * level + 1)]
            elif digit == 0:
                yield [(server + weight * other, level) for other in range(radix)]


class CabledHosts:
    """with CabledHosts("bcube:2,2") as hosts: ... ; node1, node2, ... in an order that has nothing to do with it."""

    def __init__(self, spec, spare=1):
        draw = random.Random(f"{seed()} {spec}")
        self.joints = list(joints_of(spec))
        servers = 1 + max(server for joint in self.joints for server, _ in joint)
        ports = 1 + max(port for joint in self.joints for _, port in joint)
        self.names = [f"node{number}" for number in range(1, servers + 1)]
        self.who = draw.sample(self.names, servers)
        # Each host calls its ports differently, and has some that lead nowhere.
        called = [f"eth{number}" for number in range(ports + spare)]
        self.ports = [draw.sample(called, ports + spare) for _ in self.who]

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gradcube-test-")))
            self.switches = self.namespace(stack)
            self.namespaces = {name: self.namespace(stack) for name in self.names}
            stack.callback(self.tool, "down")
            self.cable()
            lines = []
            for number, name in enumerate(self.names, 1):
                (self.directory / name).mkdir()
                lines.append(f"{name} 198.18.0.{number}\n")
                self.ip(name, f"link add name mgmt type bridge\naddr add 198.18.0.{number}/24 dev mgmt\nlink set dev mgmt up")
            (self.directory / "list").write_text("".join(lines))
            self.launcher = self.script("launch", "")
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def namespace(self, stack):
        process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        stack.callback(process.wait, PATIENCE)
        stack.callback(process.kill)
        own = os.readlink("/proc/self/ns/net")
        wait_until(lambda: os.readlink(f"/proc/{process.pid}/ns/net") != own, "the namespace")
        return process.pid

    def script(self, name, lower):
        """A launcher: what runs on a host runs in its namespace, and has a run directory of its own."""
        path = self.directory / name
        cases = "".join(f"{host}) pid={pid} ;;\n" for host, pid in self.namespaces.items())
        path.write_text(
            f"#!/bin/sh\nhost=$1\nshift\ncase $host in\n{cases}esac\n"
            f'exec nsenter -t "$pid" -n env XDG_RUNTIME_DIR={self.directory}/"$host" {lower} "$@"\n'
        )
        path.chmod(0o755)
        return f"{path} {{host}}"

    def cable(self):
        for number, joint in enumerate(self.joints):
            ends = [(self.namespaces[self.who[server]], self.ports[server][port]) for server, port in joint]
            if len(ends) == 2:
                (one, own), (other, far) = ends
                lines = [f"link add name {own} netns {one} type veth peer name {far} netns {other}"]
            else:
                lines = [f"link add name sw{number} type bridge", f"link set dev sw{number} up"]
                for place, (pid, own) in enumerate(ends):
                    lines.append(f"link add name c{number}.{place} type veth peer name {own} netns {pid}")
                    lines.append(f"link set dev c{number}.{place} master sw{number} up")
            self.ip(None, "\n".join(lines))
        for server, name in enumerate(self.who):
            cabled = {port for joint in self.joints for at, port in joint if at == server}
            lines = [f"link set dev {self.ports[server][port]} up" for port in cabled]
            for spare in self.ports[server][len(cabled) :]:
                lines.append(f"link add name {spare} type veth peer name far-{spare}")  # down
            self.ip(name, "\n".join(lines))
        # One cable carries less.
        (server, port), *_ = self.joints[0]
        self.ip(self.who[server], f"link set dev {self.ports[server][port]} mtu 1400")

    def ip(self, name, batch):
        pid = self.switches if name is None else self.namespaces[name]
        command = ["nsenter", "-t", str(pid), "-n", "ip", "-batch", "-"]
        subprocess.run(command, input=batch + "\n", text=True, check=True, timeout=PATIENCE)

    def is_without_carrier(self, name, port):
        """As the kernel tells it, some time after the other end of the cable went down."""
        command = ["nsenter", "-t", str(self.namespaces[name]), "-n", "ip", "-json", "link", "show", "dev", port]
        (shown,) = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE).stdout)
        return "NO-CARRIER" in shown["flags"]

    def tool(self, *arguments):
        """Typed on a machine that is none of the hosts."""
        kept = {key: value for key, value in os.environ.items() if key != "GRADCUBE_RUN"}
        return subprocess.run(
            [TOOL, *arguments],
            env={**kept, "XDG_RUNTIME_DIR": str(self.directory)},
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE,
        )

    def set_up(self, *flags, launcher=None):
        return self.tool("setup", "--hosts", "list", "--wait", "0.2", "--launcher", launcher or self.launcher, *flags)

    def joined(self):
        """What joins which ports of which hosts."""
        return {
            frozenset((self.who[server], self.ports[server][port]) for server, port in joint) for joint in self.joints
        }


class Cables(TestCase):
    def assert_found(self, hosts, spec):
        """The cluster file says of the cables what there is."""
        cluster = tomllib.loads((hosts.directory / "cluster.toml").read_text())
        self.assertEqual(cluster["topology"]["spec"], spec)
        self.assertEqual(cluster["link"]["mtu"], 1400)
        names = [line.split()[0] for line in (hosts.directory / "cluster.hosts").read_text().splitlines()[1:]]
        self.assertCountEqual(names, hosts.names)
        self.assertEqual(cluster["topology"]["hosts"], [f"198.18.0.{name.removeprefix('node')}" for name in names])
        rows = cluster["topology"]["interfaces"]
        found = {frozenset((names[server], rows[server][port]) for server, port in joint) for joint in joints_of(spec)}
        self.assertEqual(found, hosts.joined())

    def test_in_any_order_are_recognised(self):
        for spec in "star:3", "torus:5,1", "bcube:3,2", "torus:3,2":
            with self.subTest(spec=spec, seed=seed()), CabledHosts(spec) as hosts:
                done = hosts.set_up("--json")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(json.loads(done.stdout)["topology"], spec)
                self.assert_found(hosts, spec)

    def test_become_a_cluster_by_one_command(self):
        with CabledHosts("bcube:2,2") as hosts:
            done = hosts.set_up("--up")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("bcube:2,2 is in cluster.toml", done.stdout)
            self.assertIn("also possible: --topology torus:4,1", done.stdout)
            self.assertIn("all 4 links of bcube:2,2 are as configured", done.stdout)
            self.assert_found(hosts, "bcube:2,2")
            check = hosts.tool("check")
            self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
            flags = ("--sizes", "4,100K", "--iterations", "2", "--check", "--json")
            perf = hosts.tool("perf", "allreduce", *flags)
            self.assertEqual(perf.returncode, 0, perf.stderr)
            self.assert_right(json.loads(perf.stdout)["results"])
            self.assertEqual(hosts.tool("down").returncode, 0)
            # What is there is not written over.
            again = hosts.set_up()
            self.assertEqual(again.returncode, 2)
            self.assertIn("cluster.toml is there already", again.stderr)
            self.assertIn("`gradcube up --cluster cluster.toml --hosts cluster.hosts", again.stderr)
            # As typed later, with what setup has written.
            up = hosts.tool("up", "--cluster", "cluster.toml", "--hosts", "cluster.hosts", "--launcher", hosts.launcher)
            self.assertEqual(up.returncode, 0, up.stderr)

    def test_that_form_no_topology_are_named(self):
        with CabledHosts("bcube:2,2") as hosts:
            (server, port), (other, far) = hosts.joints[1]
            hosts.ip(hosts.who[server], f"link set dev {hosts.ports[server][port]} down")
            wait_until(lambda: hosts.is_without_carrier(hosts.who[other], hosts.ports[other][far]), "no carrier")
            done = hosts.set_up()
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn("these cables form no star, ring, torus or BCube:", done.stdout)
            self.assertIn(f"{hosts.who[server]} {hosts.ports[server][port]} is down: `ip link set", done.stdout)
            self.assertIn(f"{hosts.who[other]} {hosts.ports[other][far]} has no carrier", done.stdout)
            self.assertFalse((hosts.directory / "cluster.toml").exists())
            # The same cables as another topology; and of some ports alone.
            hosts.ip(hosts.who[server], f"link set dev {hosts.ports[server][port]} up")
            done = hosts.set_up("--topology", "star:4")
            self.assertEqual(done.returncode, 1)
            self.assertIn("these hosts are not cabled as star:4, but as bcube:2,2 or torus:4,1", done.stderr)
            done = hosts.set_up("--interfaces", "eth9")
            self.assertIn("host node1: there is no Ethernet interface 'eth9' here", done.stderr)
            poor = hosts.script("poor", "setpriv --bounding-set=-net_raw --inh-caps=-net_raw")
            done = hosts.set_up(launcher=poor)
            self.assertEqual(done.returncode, 1)
            self.assertIn("host node1: this user may not open network interfaces: it needs CAP_NET_RAW", done.stderr)


if __name__ == "__main__":
    skip_without_namespaces()
    main()
