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
