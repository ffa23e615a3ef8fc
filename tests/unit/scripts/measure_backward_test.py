"""The networks that scripts/measure_backward.py measures are those of `gradcube model training`.

Usage: measure_backward_test.py SCRIPT GRADCUBE
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

script, tool = sys.argv[1:3]
del sys.argv[1:3]


class Networks(unittest.TestCase):
    def profile(self, network):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "profile.json"
            subprocess.run(
                [tool, "model", "training", "--network", network, "--nodes", "2", "--write-profile", str(path)],
                check=True,
                stdout=subprocess.DEVNULL,
                timeout=60,
            )
            return json.loads(path.read_text())

    def test_have_the_same_layers_with_as_many_parameters(self):
        if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("there is no PyTorch")
        result = subprocess.run([sys.executable, script, "--layers"], capture_output=True, text=True, timeout=240)
        self.assertEqual(result.returncode, 0, result.stderr)
        measured = json.loads(result.stdout)
        self.assertEqual(sorted(measured), ["googlenet", "lenet5", "resnet50", "vgg19"])
        for network, layers in measured.items():
            with self.subTest(network):
                expected = [(layer["name"], layer["bytes"]) for layer in self.profile(network)["layers"]]
                self.assertEqual([(layer["name"], 4 * layer["parameters"]) for layer in layers], expected)


if __name__ == "__main__":
    unittest.main()
