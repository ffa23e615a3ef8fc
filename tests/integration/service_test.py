"""The systemd unit: systemd accepts it, and its command runs with no more rights than the unit gives.

A daemon with ports needs root, to make a network namespace with two and to become another user in it. The rights are a
user, a capability, and the unit's filter of system calls. What the unit hides of the file system is not tried here.
"""

import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import system_call_filter
from fabrics import PATIENCE, TOOL, new_key
from harness import main, wait_until

UNIT = pathlib.Path(os.environ["GRADCUBE_SERVICE_UNIT"])
DAEMON = os.environ["GRADCUBE_DAEMON"]
NOBODY = 65534
MAKE_PORTS = """
set -e
for i in 0 1; do
  ip link add name port$i mtu 9000 type veth peer name far$i mtu 9000
  ip link set dev port$i up
  ip link set dev far$i up
done
exec "$@"
"""
RIGHTS = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
RIGHTS += [f"--{kind}-caps=-all,+net_raw" for kind in ("inh", "ambient")] + ["--bounding-set=-all,+net_raw"]


TENANT = pathlib.Path(__file__).with_name("tenant.py")
SMALL = ["--sizes", "4,1M", "--iterations", "2"]
MOST_EXPOSED = 2.0  # of 10, as systemd-analyze counts
NO_FILTER = system_call_filter.why_not()
FILTERED = [] if NO_FILTER else [sys.executable, system_call_filter.__file__, str(UNIT)]


def settings():
    """The unit's settings, by name."""
    return {name: values[-1] for name, values in system_call_filter.settings(UNIT).items()}


def may_make_ports():
    try:
        done = subprocess.run(
            ["unshare", "--net", "sh", "-c", MAKE_PORTS, "sh", *RIGHTS, "true"], capture_output=True, timeout=PATIENCE
        )
    except OSError:
        return False
    return done.returncode == 0


class Unit(unittest.TestCase):
    def analyze(self, *arguments):
        with tempfile.TemporaryDirectory() as directory:
            unit = pathlib.Path(directory) / "gradcubed@daemon.service"
            text = re.sub(r'(?m)^ExecStart="[^"]+"', f'ExecStart="{DAEMON}"', UNIT.read_text())
            unit.write_text(text)  # the daemon is not installed where the unit says
            command = ["systemd-analyze", *arguments, unit]
            return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)

    @unittest.skipIf(shutil.which("systemd-analyze") is None, "there is no systemd-analyze")
    def test_is_accepted_by_systemd(self):
        done = self.analyze("verify")
        self.assertEqual([line for line in done.stderr.splitlines() if "gradcubed" in line], [])

    @unittest.skipIf(shutil.which("systemd-analyze") is None, "there is no systemd-analyze")
    def test_exposes_little_of_the_host(self):
        done = self.analyze("security", "--offline=yes", "--no-pager")
        exposed = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
        self.assertIsNotNone(exposed, done.stdout + done.stderr)
        self.assertLessEqual(float(exposed[1]), MOST_EXPOSED, done.stdout)

    @unittest.skipIf(NO_FILTER, NO_FILTER)
    def test_allows_the_system_calls_that_jobs_take_and_no_others(self):
        with tempfile.TemporaryDirectory() as directory:
            environment = dict(os.environ, GRADCUBE_RUN=directory)
            tool = lambda *words: subprocess.run(
                [TOOL, *words], env=environment, capture_output=True, text=True, timeout=2 * PATIENCE
            )
            daemon = [*FILTERED, DAEMON, "--all", "--run-dir", directory]
            process = subprocess.Popen(daemon, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            try:
                wait_until(lambda: tool("status").returncode == 0 or process.poll() is not None, "the daemon")
                for work in (["allreduce", *SMALL], ["sendrecv", *SMALL], ["hub", "--network", "lenet5"]):
                    done = tool("perf", *work, "--check")
                    self.assertEqual((done.returncode, done.stderr), (0, ""), work)
            finally:
                process.terminate()
                _, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, errors)
        done = subprocess.run([*FILTERED, shutil.which("chown"), "0:0", "."], capture_output=True, text=True, timeout=PATIENCE)
        self.assertIn("Operation not permitted", done.stderr)

    def test_asks_for_the_right_to_use_packet_sockets_alone(self):
        unit = settings()
        self.assertEqual(unit["AmbientCapabilities"], "CAP_NET_RAW")
        self.assertEqual(unit["CapabilityBoundingSet"], "CAP_NET_RAW")
        self.assertEqual(unit["NoNewPrivileges"], "yes")

    def test_is_started_again_however_often_it_fails_unless_it_was_asked_wrongly(self):
        unit = settings()
        self.assertEqual(unit["Restart"], "on-failure")
        self.assertEqual(unit["StartLimitIntervalSec"], "0")
        self.assertEqual(unit["RestartPreventExitStatus"], "2")
        self.assertEqual(unit["After"], "network-online.target")
        self.assertEqual(unit["Wants"], unit["After"])

    @unittest.skipUnless(may_make_ports(), "this user may not make a network namespace or become another")
    def test_starts_servers_with_these_rights_whose_trainers_reduce(self):
        """Two, at the ends of one cable. Their trainers are root's."""
        with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
            os.chmod(directory, 0o755)
            # Where another user can read them; builds may lie in a home.
            daemon, tool, *filtered = (shutil.copy(each, directory) for each in (DAEMON, TOOL, *FILTERED[1:]))
            cluster = pathlib.Path(directory) / "cluster.toml"
            cluster.write_text('[topology]\nspec = "star:2"\n' + new_key(directory))
            os.chown(f"{directory}/cube.key", NOBODY, NOBODY)
            commands, runs = [], []
            for server, interface in enumerate(("port0", "far0")):
                run = pathlib.Path(directory) / f"run{server}"
                run.mkdir(mode=0o700)
                os.chown(run, NOBODY, NOBODY)
                runs.append(run)
                values = {"GRADCUBE_SERVER": str(server), "GRADCUBE_INTERFACES": interface, "RUNTIME_DIRECTORY": str(run)}
                command = re.sub(r"\$\{(\w+)\}", lambda name: values[name[1]], settings()["ExecStart"])
                words = shlex.split(command.replace("/etc/gradcube/cluster.toml", str(cluster)))[1:]
                commands.append(shlex.join([*RIGHTS, *FILTERED[:1], *filtered, daemon, *words]))
            # The namespace's first process ends both.
            script = MAKE_PORTS.replace('exec "$@"', f"trap 'kill $a $b; wait' TERM; {commands[0]} & a=$!; {commands[1]} & b=$!; wait")
            process = subprocess.Popen(
                ["unshare", "--net", "sh", "-c", script], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            stack.callback(process.communicate)
            stack.callback(process.terminate)
            for server, run in enumerate(runs):
                ask = [*RIGHTS, "env", f"GRADCUBE_RUN={run}", tool, "status"]
                status = lambda: subprocess.run(ask, capture_output=True, text=True, timeout=PATIENCE)
                wait_until(lambda: status().returncode == 0 or process.poll() is not None, "the daemon")
                self.assertIn(f"[{server}]", status().stdout)
            trainers = []
            for server, run in enumerate(runs):
                words = [sys.executable, TENANT, "reduce", run / f"server-{server}.sock", "job", str(server)]
                environment = dict(os.environ, GRADCUBE_DAEMON_UID=str(NOBODY), GRADCUBE_HEAP="64Mi")
                trainers.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True))
            self.assertEqual([trainer.communicate(timeout=PATIENCE)[0] for trainer in trainers], ['{"sum": 3.0}\n'] * 2)


if __name__ == "__main__":
    main()
