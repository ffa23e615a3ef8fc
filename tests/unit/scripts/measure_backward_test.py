"""The networks that scripts/measure_backward.py measures are those of `gradcube model training`.

Usage: measure_backward_test.py SCRIPT NETWORKS: the folder with a file for each
"""

import json
import pathlib
import subprocess
import sys
import unittest

script, folder = sys.argv[1:3]
del sys.argv[1:3]


class Networks(unittest.TestCase):
    def test_have_the_same_layers_with_as_many_parameters(self):
        if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("there is no PyTorch")
        result = subprocess.run([sys.executable, script, "--layers"], capture_output=True, text=True, timeout=240)
        self.assertEqual(result.returncode, 0, result.stderr)
        known = {path.stem: json.loads(path.read_text()) for path in pathlib.Path(folder).glob("*.json")}
        self.assertEqual(sorted(known), ["googlenet", "lenet5", "resnet50", "vgg19"])
        keys = {
            network: [{"name": key["name"], "parameters": key["elements"]} for key in content["keys"]]
            for network, content in known.items()
        }
        self.assertEqual(json.loads(result.stdout), keys)


if __name__ == "__main__":
    unittest.main()
