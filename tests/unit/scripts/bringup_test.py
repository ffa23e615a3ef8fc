"""scripts/bringup.sh on a made-up host: what it binds, what it refuses, and that it puts all of it back.

Usage: bringup_test.py SCRIPT
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

from fake_host import FakeHost

script = sys.argv.pop(1)
FIRST, SECOND = "0000:3b:00.0", "0000:3b:00.1"
LOCAL_IPV6 = "fe80::/64 proto kernel metric 256\nmulticast ff00::/8 table local\nlocal fe80::1 table local\n"


class Bringup(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.host = FakeHost(pathlib.Path(directory.name) / "host")
        self.state_directory = self.host.root / "run/gradcube-bringup"
        self.state = self.state_directory / "bringup.state"
        self.host.add_node(0)
        self.host.add_node(1, pages=7)

    def add_nics(self, groups=(1, 2), driver="ixgbe"):
        self.host.add_nic(FIRST, "eth1", "02:00:00:00:00:01", driver=driver, group=groups[0])
        self.host.add_nic(SECOND, "eth2", "02:00:00:00:00:02", driver=driver, group=groups[1])
        self.host.add_routes("eth1", LOCAL_IPV6, family=6)

    def run_script(self, *options, environment=None, **more):
        return subprocess.run(
            [script, *options],
            env={**os.environ, "GRADCUBE_FAKE_HOST": str(self.host.root), "NO_COLOR": "1", **(environment or {})},
            text=True,
            timeout=120,
            # Under nohup it would be ignored, and then a shell cannot heed it.
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
            **more,
        )

    def bringup(self, *options, code=0, environment=None):
        outcome = self.run_script(*options, environment=environment, capture_output=True)
        self.assertEqual(outcome.returncode, code, outcome.stdout + outcome.stderr)
        return outcome.stdout + outcome.stderr

    def assert_untouched(self):
        self.assertEqual(self.host.log(), "")
        self.assertFalse(self.state.exists())

    def assert_as_before(self):
        self.assertEqual([self.host.pages(0), self.host.pages(1)], [0, 7])
        for nic in FIRST, SECOND:
            self.assertEqual(self.host.driver(nic), "ixgbe")
            self.assertEqual(self.host.override(nic), "(null)")
        self.assertFalse(self.host.has_vfio())
        self.assertFalse(self.state.exists())

    def test_binds_and_reserves_and_puts_everything_back(self):
        self.add_nics()
        self.bringup("--huge-pages", "100M", "--nic", FIRST, "--nic", "02:00:00:00:00:02")
        self.assertEqual([self.host.pages(0), self.host.pages(1)], [50, 50])
        for nic in FIRST, SECOND:
            self.assertEqual(self.host.driver(nic), "vfio-pci")
            self.assertEqual(self.host.override(nic), "vfio-pci")
        self.bringup("--undo")
        self.assert_as_before()
        writes = self.host.log()
        self.assertIn("nothing to undo", self.bringup("--undo"))
        self.assertEqual(self.host.log(), writes)

    def test_a_second_run_adds_and_keeps_what_was_before_the_first(self):
        self.add_nics()
        self.bringup("--huge-pages", "20M", "--nic", FIRST)
        text = self.bringup("--huge-pages", "40M", "--nic", FIRST, "--nic", "eth2")
        self.assertIn(f"{FIRST} is bound to vfio-pci already", text)
        self.assertEqual([self.host.pages(0), self.host.pages(1)], [20, 20])
        self.bringup("--undo")
        self.assert_as_before()

    def test_never_takes_pages_away(self):
        self.host.add_node(2, pages=400)
        self.assertIn("node 2 has 400", self.bringup("--huge-pages", "100M"))
        self.assertEqual(self.host.pages(2), 400)
        self.bringup("--undo")
        self.assertEqual(self.host.pages(2), 400)

    def test_a_dry_run_changes_nothing_and_says_what_it_would_do(self):
        self.add_nics()
        text = self.bringup("--huge-pages", "100M", "--nic", FIRST, "--dry-run")
        self.assertIn("would reserve 50 huge pages of 2048 kB on node 1, which has 7", text)
        self.assertIn("would load vfio-pci", text)
        self.assertIn(f"would bind {FIRST} to vfio-pci, and take it from ixgbe", text)
        self.assert_untouched()
        self.assertFalse(self.state_directory.exists())
        self.bringup("--nic", FIRST)
        state, writes = self.state.read_text(), self.host.log()
        self.assertIn(f"would give {FIRST} back to ixgbe", self.bringup("--undo", "--dry-run"))
        self.assertEqual((self.state.read_text(), self.host.log()), (state, writes))

    def test_refuses_a_nic_that_the_host_is_reached_by(self):
        self.add_nics()
        for family, route, told in (
            (4, "default via 10.0.0.1 proto dhcp\n10.0.0.0/24 proto kernel\n", "default route"),
            (4, "local 10.0.0.5 table local proto kernel\n", "local 10.0.0.5"),
            (6, "default via fe80::1 proto ra metric 100\n", "default route"),
            (6, LOCAL_IPV6 + "2001:db8::/64 proto kernel\n", "2001:db8::/64"),
        ):
            self.host.add_routes("eth2", route, family)
            text = self.bringup("--huge-pages", "100M", "--nic", FIRST, "--nic", SECOND, code=2)
            self.assertIn(told, text)
            self.assertIn(f"{SECOND} is eth2", text)
            self.host.add_routes("eth2", "", family)
        self.assert_untouched()

    def test_refuses_a_nic_that_another_interface_is_made_of(self):
        self.add_nics()
        self.host.write("sys/class/net/eth1/upper_bond0/address", "")
        self.assertIn("bond0 is made of it", self.bringup("--nic", FIRST, code=2))
        self.assert_untouched()

    def test_names_one_of_many_uses_of_a_nic(self):
        self.add_nics()
        self.host.add_routes("eth1", "".join(f"10.0.{net}.0/24 proto kernel\n" for net in range(256)))
        for vlan in range(500):
            self.host.write(f"sys/class/net/eth1/upper_vlan{vlan}/address", "")
        text = self.bringup("--nic", FIRST, code=2)
        self.assertIn("a route goes over it (10.0.0.0/24 proto)", text)
        self.assertNotIn("vlan", text)
        self.assert_untouched()

    def test_sees_the_routes_of_a_virtio_nic(self):
        self.host.add_nic(FIRST, "ens3", driver="virtio-pci", group=1)
        self.host.add_routes("ens3", "default via 10.0.0.1\n")
        self.assertIn("default route", self.bringup("--nic", "3b:00.0", code=2))
        self.assert_untouched()

    def test_leaves_mellanox_nics_with_their_driver(self):
        self.add_nics(driver="mlx5_core")
        self.host.add_routes("eth1", "10.0.0.0/24 proto kernel\n")
        self.assertIn("stays with mlx5_core", self.bringup("--nic", FIRST))
        self.assert_untouched()

    def test_needs_an_iommu_or_to_be_told_to_do_without(self):
        self.add_nics(groups=(None, 1))
        text = self.bringup("--nic", FIRST, code=1)
        self.assertIn("intel_iommu=on", text)
        self.assertIn("--no-iommu", text)
        self.assert_untouched()
        self.bringup("--nic", SECOND, "--no-iommu")
        self.assertEqual(self.host.noiommu(), "N")
        self.bringup("--nic", FIRST, "--no-iommu")
        self.assertEqual(self.host.noiommu(), "Y")
        self.bringup("--undo")
        self.assertIn("N > sys/module/vfio/parameters/enable_unsafe_noiommu_mode", self.host.log())
        self.assert_as_before()

    def test_takes_all_of_an_iommu_group_or_none(self):
        self.add_nics(groups=(1, 1))
        self.assertIn(f"shares its IOMMU group with {SECOND}", self.bringup("--nic", FIRST, code=1))
        self.assert_untouched()
        self.bringup("--nic", FIRST, "--nic", SECOND)
        self.assertEqual(self.host.driver(SECOND), "vfio-pci")

    def test_gives_back_a_nic_that_had_no_driver(self):
        self.host.add_nic(FIRST, driver="", group=1)
        self.bringup("--nic", FIRST)
        self.assertEqual(self.host.driver(FIRST), "vfio-pci")
        self.bringup("--undo")
        self.assertIsNone(self.host.driver(FIRST))

    def test_undoes_a_bring_up_that_fails_half_way(self):
        self.add_nics()
        self.host.write("broken", f"sys/bus/pci/devices/{SECOND}/driver/unbind")
        text = self.bringup("--huge-pages", "100M", "--nic", FIRST, "--nic", SECOND, code=1)
        self.assertIn("undoing what this run has done", text)
        self.assert_as_before()

    def test_undoes_the_failed_run_alone(self):
        self.add_nics()
        self.bringup("--huge-pages", "20M", "--nic", FIRST)
        self.host.add_node(2, room=3)
        text = self.bringup("--huge-pages", "100M", code=1)
        self.assertIn("node 2 has memory for 3 of 50 huge pages", text)
        self.assertEqual(self.host.pages(2), 0)
        self.assertEqual(self.host.driver(FIRST), "vfio-pci")
        self.assertEqual([self.host.pages(0), self.host.pages(1)], [10, 10])
        self.bringup("--undo")
        self.assert_as_before()

    def test_undoes_what_it_has_done_when_a_signal_ends_it(self):
        self.add_nics()
        for number in signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM:
            # The last change of all.
            self.host.write("signal", f"{int(number)} {SECOND} > sys/bus/pci/drivers_probe")
            text = self.bringup("--huge-pages", "100M", "--nic", FIRST, "--nic", SECOND, code=128 + number)
            self.assertIn("undoing what this run has done", text, number.name)
            self.assertIn(f"give {SECOND} back to ixgbe", text, number.name)
            self.assert_as_before()

    def test_undoes_what_it_has_done_when_nobody_reads_what_it_says(self):
        self.add_nics()
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        options = ["--huge-pages", "100M", "--nic", FIRST, "--nic", SECOND]
        self.assertEqual(self.run_script(*options, stdout=writer, stderr=writer).returncode, 141)
        self.assert_as_before()
        # Nor where its last words alone reach nobody.
        self.host.write("signal", f"{int(signal.SIGHUP)} {SECOND} > sys/bus/pci/drivers_probe")
        with open(self.host.root / "said", "w", encoding="utf-8") as said:
            self.assertEqual(self.run_script(*options, stdout=said, stderr=writer).returncode, 129)
        self.assert_as_before()

    def test_keeps_what_it_could_not_undo_for_the_next_time(self):
        self.add_nics()
        self.bringup("--huge-pages", "100M", "--nic", FIRST)
        user = self.host.root / "proc/4711/fd"
        user.mkdir(parents=True)
        (user / "9").symlink_to("/dev/vfio/1")
        self.assertIn(f"{FIRST} is in use by process 4711", self.bringup("--undo", code=1))
        self.assertEqual(self.host.driver(FIRST), "vfio-pci")
        self.assertEqual(self.host.pages(0), 0)
        (user / "9").unlink()
        self.host.write("sys/bus/pci/drivers/vfio-pci/unbind", "")
        self.bringup("--undo")
        self.assertEqual(self.host.driver(FIRST), "ixgbe")
        self.assertFalse(self.state.exists())

    def test_forgets_a_nic_that_was_pulled_out(self):
        self.add_nics()
        self.bringup("--nic", FIRST)
        os.rename(self.host.root / "sys/bus/pci/devices" / FIRST, self.host.root / "drawer")
        self.assertIn("is not there any more", self.bringup("--undo"))
        self.assertFalse(self.state.exists())

    def test_believes_only_its_own_state(self):
        self.add_nics()
        header = "gradcube bringup 1\n"
        self.state_directory.mkdir(mode=0o700)
        for text in (
            "something else\n",
            header + "pages 0 2048 7; reboot\n",
            header + "pages ../../.. 2048 7\n",
            header + "module ext4\n",
            header + f"nic {FIRST}/../x ixgbe -\n",
            header + "nic 3b ixgbe -\n",
            header + "\x1b[2J\n",
        ):
            self.state.write_text(text)
            told = self.bringup("--undo", code=1)
            self.assertNotIn("\x1b", told)
            self.assertEqual(self.host.log(), "")
        self.state.write_text(header + "pages 0 2048 7\n")
        self.state.chmod(0o620)
        self.assertIn("this user alone", self.bringup("--undo", code=1))
        self.state.unlink()
        self.state.symlink_to("/dev/null")
        self.assertIn("this user alone", self.bringup("--undo", code=1))
        self.assertEqual(self.host.log(), "")

    def test_writes_into_no_directory_of_others(self):
        self.add_nics()
        self.state_directory.mkdir()
        self.state_directory.chmod(0o777)
        self.assertIn("this user alone", self.bringup("--nic", FIRST, code=1))
        self.state_directory.rename(self.state_directory.with_name("elsewhere"))
        self.state_directory.symlink_to("elsewhere")
        self.assertIn("this user alone", self.bringup("--nic", FIRST, code=1))
        self.assert_untouched()

    def test_refuses_bad_input(self):
        self.add_nics()
        self.host.add_nic("0000:00:1f.2", driver="ahci", device_class="0x010601")
        for options, told in (
            ([], "nothing to do"),
            (["--nic"], "needs a value"),
            (["--nic", ""], "needs a value"),
            (["--nic", "eth9"], "no NIC of this host"),
            (["--nic", "../../../etc"], "no NIC of this host"),
            (["--nic", "0000:3b:00.9"], "no NIC of this host"),
            (["--nic", "02:00:00:00:00:99"], "no NIC of this host"),
            (["--nic", "00:1f.2"], "no network controller"),
            (["--huge-pages", "1e9"], "expected a size"),
            (["--huge-pages", "0G"], "expected a size"),
            (["--huge-pages", "1G", "--page-size", "1G"], "no huge pages of 1048576 kB"),
            (["--undo", "--nic", FIRST], "--undo"),
            (["--undo", "--run-dir", "/tmp"], "--run-dir is for the gradcubed"),
            (["--huge-pages", "1G", "--run-dir", "/tmp"], "--run-dir is for the gradcubed"),
            (["--frobnicate"], "unknown option"),
        ):
            self.assertIn(told, self.bringup(*options, code=2), options)
        self.assert_untouched()

    def test_becomes_the_daemon_that_is_asked_for(self):
        daemon = self.host.root / "bin" / "gradcubed"
        daemon.write_text('#!/bin/sh\nprintf "%s." "$@"\n')
        daemon.chmod(0o700)
        options = ["--", "--server", "2,1", "--cluster", "a b"]
        environment = {"GRADCUBED": str(daemon), "GRADCUBE_RUN": "/elsewhere"}
        text = self.bringup("--huge-pages", "100M", *options, environment=environment)
        self.assertTrue(text.endswith("\n--server.2,1.--cluster.a b."), text)
        self.assertEqual(self.host.pages(0), 50)
        text = self.bringup("--huge-pages", "100M", "--run-dir", "here", *options, environment=environment)
        self.assertTrue(text.endswith("\n--run-dir.here.--server.2,1.--cluster.a b."), text)

    def test_undoes_in_any_login_what_was_done_in_another(self):
        self.add_nics()
        for name in "XDG_RUNTIME_DIR", "GRADCUBE_RUN":
            first, second = (self.host.root / f"{name}-{login}" for login in "12")
            first.mkdir(mode=0o700)
            self.bringup("--huge-pages", "100M", "--nic", FIRST, environment={name: str(first)})
            self.assertEqual(self.state_directory.stat().st_mode & 0o777, 0o755)
            first.rmdir()
            self.bringup("--undo", environment={name: str(second)})
            self.assert_as_before()
            self.assertFalse(second.exists())


if __name__ == "__main__":
    unittest.main()
