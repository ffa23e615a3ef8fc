"""The programs of a wheel: which ones the names in $PATH lead to, without loading the package."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import _gradcube_programs

ECHO = '#!/bin/sh\necho "$(basename "$0")" "$@"\n'


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.site = pathlib.Path(folder.name)
        shutil.copy(_gradcube_programs.__file__, self.site)
        programs = self.site / "gradcube" / "bin"
        programs.mkdir(parents=True)
        for name in ("gradcube", "gradcubed"):
            (programs / name).write_text(ECHO)
            (programs / name).chmod(0o755)
        (self.site / "gradcube" / "__main__.py").write_text("import sys; print('Python', *sys.argv[1:])")

    def said(self, function, *arguments):
        program = f"import _gradcube_programs; _gradcube_programs.{function}()"
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(
            command, env={"PYTHONPATH": str(self.site)}, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout.strip()

    def test_each_name_leads_to_its_program_with_all_arguments(self):
        self.assertEqual(self.said("tool", "run", "--", "a b"), "gradcube run -- a b")
        self.assertEqual(self.said("daemon", "--help"), "gradcubed --help")

    def test_what_concerns_pytorch_is_for_the_python_of_the_wheel(self):
        self.assertEqual(self.said("tool", "torch", "build", "--again"), "Python torch build --again")


if __name__ == "__main__":
    unittest.main()
