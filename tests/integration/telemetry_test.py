"""The telemetry socket of a running daemon, asked as dpdk-telemetry.py asks it, and by clients that misbehave."""

import json
import random

from fabrics import PATIENCE, seed
from harness import Cluster, TestCase, job, main, wait_until
from telemetry_client import TelemetryClient

# No link seems to be down because a poller waits for a core.
SEEN = ["--topology", "bcube:3,2", "--rate", "1gbit", "--greeting", "500ms"]


def ports_of(status):
    """By the names that the telemetry gives them."""
    return {
        f"{'-'.join(str(digit) for digit in server['address'])}:{port['port']}": port
        for server in status["servers"]
        for port in server["ports"]
    }


class Telemetry(TestCase):
    def test_tells_what_status_tells(self):
        with Cluster(*SEEN) as cluster, TelemetryClient(cluster.directory) as client:
            self.assertEqual(client.greeting["pid"], cluster.pid())
            commands = client.ask("/")
            for name in "status", "links", "jobs", "hubs", "counters":
                self.assertIn(f"/gradcube/{name}", commands)
                self.assertTrue(client.ask(f"/help,/gradcube/{name}")[f"/gradcube/{name}"])

            before = client.ask("/gradcube/counters")
            self.assertEqual(before["collectives"], 0)
            cluster.perf("--sizes", "100K", "--iterations", "3")

            def caught_up():
                counted = client.ask("/gradcube/counters")
                return counted == cluster.status()["counters"] and counted["collectives"] > 0

            wait_until(caught_up, "the telemetry to have what the status has")
            status = cluster.status()
            younger = lambda: client.ask("/gradcube/status")["uptime_seconds"] > status["uptime_seconds"]
            wait_until(younger, "telemetry that is younger than the status")
            facts = client.ask("/gradcube/status")
            self.assertEqual((facts["servers"], facts["links"], facts["links_down"]), (9, 18, 0))
            self.assertEqual((facts["topology"], facts["mtu"]), (status["topology"], status["mtu"]))
            links = client.ask("/gradcube/links")
            self.assertEqual(len(links), 18)
            after = ports_of(cluster.status())
            for name, port in ports_of(status).items():
                self.assertEqual(set(links[name]), set(port))
                for key in "level", "port", "rate_bps", "down", "wrong":
                    self.assertEqual(links[name][key], port[key])
                for key in "rx_packets", "rx_bytes", "tx_packets", "tx_bytes":
                    # Greetings go on meanwhile.
                    self.assertLessEqual(port[key], links[name][key])
                    self.assertLessEqual(links[name][key], after[name][key])
            self.assertEqual(list(client.ask("/gradcube/links,2-1:0")), ["2-1:0"])
            self.assertIn("error", client.ask("/gradcube/links,9-9:0"))

    def test_tells_of_links_that_are_down_and_jobs_that_wait(self):
        with Cluster("--topology", "star:3") as cluster, TelemetryClient(cluster.directory) as client:
            cluster.answer("impair", "--server", "2", "--down")
            wait_until(lambda: client.ask("/gradcube/status")["links_down"] > 0, "a link to be found down")
            wait_until(lambda: client.ask("/gradcube/links,0:0")["0:0"]["down"] == ["2"], "its name")
            self.assertEqual(client.ask("/gradcube/jobs"), {})
            with job(cluster, "early", servers=[0]):
                wait_until(lambda: client.ask("/gradcube/status")["jobs"] == 1, "the job")
                (facts,) = client.ask("/gradcube/jobs,early").values()
                self.assertEqual((facts["state"], facts["trainers"]), ("gathering", 1))
                self.assertEqual(facts["waiting_for"], ["1", "2"])

    def test_several_daemons_of_a_user_do_not_meet(self):
        with Cluster("--topology", "star:2") as one, Cluster("--topology", "star:3") as other:
            for cluster, servers in (one, 2), (other, 3):
                with TelemetryClient(cluster.directory) as client:
                    self.assertEqual(client.greeting["pid"], cluster.pid())
                    self.assertEqual(client.ask("/gradcube/status")["servers"], servers)

    def test_a_killed_daemon_leaves_nothing_in_the_way(self):
        with Cluster("--topology", "star:2") as cluster:
            with TelemetryClient(cluster.directory) as client:
                cluster.kill()
                with self.assertRaises((OSError, ValueError)):
                    client.ask("/gradcube/status")
            self.assertIn("dpdk_telemetry.v2", cluster.files())
            cluster.up()
            with TelemetryClient(cluster.directory) as client:
                self.assertEqual(client.greeting["pid"], cluster.pid())
            self.assertEqual(cluster.tool("down").returncode, 0)
            self.assertNotIn("dpdk_telemetry.v2", cluster.files())

    def test_misbehaving_clients_disturb_nobody(self):
        numbers = random.Random(seed())
        with Cluster("--topology", "star:3") as cluster:
            perf = cluster.start_tool("perf", "allreduce", "--sizes", "1M", "--iterations", "20", "--check", "--json")
            silent = [TelemetryClient(cluster.directory) for _ in range(5)]
            deaf = TelemetryClient(cluster.directory)
            deaf.socket.setblocking(False)
            for _ in range(300):
                with TelemetryClient(cluster.directory) as client:
                    request = bytes(numbers.randrange(256) for _ in range(numbers.randrange(1, 1500)))
                    if numbers.random() < 0.5:
                        request = b"/gradcube/links," + request
                    self.assertEqual(len(client.ask_raw(request)), 1)
                    client.socket.send(b"/gradcube/status")  # and leaves without the answer
                try:
                    deaf.socket.send(b"/gradcube/links")
                except OSError:
                    deaf.socket.close()
                    deaf = TelemetryClient(cluster.directory)
                    deaf.socket.setblocking(False)
            output, errors = perf.communicate(timeout=PATIENCE)
            self.assertEqual(perf.returncode, 0, errors)
            self.assert_right(json.loads(output)["results"])
            for client in [*silent, deaf]:
                client.socket.close()
            with TelemetryClient(cluster.directory) as client:
                self.assertEqual(client.ask("/gradcube/status")["servers"], 3)


if __name__ == "__main__":
    main()
