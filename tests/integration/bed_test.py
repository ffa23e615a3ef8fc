"""The test bed of `gradcube up --fabric veth`: where its links are, and that nothing of it is left behind.

A small program stands in for the servers' daemons (clients/bed_server.py). Needs root and iproute2.
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile

from fabrics import PATIENCE
from harness import Cluster, TestCase, main, wait_until

STAND_IN = pathlib.Path(__file__).parent / "clients" / "bed_server.py"


@contextlib.contextmanager
def wrapper():
    """A program that is gradcubed with stand-ins for its servers."""
    with tempfile.TemporaryDirectory(prefix="gradcube-test-") as folder:
        path = pathlib.Path(folder) / "gradcubed"
        path.write_text(f'#!/bin/sh\nexec "{os.environ["GRADCUBE_DAEMON"]}" "$@" --server-program "{STAND_IN}"\n')
        path.chmod(0o755)
        yield str(path)


@contextlib.contextmanager
def bed(*flags, up=True, **environment):
    """A Cluster on a test bed of stand-ins."""
    with wrapper() as daemon, Cluster(*flags, up=False) as cluster:
        cluster.environment |= environment | {"GRADCUBED": daemon}
        if up:
            cluster.up()
        yield cluster


def ask(cluster, server, **request):
    """Asks the stand-in of server "2-1" directly."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE)
        connection.connect(str(cluster.directory / server / "control.sock"))
        with connection.makefile("rw") as stream:
            stream.write(json.dumps(request) + "\n")
            stream.flush()
            return json.loads(stream.readline())


def pids(cluster):
    return [server["pid"] for server in cluster.status()["servers"]]


def namespaces(processes=None):
    """The network namespaces in which these processes are, or any."""
    found = set()
    for process in pathlib.Path("/proc").glob("[0-9]*") if processes is None else processes:
        with contextlib.suppress(OSError):
            found.add(os.readlink(pathlib.Path("/proc") / str(process) / "ns" / "net"))
    return found


def own_links():
    done = subprocess.run(["ip", "-json", "link"], capture_output=True, check=True, timeout=PATIENCE)
    return sorted(link["ifname"] for link in json.loads(done.stdout))


def in_namespace_of(pid, *command):
    command = ["nsenter", "-t", str(pid), "-n", *command]
    done = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE)
    return json.loads(done.stdout)


class Network(TestCase):
    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.cluster = stack.enter_context(
            bed("--topology", "bcube:3,2", "--rate", "100mbit", "--mtu", "4000", "--queue", "64K", "--lcores", "0")
        )

    def heard(self, server):
        return ask(self.cluster, server, command="heard")

    def test_joins_the_servers_of_a_switch_and_no_others(self):
        for level, neighbours in ((0, {"2-0", "2-2"}), (1, {"0-1", "1-1"})):
            text = f"hello at level {level}"
            ask(self.cluster, "2-1", command="say", level=level, text=text)
            for server in (f"{a}-{b}" for a in range(3) for b in range(3)):
                expected = [[level, text]] if server in neighbours else []
                listen = lambda: [entry for entry in self.heard(server)["heard"] if entry[1] == text]
                if expected:
                    got = []
                    wait_until(lambda: got.extend(listen()) or got, f"{server} to hear")
                    self.assertEqual(got, expected)
                else:
                    self.assertEqual(listen(), [], server)

    def test_gives_each_server_an_interface_per_level_and_no_address(self):
        links = {link["ifname"]: link for link in self.heard("1-2")["links"]}
        self.assertEqual(set(links), {"lo", "level0", "level1"})
        for level in ("level0", "level1"):
            self.assertEqual(links[level]["mtu"], 4000)
            self.assertEqual(links[level]["operstate"], "UP")
            self.assertEqual(links[level]["addr_info"], [])

    def test_has_a_bridge_for_each_switch_in_a_namespace_of_its_own(self):
        links = {link["ifname"]: link for link in in_namespace_of(self.cluster.pid(), "ip", "-json", "-d", "address")}
        bridges = {"sw-0-x", "sw-1-x", "sw-2-x", "sw-x-0", "sw-x-1", "sw-x-2"}
        self.assertEqual({name for name in links if name.startswith("sw")}, bridges)
        self.assertEqual(links["p2-1.1"]["master"], "sw-x-1")
        for name in bridges:
            self.assertEqual(links[name]["mtu"], 4000)
            self.assertEqual(links[name]["addr_info"], [])
            self.assertEqual(links[name]["linkinfo"]["info_data"]["stp_state"], 0)
            self.assertEqual(links[name]["linkinfo"]["info_data"]["mcast_snooping"], 0)
        self.assertFalse({name for name in own_links() if name in links and name != "lo"})

    def test_limits_the_rate_at_both_ends_of_each_link(self):
        queues = {queue["dev"]: queue for queue in self.heard("0-1")["queues"]}
        ports = {q["dev"]: q for q in in_namespace_of(self.cluster.pid(), "tc", "-json", "qdisc")}
        for queue in (queues["level0"], queues["level1"], ports["p0-1.0"], ports["p0-1.1"]):
            self.assertEqual(queue["kind"], "tbf")
            self.assertEqual(queue["options"]["rate"], 12_500_000)  # bytes per second
        self.assertEqual(len([dev for dev in ports if dev.startswith("p")]), 18)

    def test_takes_a_link_down_and_up(self):
        def without_carrier():
            return [link["ifname"] for link in self.heard("2-1")["links"] if "NO-CARRIER" in link["flags"]]

        self.cluster.answer("impair", "--server", "2,1", "--port", "0", "--down")
        wait_until(lambda: without_carrier() == ["level0"], "no carrier")
        differing = self.cluster.status()["impaired_links"]
        self.assertEqual([(link["server"], link["level"], link["up"]) for link in differing], [([2, 1], 0, False)])
        self.cluster.answer("impair", "--up")
        wait_until(lambda: without_carrier() == [], "the link to be back")
        self.assertEqual(self.cluster.status()["impaired_links"], [])

    def test_refuses_other_impairments(self):
        self.assert_one_message(self.cluster.tool("impair", "--loss", "0.1"), 2, "loss is for emulated switches")

    def test_says_what_it_is(self):
        status = self.cluster.status()
        self.assertEqual(status["fabric"], "veth")
        self.assertEqual(status["rate_bps"], 100_000_000)
        self.assertEqual(status["lcores"], [])  # the stand-ins tell no stalls
        self.assertEqual([server["address"] for server in status["servers"]][7], [2, 1])
        self.assertTrue(status["servers"][7]["socket"].endswith("/server-2-1.sock"))
        self.assertIn("9 servers, veth fabric", self.cluster.tool("status").stdout)

    def test_gives_the_daemons_one_core_each(self):
        self.assertEqual(self.heard("1-1")["settings"]["lcores"], "0")


class End(TestCase):
    def setUp(self):
        super().setUp()
        self.links = own_links()
        self.own = namespaces([os.getpid()])

    def namespaces_of(self, cluster):
        return namespaces(cluster.processes()) - self.own

    def assert_nothing_left(self, cluster, spaces):
        """spaces: the namespaces that there were. They have no names, so they end with their last process."""
        wait_until(lambda: cluster.processes() == [], "all processes to be gone")
        wait_until(lambda: not spaces & namespaces(), "all namespaces to be gone")
        self.assertEqual(own_links(), self.links)

    def test_leaves_nothing(self):
        with bed("--topology", "bcube:2,2") as cluster:
            self.assertEqual(len(cluster.processes()), 5)
            spaces = self.namespaces_of(cluster)
            self.assertEqual(len(spaces), 5)
            done = cluster.tool("down")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_nothing_left(cluster, spaces)
            self.assertEqual(list(cluster.directory.rglob("*.sock")), [])

    def test_leaves_nothing_after_sigkill(self):
        with bed("--topology", "bcube:2,2") as cluster:
            spaces = self.namespaces_of(cluster)
            cluster.kill()
            self.assert_nothing_left(cluster, spaces)
            cluster.up()
            self.assertEqual(len(cluster.status()["servers"]), 4)

    def test_leaves_nothing_after_a_step_that_fails(self):
        with bed("--topology", "bcube:2,2", up=False, BED_SERVER_FAILS="1,0") as cluster:
            done = cluster.tool("up", *cluster.flags)
            self.assertEqual(done.returncode, 1)
            self.assertIn("server [1,0]: this server has no luck; its log is", done.stderr)
            self.assert_nothing_left(cluster, set())
            self.assertEqual(list(cluster.directory.rglob("*.sock")), [])

    def test_leaves_nothing_when_up_is_killed(self):
        with bed("--topology", "bcube:2,2", up=False, BED_SERVER_SILENT="1,1") as cluster:
            with cluster.start_tool("up", *cluster.flags) as tool:
                wait_until(lambda: len(cluster.processes()) == 5, "the bed to start")
                spaces = self.namespaces_of(cluster)
                tool.send_signal(signal.SIGKILL)
            self.assert_nothing_left(cluster, spaces)

    def test_ends_a_daemon_that_will_not(self):
        with bed("--topology", "star:2", BED_SERVER_STUBBORN="1") as cluster:
            spaces = self.namespaces_of(cluster)
            done = cluster.tool("down")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("server [1] does not end", cluster.log())
            self.assert_nothing_left(cluster, spaces)

    def test_says_which_daemon_has_ended(self):
        with bed("--topology", "star:3") as cluster:
            os.kill(pids(cluster)[1], signal.SIGKILL)
            why = lambda: cluster.status()["servers"][1].get("why", "")
            wait_until(lambda: "signal 9" in why(), "the end to be seen")
            self.assertEqual([server.get("trainers") for server in cluster.status()["servers"]], [0, None, 0])
            self.assertIn("servers that do not answer", cluster.tool("status").stdout)
            self.assertIn("server [1]: its daemon ended", cluster.log())

    def test_says_which_daemon_is_silent(self):
        with bed("--topology", "star:3") as cluster:
            os.kill(pids(cluster)[2], signal.SIGSTOP)
            self.assertEqual(cluster.status()["servers"][2]["why"], "it did not answer in time")
            self.assertEqual(cluster.status()["servers"][0]["trainers"], 0)

    def test_ends_when_its_run_directory_is_gone(self):
        with bed("--topology", "star:2") as cluster:
            spaces = self.namespaces_of(cluster)
            moved = cluster.directory.with_suffix(".moved")
            cluster.directory.rename(moved)
            try:
                self.assert_nothing_left(cluster, spaces)
            finally:
                moved.rename(cluster.directory)


class Refusal(TestCase):
    def assert_refused(self, done, *words):
        self.assertEqual(done.returncode, 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_of_what_its_switches_cannot_do(self):
        with bed(up=False) as cluster:
            self.assert_one_message(cluster.tool("up", *cluster.flags, "--loss", "0.1"), 2, "loss is for emulated")
            many = cluster.tool("up", *cluster.flags, "--topology", "star:65")
            self.assert_one_message(many, 2, "at most 64")
            self.assertEqual(cluster.files(), [])

    def test_where_a_program_is_missing(self):
        with bed(up=False) as cluster:
            done = subprocess.run(
                ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /usr/sbin && exec \"$@\"", "sh",
                 os.environ["GRADCUBE_TOOL"], "up", *cluster.flags],
                env=cluster.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
            )  # fmt: skip
            if "cannot find" not in done.stderr:
                self.skipTest(f"this host has iproute2 elsewhere: {done.stderr}")
            self.assert_refused(done, "install the package iproute2")

    def test_where_namespaces_are_not_permitted(self):
        with bed(up=False) as cluster:
            done = subprocess.run(
                ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin",
                 os.environ["GRADCUBE_TOOL"], "up", *cluster.flags],
                env=cluster.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE,
            )  # fmt: skip
            self.assert_refused(done, "run it as root", "--fabric embedded")


if __name__ == "__main__":
    main()
