"""What Progress says of iterations and messages whose times are known, by a clock that the test sets."""

import sys
import unittest
from unittest import mock

try:
    from gradcube._progress import Observer, Progress
except ModuleNotFoundError as missing:
    print(f"PyTorch is not installed: {missing}")
    sys.exit(77)  # skipped, for meson

MESSAGES = [["2", "1"], ["0"]]


class Work:
    """Of an all-reduce that ends at a given time: it is its own future."""

    def __init__(self, clock, end):
        self.clock = clock
        self.end = end
        self.callbacks = []

    def get_future(self):
        return self

    def add_done_callback(self, callback):
        self.callbacks.append(callback)

    def finish(self):
        before, self.clock.now = self.clock.now, self.end
        for callback in self.callbacks:
            callback(self)
        self.callbacks = []
        self.clock.now = max(before, self.end)

    def wait(self):
        self.finish()


class Clock:
    now = 100.0

    def perf_counter(self):
        return self.now


class TellsProgress(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        patch = mock.patch("gradcube._progress.time", self.clock)
        patch.start()
        self.addCleanup(patch.stop)
        self.observer = Observer(None)

    def at(self, seconds):
        """Of the iteration that begins."""
        self.clock.now = self.begin + seconds

    def iteration(self, spans, length, waits=False):
        """Messages from one time to another; then it waits for them in their order. It takes so long in all."""
        self.begin = self.clock.now
        messages, works = [], []
        for begin, end in spans:
            self.at(begin)
            works.append(Work(self.clock, self.begin + end))
            messages.append(self.observer.sent("message", self.clock.now, works[-1]))
        if waits:
            self.observer.finish_iteration(waits=True)
            for work in works:
                work.finish()
            self.at(length)
            return
        for message in messages:
            message.wait()
        self.at(length)
        self.observer.finish_iteration()

    def progress(self):
        return self.observer.progress(MESSAGES)

    def test_nothing_before_there_are_two_iterations(self):
        self.assertEqual(self.progress(), Progress(0, MESSAGES, 0.0, 0.0, 0.0))
        self.iteration([(1, 2)], 4)
        self.assertEqual(self.progress(), Progress(1, MESSAGES, 0.0, 0.0, 0.0))
        self.assertEqual(self.progress().hidden, 0)

    def test_messages_that_overlap_count_once_and_gaps_do_not(self):
        for _ in range(3):
            self.iteration([(1, 3), (2, 4), (6, 7)], 10)
        self.assertEqual(self.progress(), Progress(3, MESSAGES, 10.0, 4.0, 1.0))
        self.assertEqual(self.progress().hidden, 0.75)

    def test_times_are_medians(self):
        for length in (10, 10, 20, 30, 1000, 20, 20):
            self.iteration([(1, 3)], length)
        self.assertEqual(self.progress().iteration_seconds, 20)

    def test_who_only_knows_when_it_begins_to_wait_waits_for_the_last_message(self):
        for _ in range(4):
            self.iteration([(1, 5), (2, 8)], 10, waits=True)
        self.assertEqual(self.progress(), Progress(4, MESSAGES, 10.0, 7.0, 6.0))

    def test_a_line_says_it(self):
        for _ in range(3):
            self.iteration([(0.001, 0.003), (0.002, 0.005)], 0.0125)
        self.assertEqual(str(self.progress()), "3 iterations, 12.5 ms each; 2 all-reduces in 4.0 ms, 25% hidden")


if __name__ == "__main__":
    unittest.main()
