"""Scripts that are called wrongly say which word is wrong, at once: nothing is installed or built before.

Usage: misuse_test.py
"""

import os
import pathlib
import re
import subprocess
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "scripts"


class Misuse(unittest.TestCase):
    def expect(self, script, arguments, words):
        done = subprocess.run(
            [str(SCRIPTS / script), *arguments],
            env=dict(os.environ, NO_COLOR="1"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.splitlines()[0], f"{script}: {words}")

    def test_an_option_that_is_not_there_is_named(self):
        self.expect("test.sh", ["--full", "--ful"], 'there is no option "--ful"')
        self.expect("bench.sh", ["--quick", "--quik"], 'there is no option "--quik"')
        self.expect("quickstart.sh", ["--rate", "1gbit", "--los=1"], '"--los=1" is no option of gradcube up')

    def test_a_word_too_many_is_named(self):
        stages = "install_missing check_sources build_with_gnu test_with_gnu test_with_clang"
        self.expect("test.sh", ["unit"], f'"unit" is no stage; these are: {stages}')
        self.expect("quickstart.sh", ["--rate", "1gbit", "fast"], '"fast" is no option of gradcube up')
        self.expect("quickstart.sh", ["--json", "--mtu"], "--mtu: the value is missing")
        self.expect("quickstart.sh", ["rate", "1gbit"], '"rate" is no option of gradcube up')

    def test_what_is_not_there_is_named(self):
        self.expect("test_torch.sh", ["--build", "build"], "which version of PyTorch?")
        self.expect("test_torch.sh", ["2.6.0", "torche"], 'there is no test "torche"')
        self.expect("test_torch.sh", ["2.6.0", "--python"], "--python: the value is missing")
        self.expect("package.sh", ["rpm"], '"rpm" cannot be packed; expected: wheel, deb, image, aarch64')

    def test_a_wrong_value_is_named_with_what_is_expected(self):
        probability = "expected a number in 0..1, for example 0.01"
        for option, value, words in (
            ("--loss", "2", probability),
            ("--corrupt", "1.5", probability),
            ("--reorder", "often", probability),
            ("--mtu", "100", "expected a whole number in 1280..9000"),
            ("--mtu", "9K", "expected a whole number in 1280..9000"),
            ("--server-lcores", "0", "expected a whole number in 1..20"),
            ("--seed", "-1", "expected a whole number"),
            ("--rate", "1", "expected a rate, for example 200mbit"),
            ("--rate", "1gbit,server8=2", "expected a rate, for example 200mbit"),
            ("--delay", "50", "expected a time, for example 50us"),
            ("--queue", "64T", "expected bytes, for example 64K"),
            ("--fabric", "ether", "expected embedded, memif, veth, udp"),
            ("--topology", "bcube", "expected a topology, for example bcube:3,2"),
        ):
            for arguments in ([option, value], [f"{option}={value}"]):
                self.expect("quickstart.sh", ["--seed", "1", *arguments, "--los"], f'{option} "{value}": {words}')

    def test_right_values_are_taken(self):
        right = "--loss 0 --loss 1 --loss 0.001 --loss .5 --loss 1e-3 --loss 1.0 --mtu 1280 --mtu=9000 --seed 18 --rate 1Gbit"
        right += " --rate level0=10gbit,level1=1.5gbit --rate 200mbit,server8=10x200mbit --delay 0 --delay 1.5ms --queue 64Ki"
        right += " --queue 128000 --queue 1KB --idle spin --topology bcube:4x3x2 --topology tree:4x2 --absent 3,1 --lcores 0-3"
        self.expect("quickstart.sh", [*right.split(), "--los=1"], '"--los=1" is no option of gradcube up')

    def test_each_setting_is_an_option_of_the_quick_start(self):
        header = (SCRIPTS.parent / "control/settings/cluster_settings.h").read_text(encoding="utf-8")
        table = header.partition("kSettings[] = {")[2].partition("};")[0]
        names = re.findall(r'\{\s*"([^"]+)",\s*"[^"]+",\s*Reach::', table)
        self.assertEqual(len(names), table.count("Reach::"))
        self.assertIn("rate", names)
        for name in names:
            self.expect("quickstart.sh", [f"--{name}"], f"--{name}: the value is missing")

    def test_a_group_of_benches_that_is_not_there_is_named(self):
        words = 'there is no group "horses"; expected "all", or a part of one of these names:'
        self.expect("bench.sh", ["--quick", "hosts", "horses"], words)


if __name__ == "__main__":
    unittest.main()
