"""Somebody on the wires of a cluster without its key, and a cluster with another key on the same wires.

A network namespace stands for a host, as in hosts_test.py. Needs root and iproute2.
"""

import json
import pathlib
import subprocess
import sys

from fabrics import PATIENCE, is_deep, new_key, seed, skip_without_namespaces
from harness import TestCase, main, wait_until
from hosts_test import CLUSTER, SERVERS, Hosts

ATTACKER = pathlib.Path(__file__).parent / "wire_attacker.py"
SUMS = ["allreduce", "--sizes", "4,100K", "--iterations", "20"]
KINDS = [SUMS, ["hub", "--network", "lenet5", "--optimizer", "momentum"], ["allgather", "--sizes", "16,100K"]]


def counter(hosts, name):
    return sum(hosts.status(server)["counters"]["dropped"][name] for server in SERVERS)


class Attack(TestCase):
    def perf(self, hosts, job, *what, servers=SERVERS):
        """One measurement on the servers, each of whose results is right."""
        tools = [hosts.start_tool(server, "perf", *what, "--check", "--job", job) for server in servers]
        for tool, (_, errors) in [(tool, tool.communicate(timeout=PATIENCE)) for tool in tools]:
            self.assertEqual(tool.returncode, 0, errors.decode())

    def test_from_the_wires_neither_changes_a_sum_nor_ends_a_job(self):
        with Hosts() as hosts:
            self.perf(hosts, "before", *SUMS)
            self.assertEqual(counter(hosts, "bad_mac"), 0)
            ports = [f"p{server}.{level}" for server in SERVERS for level in (0, 1)]
            into = ["nsenter", "-t", str(hosts.switches), "-n", sys.executable, str(ATTACKER)]
            seconds, rate = (120, 20000) if is_deep() else (5, 0)
            with subprocess.Popen(
                [*into, str(seconds), str(rate), str(seed()), *ports], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as attacker:
                jobs = 0
                while attacker.poll() is None:
                    self.perf(hosts, f"under-attack-{jobs}", *KINDS[jobs % len(KINDS)])
                    jobs += 1
                output, errors = attacker.communicate(timeout=PATIENCE)
            self.assertEqual(attacker.returncode, 0, errors)
            sent = json.loads(output)
            print(f"{sum(sent.values())} hostile frames against {jobs} jobs: {sent}", file=sys.stderr)
            self.assertGreater(jobs, 0)
            self.assertGreater(min(sent.get(kind, 0) for kind in ("again", "changed", "spliced", "cut", "with_crc")), 0)
            self.assertGreater(counter(hosts, "bad_mac"), 100)
            for server in SERVERS:
                self.assertIsNone(hosts.daemons[server].poll(), "a daemon has ended")
            self.perf(hosts, "after", *SUMS)

    def test_of_a_daemon_with_another_key_is_none(self):
        with Hosts() as hosts:
            others = hosts.directory / "others"
            others.mkdir()
            (hosts.directory / "others.toml").write_text(CLUSTER + new_key(others))
            hosts.daemons["1-1"].kill()
            hosts.daemons["1-1"].wait(PATIENCE)
            hosts.start(hosts.stack, "1-1", "others.toml")
            down = lambda server: [len(port["down"]) for port in hosts.status(server)["servers"][0]["ports"]]
            wait_until(lambda: down("1-1") == [1, 1], "it to hear nobody")
            wait_until(lambda: down("0-1") == [0, 1] and down("1-0") == [1, 0], "nobody to hear it")
            self.assertGreater(counter(hosts, "bad_mac"), 0)
            wrong = lambda: hosts.status("1-0")["servers"][0]["ports"][0]["wrong"] or ""
            wait_until(lambda: "compare the key files" in wrong(), "status to say why")
            self.perf(hosts, "without", *SUMS, "--members", "0,0 0,1 1,0", servers=SERVERS[:3])


if __name__ == "__main__":
    skip_without_namespaces()
    main()
