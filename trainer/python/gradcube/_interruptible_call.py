"""A call of the library that waits for others: Ctrl-C ends the wait for it, and it goes on."""

import copy
import threading
import time

from ._errors import Error, TimeoutError
from ._request import deadline_of

_WAIT_SECONDS = 0.1


class Call:
    """Runs in a thread of its own: signals reach Python's main thread alone, between its instructions.

    The thread keeps the session's handle until the library's call has ended. (Nobody waits for the thread itself: an
    interrupted join() of Python 3.11 takes it for one that has ended.)
    """

    def __init__(self, handle, call):
        """``call`` returns a code of the library."""
        self._handle = handle
        self._call = call
        self._is_begun = threading.Lock()  # whoever has it makes the call: Ctrl-C may come as a thread starts
        self._ended = threading.Event()
        self.failure = Error("there is no memory to say how a call has ended")

    def take(self, timeout=None):
        """Raises what the call fails with, each time. Where it was left before, waits `timeout` seconds at most."""
        self._handle.check_process()
        deadline = None
        if self._is_begun.locked():
            deadline = deadline_of(timeout)
        else:
            threading.Thread(target=self._run, daemon=True).start()
        if not self.wait(deadline):
            raise TimeoutError("the call of before, whose wait a signal has ended, still goes on: wait for it again")
        if self.failure is not None:
            raise copy.copy(self.failure)  # whose traceback has this frame, and would keep the session alive

    def wait(self, deadline):
        """True when it has ended."""
        while not self._ended.wait(_WAIT_SECONDS):
            if deadline is not None and time.monotonic() >= deadline:
                return False
        return True

    def is_under_way(self):
        return self._is_begun.locked() and not self._ended.is_set()

    def _run(self):
        if not self._is_begun.acquire(blocking=False):
            return
        try:
            self.failure = None if self._call() == 0 else self._handle.failure()
        except BaseException as failure:
            self.failure = failure.with_traceback(None)
        finally:
            self._call = None
            self._ended.set()
