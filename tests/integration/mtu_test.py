"""A switch whose port takes short frames alone: its links are not used, what is wrong is said, and all is well once it is.

On veths a switch port of the test bed, on datagrams that of a bridge between hosts that are namespaces. Needs root and
iproute2.
"""

import contextlib
import json
import subprocess

from fabrics import PATIENCE, skip_without_namespaces
from harness import Cluster, TestCase, main, wait_until
from namespaces import Hosts

# How fast a link is, and what is sent again, depends on what else the machine does.
LENIENT = ("--least-rate", "0.01", "--most-lost", "0.9")


class OnVeths(TestCase):
    def setUp(self):
        super().setUp()
        self.cluster = Cluster("--topology", "bcube:2,2", "--mtu", "9000")
        self.addCleanup(self.cluster.end)
        # The port of [1,0] at level 1, where [0,0] is, comes to a bridge of its own, and a cable joins that to the other.
        self.ip(
            "link add name sw2 type bridge",
            "link set dev sw2 up",
            "link add name to2 mtu 9000 type veth peer name from2 mtu 9000",
            "link set dev from2 master sw2 up",
            "link set dev p1-0.1 master sw2",
            "link set dev to2 master sw-x-0 up",
        )

    def ip(self, *lines):
        command = ["nsenter", "-t", str(self.cluster.pid()), "-n", "ip", "-batch", "-"]
        subprocess.run(command, input="\n".join(lines) + "\n", text=True, check=True, timeout=PATIENCE)

    def set_mtu(self, mtu):
        self.ip(*(f"link set dev {end} mtu {mtu}" for end in ("to2", "from2")))

    def wrong(self):
        """By (server, port): what is wrong there."""
        servers = self.cluster.status()["servers"]
        ports = {(tuple(server["address"]), port["port"]): port for server in servers for port in server["ports"]}
        return {name: port["wrong"] for name, port in ports.items() if port["wrong"]}

    def test_links_through_it_are_not_used_until_it_takes_full_frames(self):
        self.set_mtu(1500)
        short = "to and from {} small frames pass, frames of MTU 9000 do not: raise the MTU"
        ends = {((0, 0), 1): "[1,0]", ((1, 0), 1): "[0,0]"}
        said = lambda: {name: text for name, text in self.wrong().items() if short.format(ends.get(name)) in text}
        wait_until(lambda: said().keys() == ends.keys() == self.wrong().keys(), "both ends to say so of both directions")
        for (server, port), text in said().items():
            self.assertRegex(text, rf"^port {port} of server \[{server[0]},0\]: to and from ")
        self.assertIn("small frames pass, frames of MTU 9000 do not: raise the MTU", self.cluster.tool("status").stdout)
        wait_until(lambda: "small frames pass, frames of MTU 9000 do not" in self.cluster.log(), "the log to say so")
        self.cluster.perf("--sizes", "1M", "--iterations", "2")  # by a detour
        code, report = self.cluster.check(*LENIENT)
        self.assertEqual(code, 1)
        problems = {tuple(map(tuple, link["between"])): link["problem"] for link in report["links"] if link["problem"]}
        self.assertIn("small frames pass between", problems[(0, 0), (1, 0)])
        self.set_mtu(9000)
        wait_until(lambda: not self.cluster.links_down() and not self.wrong(), "the link to be used again")
        self.cluster.perf("--sizes", "1M", "--iterations", "2")


class OnDatagrams(TestCase):
    def setUp(self):
        super().setUp()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.hosts = stack.enter_context(Hosts(2, sshd=False))
        for name in self.hosts.names:
            # A bridge looks at no length of a train, which a wire would carry cut into its datagrams.
            self.hosts.ip(self.hosts.namespaces[name], ["link set dev eth0 gso_max_segs 1"])

    def set_mtu(self, mtu):
        self.hosts.ip(self.hosts.switch, [f"link set dev node2 mtu {mtu}"])

    def port(self):
        """Of the first host."""
        done = self.hosts.tool_at("node1", "status", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["servers"][0]["ports"][0]

    def test_its_link_is_down_until_it_takes_full_frames(self):
        rows = "".join(f"{name} {self.hosts.address(name)}\n" for name in self.hosts.names)
        flags = ("--hosts", self.hosts.write("list", rows), "--launcher", self.hosts.launcher)
        up = self.hosts.tool_at("node1", "up", *flags, "--no-check")
        self.assertEqual(up.returncode, 0, up.stdout + up.stderr)
        self.set_mtu(1400)
        short = "port 0 of server [0]: to and from [1] small frames pass, frames of MTU 1500 do not: "
        wait_until(lambda: (self.port()["wrong"] or "").startswith(short), "the host to find out")
        self.assertEqual(self.port()["short_only"], [[1]])
        self.set_mtu(1500)
        wait_until(lambda: self.port()["down"] == [] and self.port()["wrong"] is None, "the link to be used again")
        self.assertEqual(self.hosts.tool_at("node1", "down").returncode, 0)


if __name__ == "__main__":
    skip_without_namespaces()
    main()
