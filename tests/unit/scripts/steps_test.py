"""What the scripts share (scripts/lib.sh): steps that say what is to come, and commands that end with their script.

Usage: steps_test.py
"""

import pathlib
import signal
import subprocess
import unittest

LIBRARY = pathlib.Path(__file__).resolve().parents[3] / "scripts" / "lib.sh"
PATIENCE = 60  # seconds


def start(body):
    script = f"set -euo pipefail; source '{LIBRARY}'; trap end_attended EXIT; trap 'exit 143' TERM; tenths_to_end=5\n{body}"
    return subprocess.Popen(
        ["bash", "-c", script],
        env={"PATH": "/usr/bin:/bin", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Steps(unittest.TestCase):
    def test_each_says_how_long_it_takes_and_what_is_to_come(self):
        done = start("expect 2 45 200; step one; step two; step three; step_done")
        lines = [line for line in done.communicate(timeout=PATIENCE)[0].splitlines() if "done in" not in line]
        self.assertEqual(
            lines,
            [
                "[1/3] one (seconds; then about 4 min to come)",
                "[2/3] two (about 50 s; then about 3 min to come)",
                "[3/3] three (about 3 min)",
            ],
        )

    def test_a_command_that_fails_keeps_its_code(self):
        failing = start("attended bash -c 'exit 7'")
        failing.communicate(timeout=PATIENCE)
        self.assertEqual(failing.returncode, 7)


class Ending(unittest.TestCase):
    def end(self, command):
        """Ends the script while it attends the command, whose grandchild holds standard output as long as it lives."""
        process = start(f"attended bash -c {command!r}")
        self.assertEqual(process.stdout.readline(), "begun\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.communicate(timeout=PATIENCE)[0], "", "all that the script started has ended")
        self.assertEqual(process.returncode, 143)

    def test_ends_what_its_command_has_started(self):
        self.end("sleep 1000 & echo begun; wait")

    def test_ends_what_does_not_heed_sigterm(self):
        self.end('trap "" TERM; sleep 1000 & echo begun; wait')


if __name__ == "__main__":
    unittest.main()
