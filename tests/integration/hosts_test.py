"""Daemons of one cluster on separate hosts, each started by hand: a network namespace stands for a host.

No test bed is at work: a namespace with a bridge for each switch, and `gradcubed --server` in one for each server.
Needs root and iproute2.
"""

import contextlib
import ctypes.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import unittest

from fabrics import PATIENCE, TOOL, new_key, skip_without_namespaces
from harness import TestCase, main, wait_until

DAEMON = os.environ["GRADCUBE_DAEMON"]
SERVERS = ["0-0", "0-1", "1-0", "1-1"]  # of bcube:2,2
CLUSTER = '[topology]\nspec = "bcube:2,2"\n[link]\nmtu = 1500\n'


def switch_of(server, level):
    """The digit of the level is what the servers of a switch differ in."""
    high, low = server.split("-")
    return f"sw-{high}-x" if level == 0 else f"sw-x-{low}"


class Hosts:
    """with Hosts() as hosts: ... ; ends all that it has started. ports: arguments of each gradcubed."""

    def __init__(self, *ports):
        self.ports = ports or ("--interfaces", "level0,level1")

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with contextlib.ExitStack() as stack:  # what a failure in the middle undoes
            self.directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gradcube-test-")))
            self.security = new_key(self.directory)
            (self.directory / "cluster.toml").write_text(CLUSTER + self.security)
            self.switches = self.namespace(stack)
            self.namespaces = {server: self.namespace(stack) for server in SERVERS}
            self.join()
            self.daemons = {}
            for server in SERVERS:
                self.start(stack, server)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def namespace(self, stack):
        """The pid of a process that stays in a network namespace of its own."""
        process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        stack.callback(end, process)
        own = os.readlink("/proc/self/ns/net")
        wait_until(lambda: os.readlink(f"/proc/{process.pid}/ns/net") != own, "the namespace")
        return process.pid

    def join(self):
        lines = [f"link add name {name} type bridge\nlink set dev {name} up" for name in self.switch_names()]
        for server in SERVERS:
            for level in 0, 1:
                port = f"p{server}.{level}"
                peer = f"netns {self.namespaces[server]} name level{level}"
                lines.append(f"link add name {port} type veth peer {peer}")
                lines.append(f"link set dev {port} master {switch_of(server, level)} up")
        self.ip(self.switches, "\n".join(lines))
        for server in SERVERS:
            self.ip(self.namespaces[server], "link set dev level0 up\nlink set dev level1 up")

    def switch_names(self):
        return sorted({switch_of(server, level) for server in SERVERS for level in (0, 1)})

    def ip(self, namespace, batch):
        command = ["nsenter", "-t", str(namespace), "-n", "ip", "-batch", "-"]
        subprocess.run(command, input=batch + "\n", text=True, check=True, timeout=PATIENCE)

    def start(self, stack, server, cluster_file="cluster.toml"):
        log = stack.enter_context(open(self.directory / f"{server}.log", "a"))
        ready, tells = os.pipe()
        command = ["nsenter", "-t", str(self.namespaces[server]), "-n", DAEMON, "--server", server.replace("-", ",")]
        command += [*self.ports, "--cluster", str(self.directory / cluster_file)]
        command += ["--run-dir", str(self.directory / server), "--ready-fd", str(tells)]
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=[tells])
        stack.callback(end, daemon)
        os.close(tells)
        with open(ready) as line:
            if '"ok":true' not in line.readline():
                raise AssertionError((self.directory / f"{server}.log").read_text())
        self.daemons[server] = daemon

    def tool(self, server, *arguments):
        environment = dict(os.environ, GRADCUBE_RUN=str(self.directory / server))
        return subprocess.run(
            [TOOL, *arguments], env=environment, capture_output=True, text=True, timeout=PATIENCE
        )

    def status(self, server, *arguments):
        done = self.tool(server, "status", "--json", *arguments)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return json.loads(done.stdout)

    def ask(self, server, line):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(str(self.directory / server / "control.sock"))
            client.sendall(line.encode() + b"\n")
            return json.loads(client.makefile().readline())

    def start_tool(self, server, *arguments):
        environment = dict(os.environ, GRADCUBE_RUN=str(self.directory / server))
        return subprocess.Popen([TOOL, *arguments], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end(process):
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGCONT)
        process.kill()
    process.wait(PATIENCE)


def silent(status):
    return {tuple(server["address"]): server["why"] for server in status["servers"] if "why" in server}


class StatusOfAll(TestCase):
    def test_has_all_servers_and_their_jobs(self):
        with Hosts() as hosts:
            flags = ("perf", "allreduce", "--sizes", "100K", "--iterations", "100000", "--job", "long")
            with contextlib.ExitStack() as stack:
                for server in SERVERS:
                    tool = stack.enter_context(hosts.start_tool(server, *flags))
                    stack.callback(tool.terminate)

                def long_job():
                    jobs = [job for job in hosts.status("1-0", "--all")["jobs"] if job["name"] == "long"]
                    return jobs[0] if jobs else {"trainers": [], "collectives": 0}

                wait_until(lambda: len(long_job()["trainers"]) == 4, "all trainers in one job")
                wait_until(lambda: long_job()["collectives"] > 0, "a collective that all have completed")
                (own_job,) = hosts.status("1-0")["jobs"]
                self.assertEqual(set(long_job()), set(own_job), "a field of jobs gets lost on the way")
            status = hosts.status("1-0", "--all")
            self.assertEqual(silent(status), {})
            self.assertEqual([server["address"] for server in status["servers"]], [[0, 0], [0, 1], [1, 0], [1, 1]])
            pids = [hosts.daemons[server].pid for server in SERVERS]
            self.assertEqual([server["pid"] for server in status["servers"]], pids)
            for server in status["servers"]:
                self.assertEqual([port["level"] for port in server["ports"]], [0, 1])
            own = hosts.status("1-0")
            self.assertEqual(len(own["servers"]), 1)
            self.assertEqual(set(own) - set(status), set(), "--all has all fields of a host's own status")
            (own_server,) = own["servers"]
            for server in status["servers"]:
                self.assertEqual(set(server), {*own_server, "pid"})
                self.assertEqual(server["version"], status["version"])
                for port in server["ports"]:
                    self.assertEqual(set(port), set(own_server["ports"][0]))
            for name in "memory", "counters":
                self.assertEqual(set(status[name]), set(own[name]))
            self.assertEqual(status["pid"], own["pid"])
            self.assertGreater(status["counters"]["collectives"], own["counters"]["collectives"])

    def test_names_those_that_do_not_answer(self):
        with Hosts() as hosts:
            hosts.daemons["0-1"].kill()
            hosts.daemons["1-1"].send_signal(signal.SIGSTOP)
            status = hosts.status("0-0", "--all")
            self.assertEqual(set(silent(status)), {(0, 1), (1, 1)})
            self.assertIn("did not answer in time", silent(status)[(0, 1)])
            self.assertEqual(len(status["servers"]), 4)
            text = hosts.tool("0-0", "status", "--all").stdout
            self.assertRegex(text, r"\[1,1\] .*did not answer in time")
            hosts.daemons["1-1"].send_signal(signal.SIGCONT)
            wait_until(lambda: set(silent(hosts.status("0-0", "--all"))) == {(0, 1)}, "the one that goes on")

    def test_goes_around_links_that_are_down(self):
        with Hosts() as hosts:
            hosts.ip(hosts.switches, "link set dev p0-1.0 down")
            wait_until(lambda: silent(hosts.status("0-0", "--all")) == {}, "a way around")

    def test_refuses_inquiries_that_are_none(self):
        with Hosts() as hosts:
            for wrong in '"7"', "-1", "1.5", "null", "[]":
                answer = hosts.ask("0-0", '{"command":"status-of-all","inquiry":%s}' % wrong)
                self.assertEqual((answer["ok"], answer["usage"]), (False, True), wrong)
            self.assertIsNone(hosts.ask("0-0", '{"command":"status-of-all","inquiry":18446744073709551615}')["status"])
            self.assertEqual(silent(hosts.status("0-0", "--all")), {})

    def test_is_answered_while_many_ask(self):
        with Hosts() as hosts:
            tools = [hosts.start_tool(server, "status", "--all", "--json") for server in SERVERS * 4]
            for tool in tools:
                output, errors = tool.communicate(timeout=PATIENCE)
                self.assertEqual(tool.returncode, 0, errors)
                self.assertEqual(silent(json.loads(output)), {})


@unittest.skipUnless(ctypes.util.find_library("rte_net_af_packet"), "DPDK's net_af_packet is not installed")
class VirtualDevices(TestCase):
    def test_carry_collectives_on_interfaces_of_the_kernel(self):
        with Hosts("--vdevs", "net_af_packet0,iface=level0", "net_af_packet1,iface=level1") as hosts:
            flags = ("perf", "allreduce", "--sizes", "4,100K", "--iterations", "2", "--check", "--job", "first")
            tools = [hosts.start_tool(server, *flags) for server in SERVERS]
            for tool in tools:
                _, errors = tool.communicate(timeout=PATIENCE)
                self.assertEqual(tool.returncode, 0, errors)
            status = hosts.status("1-0")
            self.assertEqual(status["fabric"], "vdevs")
            for port in status["servers"][0]["ports"]:
                self.assertGreater(port["rx_packets"], 0)
                self.assertEqual((port["steering"], port["tx_dropped"]), ("none", 0))

    def test_that_dpdk_does_not_make_are_named(self):
        with self.assertRaisesRegex(AssertionError, "net_af_packet0,iface=nowhere"):
            with Hosts("--vdevs", "net_af_packet0,iface=nowhere", "net_af_packet1,iface=level1"):
                pass


if __name__ == "__main__":
    skip_without_namespaces()
    main()
