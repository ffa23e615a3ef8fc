"""The systemd unit: systemd accepts it, and its command runs with no more rights than the unit gives.

The second needs root, to make a network namespace with two ports and to become another user in it.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

from fabrics import PATIENCE, TOOL
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


def settings():
    """The unit's settings, by name."""
    return dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if re.match(r"[A-Z]\w+=", line))


def may_make_ports():
    try:
        done = subprocess.run(
            ["unshare", "--net", "sh", "-c", MAKE_PORTS, "sh", *RIGHTS, "true"], capture_output=True, timeout=PATIENCE
        )
    except OSError:
        return False
    return done.returncode == 0


class Unit(unittest.TestCase):
    @unittest.skipIf(shutil.which("systemd-analyze") is None, "there is no systemd-analyze")
    def test_is_accepted_by_systemd(self):
        with tempfile.TemporaryDirectory() as directory:
            unit = pathlib.Path(directory) / "gradcubed@daemon.service"
            text = re.sub(r'(?m)^ExecStart="[^"]+"', f'ExecStart="{DAEMON}"', UNIT.read_text())
            unit.write_text(text)  # the daemon is not installed where the unit says
            done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=PATIENCE)
            about = [line for line in done.stderr.splitlines() if "gradcubed" in line]
            self.assertEqual(about, [])

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
    def test_starts_a_server_with_these_rights(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chmod(directory, 0o755)
            run = pathlib.Path(directory) / "run"
            run.mkdir(mode=0o700)
            os.chown(run, NOBODY, NOBODY)
            # Where another user can read them; builds may lie in a home.
            daemon, tool = shutil.copy(DAEMON, directory), shutil.copy(TOOL, directory)
            cluster = pathlib.Path(directory) / "cluster.toml"
            cluster.write_text('[topology]\nspec = "bcube:3,2"\n')
            values = {"GRADCUBE_SERVER": "2,1", "GRADCUBE_INTERFACES": "port0,port1", "RUNTIME_DIRECTORY": str(run)}
            command = re.sub(r"\$\{(\w+)\}", lambda name: values[name[1]], settings()["ExecStart"])
            words = [daemon, *shlex.split(command.replace("/etc/gradcube/cluster.toml", str(cluster)))[1:]]
            process = subprocess.Popen(
                ["unshare", "--net", "sh", "-c", MAKE_PORTS, "sh", *RIGHTS, *words],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            try:
                ask = [*RIGHTS, "env", f"GRADCUBE_RUN={run}", tool, "status"]
                status = lambda: subprocess.run(ask, capture_output=True, text=True, timeout=PATIENCE)
                wait_until(lambda: status().returncode == 0 or process.poll() is not None, "the daemon")
                self.assertIsNone(process.poll())
                self.assertIn("[2,1]", status().stdout)
            finally:
                process.terminate()
                _, errors = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, errors)


if __name__ == "__main__":
    main()
