"""gradcubed --server: a process that runs one server of a cluster, whose other servers are not there.

Its ports are veths in a network namespace of its own, at whose other ends nobody listens.
"""

import contextlib
import os
import subprocess
import tempfile
import unittest

import gradcube

from fabrics import PATIENCE, new_key
from harness import Cluster, TestCase, main, wait_until
from raw_session import connect, hello, knock, read_notice

DAEMON = os.environ["GRADCUBE_DAEMON"]
PORTS = ["--interfaces", "port0,port1"]
MAKE_PORTS = """
set -e
for i in 0 1; do
  ip link add name port$i mtu 9000 type veth peer name far$i mtu 9000
  ip link set dev port$i up
  ip link set dev far$i up
done
exec "$@"
"""
# The two ports are the two ends of one cable.
LOOP_PORTS = """
set -e
ip link add name port0 mtu 9000 type veth peer name port1 mtu 9000
ip link set dev port0 up
ip link set dev port1 up
exec "$@"
"""
IN_A_NAMESPACE = ["unshare", "--net", "sh", "-c"]


def why_there_are_no_ports():
    """What the system says when it refuses them; empty if it does not."""
    try:
        command = [*IN_A_NAMESPACE, MAKE_PORTS, "sh", "true"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except OSError as error:
        return str(error)
    return done.stderr if done.returncode != 0 else ""


NO_PORTS = why_there_are_no_ports()


def run_daemon(*arguments, cluster):
    """Runs gradcubed to its end, which it must come to by itself."""
    return subprocess.run(
        [DAEMON, *arguments, "--run-dir", str(cluster.directory)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def with_key(directory):
    """The argument that names a cluster file with a key, and nothing else."""
    file = directory / "cluster.toml"
    file.write_text(new_key(directory))
    return ["--cluster", str(file)]


@contextlib.contextmanager
def one_server(address, make_ports=MAKE_PORTS):
    """A Cluster of the one server, once it is ready, and its process."""
    with Cluster(up=False) as cluster, open(cluster.directory / "gradcubed.log", "w") as log:
        ready, tells = os.pipe()
        process = subprocess.Popen(
            [*IN_A_NAMESPACE, make_ports, "sh", DAEMON, "--server", address, *PORTS]
            + ["--run-dir", str(cluster.directory), "--ready-fd", str(tells), *with_key(cluster.directory)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[tells],
        )
        os.close(tells)
        try:
            with open(ready) as line:
                said = line.readline()
            if '"ok":true' not in said:
                raise AssertionError(f"gradcubed did not start: {said}{cluster.log()}")
            yield cluster, process
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(PATIENCE)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


class Refused(TestCase):
    """Exit code 2, a sentence, and nothing started."""

    def check(self, *words, flags):
        with Cluster(up=False) as cluster:
            done = run_daemon(*flags, cluster=cluster)
            self.assertEqual(done.returncode, 2, done.stderr)
            for word in words:
                self.assertIn(word, done.stderr + done.stdout)
            self.assertEqual([name for name in cluster.files() if name.endswith(".sock")], [])

    def test_an_address_that_there_is_not(self):
        self.check("--server", '"3,1"', "0..2", "2,2", flags=["--server", "3,1", *PORTS])

    def test_an_address_of_too_few_digits(self):
        self.check("--server", '"2"', "2 digits", flags=["--server", "2", *PORTS])

    def test_an_address_that_is_none(self):
        self.check("--server", '"here"', "2 digits", flags=["--server", "here", *PORTS])

    def test_an_empty_address(self):
        """As of a shell variable that is not set: it must not start all servers."""
        self.check("--server", '""', "2 digits", flags=["--server", "", *PORTS])

    def test_all_servers_and_one(self):
        self.check("--all", "--server", flags=["--all", "--server", "2,1", *PORTS])

    def test_faults_that_only_emulated_links_have(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('[topology]\nspec = "bcube:3,2"\n[impair]\nloss = 0.1\n')
            file.flush()
            self.check("loss", "emulated links", flags=["--server", "2,1", *PORTS, "--cluster", file.name])

    def test_a_server_without_ports(self):
        self.check("--server", "--interfaces", flags=["--server", "2,1"])

    def test_ports_for_some_levels_only(self):
        self.check("--interfaces", "names 1", "2 levels", flags=["--server", "2,1", "--interfaces", "port0"])

    def test_devices_of_no_driver(self):
        self.check("--vdevs", '"eth1"', "net_af_xdp0", flags=["--server", "2,1", "--vdevs", "eth1", "eth2"])

    def test_a_device_for_two_ports(self):
        self.check("--vdevs", "for two ports", flags=["--server", "2,1", "--vdevs", "net_null0", "net_null0"])

    def test_ports_of_two_kinds(self):
        self.check("--interfaces", "--vdevs", flags=["--server", "2,1", *PORTS, "--vdevs", "net_null0", "net_null1"])

    def test_no_servers(self):
        self.check("--all", "--server", flags=[])


class Key(TestCase):
    def test_is_demanded_where_frames_leave_the_process(self):
        with Cluster(up=False) as cluster:
            done = run_daemon("--server", "2,1", *PORTS, cluster=cluster)
            self.assertEqual(done.returncode, 2, done.stderr)
            for word in ("key-file", "gradcube keygen", 'authentication = "none"'):
                self.assertIn(word, done.stderr)

    def test_that_others_can_read_is_refused(self):
        with Cluster(up=False) as cluster:
            named = with_key(cluster.directory)
            (cluster.directory / "cube.key").chmod(0o640)
            done = run_daemon("--server", "2,1", *PORTS, *named, cluster=cluster)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("cube.key", done.stderr)
            self.assertIn("chmod 600", done.stderr)

    def test_is_made_for_its_owner_alone_and_never_written_over(self):
        with Cluster(up=False) as cluster:
            path = cluster.directory / "cube.key"
            self.assertEqual(cluster.tool("keygen", str(path)).returncode, 0)
            key = path.read_text()
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
            self.assertRegex(key, "^[0-9a-f]{64}\n$")
            self.assert_one_message(cluster.tool("keygen", str(path)), 1, "cube.key", "already")
            self.assertEqual(path.read_text(), key)


class NoSuchInterface(TestCase):
    def test_is_named(self):
        with Cluster(up=False) as cluster:
            ports = ["--interfaces", "nowhere0,nowhere1"]
            done = run_daemon("--server", "2,1", *ports, *with_key(cluster.directory), cluster=cluster)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("'nowhere0'", done.stderr)
            self.assertIn("ip link", done.stderr)


@unittest.skipIf(NO_PORTS, f"this user may not make a network namespace: {NO_PORTS}")
class OneServer(TestCase):
    def test_is_all_that_status_shows(self):
        with one_server("2,1") as (cluster, process):
            status = cluster.status()
            self.assertEqual(status["pid"], process.pid)
            self.assertEqual([server["address"] for server in status["servers"]], [[2, 1]])
            self.assertEqual(status["jobs"], [])
            self.assertEqual([name for name in cluster.files() if name.startswith("server-")], ["server-2-1.sock"])

    def test_says_that_its_ports_are_cabled_wrongly(self):
        with one_server("2,1", LOOP_PORTS) as (cluster, _):
            wrong = lambda: [port["wrong"] for port in cluster.status()["servers"][0]["ports"]]
            wait_until(lambda: all(wrong()), "both ports to be found wrong")
            sentence = "port 1 of server [2,1] hears port 0 of the same server"
            self.assertIn(sentence, wrong()[1])
            self.assertIn(sentence, cluster.tool("status").stdout)
            wait_until(lambda: sentence in cluster.log(), "the log to say so")

    def test_has_nothing_wrong_where_it_hears_nobody(self):
        with one_server("2,1") as (cluster, _):
            ports = lambda: cluster.status()["servers"][0]["ports"]
            wait_until(lambda: all(len(port["down"]) == 2 for port in ports()), "its links to be down")
            self.assertEqual([port["wrong"] for port in ports()], [None, None])

    def test_goes_on_with_interfaces_that_get_the_names_of_deleted_ones(self):
        with one_server("2,1", LOOP_PORTS) as (cluster, process):
            there = ["nsenter", "-t", str(process.pid), "-n"]
            wrong = lambda: [port["wrong"] or "" for port in cluster.status()["servers"][0]["ports"]]
            hears = lambda: all("of the same server" in text for text in wrong())
            wait_until(hears, "both ports to hear each other")
            subprocess.run([*there, "ip", "link", "del", "dev", "port0"], check=True, timeout=PATIENCE)
            wait_until(lambda: all("was deleted" in text for text in wrong()), "status to say so")
            self.assertIn("port 1: its network interface port1 was deleted", cluster.log())
            subprocess.run([*there, "sh", "-c", LOOP_PORTS, "sh", "true"], check=True, timeout=PATIENCE)
            wait_until(lambda: not any("deleted" in text for text in wrong()), "the ports to be there again")
            self.assertIn("port 1: its interface or device is there again", cluster.log())
            wait_until(hears, "both ports to hear each other again")

    def test_ends_with_down(self):
        with one_server("2,1") as (cluster, process):
            done = cluster.tool("down")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(process.wait(PATIENCE), 0)
            self.assertEqual([name for name in cluster.files() if name.endswith(".sock")], [])
            self.assert_one_message(cluster.tool("status"), 1, "gradcube up")

    def test_refuses_a_trainer_whose_jobs_leader_is_on_another_server(self):
        with one_server("2,1") as (cluster, _):
            with connect(cluster.sockets()[0], timeout=PATIENCE) as connection:
                self.assertIsNone(knock(connection, hello("lonely")))
                refusal = read_notice(connection.recv(4096))
                self.assertIn("the daemon on server [0,0] does not answer", refusal.text)
                self.assertEqual(connection.recv(4096), b"", "the session is closed")
            wait_until(lambda: cluster.job("lonely") is None, "the job to be forgotten")

    def test_lets_a_trainer_wait_and_names_what_it_waits_for(self):
        with one_server("2,1") as (cluster, _):
            socket = cluster.sockets()[0]
            with gradcube.Session(socket, "pair", members=[7, 8]) as session:
                self.assertEqual((session.rank, session.size), (0, 2))
                job = cluster.job("pair")
                self.assertEqual(job["state"], "gathering")
                self.assertEqual(len(job["trainers"]), 1)
                values = session.alloc(5, "float32")
                values[:] = 1
                with self.assertRaises(gradcube.TimeoutError) as late:
                    session.allreduce(values, op="sum", timeout=0.5)
                self.assert_fails(gradcube.TimeoutError, late.exception, "1 of 2 trainers has not joined", "[2,2]")
            wait_until(lambda: cluster.job("pair") is None, "the job to be forgotten")

    def test_keeps_a_second_daemon_out_of_its_run_directory(self):
        with one_server("2,1") as (cluster, process):
            done = run_daemon("--server", "2,2", *PORTS, cluster=cluster)
            self.assertEqual(done.returncode, 1)
            self.assertIn("a cluster runs already", done.stderr)
            self.assertEqual(cluster.pid(), process.pid)


if __name__ == "__main__":
    main()
