"""Another key for a cluster that runs: daemons on separate hosts are told one after the other, as an operator does.

A network namespace stands for a host, as in hosts_test.py. Needs root and iproute2.
"""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import gradcube
from fabrics import PATIENCE, TOOL, skip_without_namespaces
from harness import TestCase, main, wait_until
from hosts_test import SERVERS, Hosts

PERF = ("perf", "allreduce", "--check", "--sizes", "4,100K", "--iterations", "20", "--job")


class Rekey(TestCase):
    def perf(self, hosts, job):
        """One measurement on all servers, each of whose results is right."""
        tools = [hosts.start_tool(server, *PERF, job) for server in SERVERS]
        for tool, (_, errors) in [(tool, tool.communicate(timeout=PATIENCE)) for tool in tools]:
            self.assertEqual(tool.returncode, 0, errors.decode())

    def allreduce(self, pool, sessions):
        """Of the job of these sessions, one on each server."""

        def ones(session):
            values = session.alloc(10_000)
            values.fill(1)
            session.allreduce(values)
            return set(values.tolist())

        self.assertEqual(list(pool.map(ones, sessions)), [{float(len(SERVERS))}] * len(SERVERS))

    def put_new_key(self, hosts):
        new = hosts.directory / "new.key"
        subprocess.run([TOOL, "keygen", str(new)], check=True, capture_output=True, timeout=PATIENCE)
        os.rename(new, hosts.directory / "cube.key")

    def rekey(self, hosts, server, window):
        done = hosts.tool(server, "rekey", "--window", window)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def own(self, hosts, server):
        return hosts.status(server)["servers"][0]

    def bad_macs(self, hosts):
        return sum(hosts.status(server)["counters"]["dropped"]["bad_mac"] for server in SERVERS)

    def test_goes_on_undisturbed_while_the_hosts_are_told_one_after_the_other(self):
        with Hosts() as hosts, ThreadPoolExecutor(len(SERVERS)) as pool:
            sockets = [hosts.status(server)["servers"][0]["socket"] for server in SERVERS]
            sessions = list(pool.map(lambda socket: gradcube.Session(socket, "long"), sockets))
            self.allreduce(pool, sessions)
            former = self.own(hosts, SERVERS[0])["key"]
            self.put_new_key(hosts)
            # All are told long before it is over.
            for server in SERVERS:
                self.assertIn("are taken", self.rekey(hosts, server, "15s"))
                self.allreduce(pool, sessions)
            is_done = lambda server: "ends_in_ms" not in self.own(hosts, server)
            wait_until(lambda: all(is_done(server) for server in SERVERS), "the new key to be the only one")
            (new,) = {self.own(hosts, server)["key"] for server in SERVERS}
            self.assertNotEqual(new, former)
            self.allreduce(pool, sessions)
            jobs = {job["name"]: job["key"] for job in hosts.status(SERVERS[0])["jobs"]}
            self.assertEqual(jobs, {"long": former})
            for session in sessions:
                session.close()
            self.perf(hosts, "after")
            self.assertEqual(self.bad_macs(hosts), 0)

    def test_takes_a_host_in_again_that_was_forgotten(self):
        with Hosts() as hosts:
            self.put_new_key(hosts)
            for server in SERVERS[1:]:
                self.rekey(hosts, server, "0s")
            wait_until(lambda: self.bad_macs(hosts) > 0, "frames by two keys to meet")
            text = lambda: hosts.tool("1-0", "status").stdout
            wait_until(lambda: "compare the key files" in text(), "status to say why")
            self.rekey(hosts, SERVERS[0], "0s")
            self.perf(hosts, "after")

    def test_says_so_where_nothing_is_to_be_changed(self):
        with Hosts() as hosts:
            self.assertIn("to change it, put another one there", self.rekey(hosts, "0-0", "60s"))
            self.put_new_key(hosts)
            self.rekey(hosts, "0-0", "60s")
            text = hosts.tool("0-1", "status", "--all").stdout
            self.assertIn("; not told yet: [0,1] [1,0] [1,1]\n", text)


if __name__ == "__main__":
    skip_without_namespaces()
    main()
