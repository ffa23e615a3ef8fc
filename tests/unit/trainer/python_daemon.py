"""A fake daemon for each test (fake_daemon_main.cc). The test's first argument is the daemon's path."""

import os
import subprocess
import sys
import tempfile
import time
import unittest

os.environ["GRADCUBE_HEAP"] = "64Mi"

FAKE_DAEMON = sys.argv.pop(1)
RANK, SIZE = 7, 9  # what the fake daemon says; it multiplies a sum by the size
BROADCAST = 7  # what it fills the bytes of a broadcast with
RECEIVED = 9  # and of a message


class WithDaemon(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="gradcube-")
        self.socket = os.path.join(self.directory.name, "server-2-1.sock")
        self.daemon = subprocess.Popen(
            [FAKE_DAEMON, self.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.assertEqual(self.daemon.stdout.readline(), b"ready\n")

    def tearDown(self):
        self.stop_daemon()
        self.directory.cleanup()

    def stop_daemon(self):
        self.daemon.stdin.close()
        self.daemon.wait()
        self.daemon.stdout.close()

    def release(self):
        self.daemon.stdin.write(b"r")
        self.daemon.stdin.flush()

    def ask(self, what):
        self.daemon.stdin.write(what)
        self.daemon.stdin.flush()
        return int(self.daemon.stdout.readline())

    def leaves(self):
        """How many trainers have said goodbye to the daemon."""
        return self.ask(b"l")

    def wait_for(self, condition):
        deadline = time.monotonic() + 10
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.001)
        self.assertTrue(condition())

    def assert_leaves(self, count):
        self.wait_for(lambda: self.leaves() == count)
