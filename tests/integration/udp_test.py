"""Daemons that are started by hand, as an ordinary user, and joined by datagrams between addresses of this host."""

import contextlib
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import tempfile

from fabrics import PATIENCE, TOOL, new_key
from harness import Cluster, TestCase, main, wait_until

DAEMON = os.environ["GRADCUBE_DAEMON"]
BLOCK = f"127.{1 + os.getpid() % 250}.{os.getpid() // 250 % 256}"
UDP_PORT = 47000  # no bed's
SMALL = ("--topology", "bcube:2,2")
GRID_OF_FOUR = ["0,0", "0,1", "1,0", "1,1"]
# How fast a link is, and what is sent again, depends on what else the machine does.
LENIENT = ("--least-rate", "0.01", "--most-lost", "0.9")


def on_this_host(count):
    return [f"{BLOCK}.{100 + i}:{UDP_PORT}" for i in range(count)]


def has_v6():
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
        one.bind(("::1", 0))
        return True
    return False


class Daemons:
    """with Daemons("star:2", hosts) as daemons: ... ; one for each server, by the same cluster file."""

    def __init__(self, topology, hosts, link=""):
        self.topology = topology
        self.servers = {"star:2": ["0", "1"], "star:3": ["0", "1", "2"], "bcube:2,2": GRID_OF_FOUR}[topology]
        self.stack = contextlib.ExitStack()
        self.directory = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="gradcube-test-")))
        self.security = new_key(self.directory)
        self.write(hosts, link)

    def write(self, hosts, link=""):
        rows = "" if hosts is None else f"hosts = {json.dumps(hosts)}\n"
        text = f'[topology]\nspec = "{self.topology}"\n{rows}[link]\nfabric = "udp"\n{link}\n{self.security}'
        (self.directory / "cluster.toml").write_text(text)

    def __enter__(self):
        with self.stack.pop_all() as stack:
            for server in self.servers:
                self.start(stack, server)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def command(self, server, *flags):
        return [DAEMON, "--server", server, "--cluster", self.directory / "cluster.toml", "--run-dir"] + [
            self.directory / server.replace(",", "-"),
            *flags,
        ]

    def start(self, stack, server):
        ready, tells = os.pipe()
        log = stack.enter_context(open(self.directory / f"{server}.log", "w"))
        command = self.command(server, "--ready-fd", str(tells))
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[tells])
        stack.callback(daemon.wait, PATIENCE)
        stack.callback(daemon.kill)
        os.close(tells)
        with open(ready) as line:
            if '"ok":true' not in line.readline():
                raise AssertionError((self.directory / f"{server}.log").read_text())

    def refusal(self, server, *flags):
        """What gradcubed says that ends by itself."""
        done = subprocess.run(self.command(server, *flags), capture_output=True, text=True, timeout=PATIENCE)
        return done.returncode, done.stderr

    def tool(self, server, *arguments):
        environment = dict(os.environ, GRADCUBE_RUN=str(self.directory / server.replace(",", "-")))
        return subprocess.Popen(
            [TOOL, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def perf(self, test, job, *flags):
        """One measurement on all servers, whose results are right."""
        tools = [self.tool(server, "perf", "allreduce", "--check", "--job", job, *flags) for server in self.servers]
        for tool, (_, errors) in [(tool, tool.communicate(timeout=PATIENCE)) for tool in tools]:
            test.assertEqual(tool.returncode, 0, errors)

    def ports(self, server):
        output, _ = self.tool(server, "status", "--json").communicate(timeout=PATIENCE)
        return json.loads(output)["servers"][0]["ports"]


class ByHand(TestCase):
    def test_servers_with_an_address_for_each_level_reduce(self):
        hosts = [[f"{BLOCK}.{100 + i}:{UDP_PORT}", f"{BLOCK}.{200 + i}:{UDP_PORT}"] for i in range(4)]
        with Daemons("bcube:2,2", hosts, "mtu = 1500") as daemons:
            daemons.perf(self, "first", "--sizes", "4,100K,1M", "--iterations", "2")
            for server in daemons.servers:
                for port in daemons.ports(server):
                    self.assertGreater(port["rx_packets"], 0)
                    self.assertEqual((port["rx_strangers"], port["tx_failed"], port["tx_refused"]), (0, 0, 0))

    def test_levels_that_share_an_address_reduce(self):
        # Greetings so rare that no link seems to be down because its daemon waits for a core.
        with Daemons("bcube:2,2", on_this_host(4), 'rate = "100mbit"\ngreeting = "5s"') as daemons:
            daemons.perf(self, "first", "--sizes", "4,100K", "--iterations", "2")
            places = [(port["at"], port["udp_port"]) for port in daemons.ports("0,1")]
            self.assertEqual(places, [(f"{BLOCK}.101", UDP_PORT), (f"{BLOCK}.101", UDP_PORT + 1)])
            checks = [daemons.tool(server, "check", "--job", "links", *LENIENT) for server in daemons.servers]
            for check, (output, errors) in [(check, check.communicate(timeout=PATIENCE)) for check in checks]:
                self.assertEqual(check.returncode, 0, output + errors)
                self.assertIn(" share the address 127.", output)

    def test_servers_with_addresses_of_ipv6_reduce(self):
        if not has_v6():
            self.skipTest("this host has no address ::1")
        base = 20000 + os.getpid() % 4000 * 10
        with Daemons("star:3", [f"[::1]:{base + i}" for i in range(3)]) as daemons:
            daemons.perf(self, "first", "--sizes", "4,100K", "--iterations", "2")

    def test_what_strangers_send_is_dropped_and_counted(self):
        numbers = random.Random(self.seed)
        with Daemons("star:3", on_this_host(3)) as daemons, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind((f"{BLOCK}.99", 0))
            daemons.perf(self, "first", "--sizes", "4")
            for round in range(3):
                for host in on_this_host(3):
                    address, port = host.split(":")
                    for _ in range(300):
                        stranger.sendto(numbers.randbytes(numbers.choice([0, 1, 2, 40, 1400, 9000])), (address, int(port)))
                daemons.perf(self, f"hostile{round}", "--sizes", "4,100K", "--iterations", "2")
            counted = lambda: sum(daemons.ports(server)[0]["rx_strangers"] for server in daemons.servers)
            dropped = lambda: sum(daemons.ports(server)[0]["rx_buffer_full"] for server in daemons.servers)
            wait_until(lambda: counted() + dropped() >= 2700, "all of them to be counted")


class Refused(TestCase):
    def test_is_a_server_whose_address_or_port_is_not_to_be_had(self):
        daemons = Daemons("star:2", ["192.0.2.7", f"{BLOCK}.101"])
        self.addCleanup(daemons.stack.close)
        code, errors = daemons.refusal("0")
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"port 0 of server \[0\]: this host does not have the address 192\.0\.2\.7: it has .*127\.0\.0\.1")
        daemons.write([f"{BLOCK}.100", f"{BLOCK}.101"])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind((f"{BLOCK}.100", 47330))
            code, errors = daemons.refusal("0")
        self.assertEqual(code, 1)
        self.assertIn(f"another process of this host has {BLOCK}.100, UDP port 47330", errors)

    def test_are_settings_that_do_not_fit(self):
        daemons = Daemons("star:2", None)
        self.addCleanup(daemons.stack.close)
        cases = [
            (None, (), "nothing says where its servers are"),
            ([f"{BLOCK}.1"], (), "hosts: 1 named, and star:2 has 2 servers"),
            (["10.0.0.1", "node2"], (), '"node2": expected the IPv4 or IPv6 address'),
            (on_this_host(2), ("--interfaces", "lo"), "ask for the udp fabric"),
            (on_this_host(2), ("--interfaces", "lo"), "leave out --interfaces"),
        ]
        for hosts, flags, words in cases:
            daemons.write(hosts)
            code, errors = daemons.refusal("0", *flags)
            self.assertEqual(code, 2, errors)
            self.assertIn(words, errors)

    def test_is_what_the_network_cannot_be_told(self):
        with Cluster(*SMALL, fabric="udp") as cluster:
            self.assert_one_message(cluster.tool("impair", "--server", "1,1", "--port", "0", "--down"), 2, "links of the udp fabric")
            self.assertEqual(cluster.status()["impaired_links"], [])
        with Cluster(*SMALL, "--loss", "0.1", up=False, fabric="udp") as cluster:
            self.assert_one_message(cluster.tool("up", *cluster.flags), 2, "the udp fabric's links are the network's")


class Beds(TestCase):
    def test_that_run_side_by_side_have_addresses_of_their_own(self):
        with Cluster(*SMALL, fabric="udp") as one, Cluster(*SMALL, fabric="udp") as other:
            self.assert_right(one.perf("--sizes", "4,100K", "--iterations", "2"))
            self.assert_right(other.perf("--sizes", "4,100K", "--iterations", "2"))
            hosts = []
            for cluster in one, other:
                (text,) = {re.search(rb'"hosts":"([^"]*)"', self.arguments(pid))[1] for pid in self.servers(cluster)}
                hosts += text.split()
            self.assertEqual(len(set(hosts)), 8)

    def servers(self, cluster):
        return [server["pid"] for server in cluster.status()["servers"]]

    def arguments(self, pid):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()


if __name__ == "__main__":
    main()
