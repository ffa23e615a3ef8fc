"""A call of the library that waits for others: Ctrl-C ends the wait for it, and it goes on."""

import copy
import threading
import time

from ._errors import AgainError, Error, TimeoutError
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
        self._fate = {}  # its maker: decided once, and Ctrl-C comes before or after that
        self._ended = threading.Event()
        self.failure = Error("there is no memory to say how a call has ended")
        self.is_told = False  # how it has ended

    def take(self, timeout=None):
        """Raises what the call fails with, each time. Where it was left before, waits `timeout` seconds at most.

        A call that has not begun when it is left is never made.
        """
        self._handle.check_process()
        deadline = None
        try:
            if self._fate:
                deadline = deadline_of(timeout)
            else:
                threading.Thread(target=self._run, daemon=True).start()
            has_ended = self.wait(deadline)
        finally:
            try:
                self._decide(None)
            finally:
                self._decide(None)  # where a second Ctrl-C has ended the first one
        if not has_ended:
            raise TimeoutError("the call of before, whose wait a signal has ended, still goes on: wait for it again")
        self.is_told = True
        if self.failure is not None:
            raise copy.copy(self.failure)  # whose traceback has this frame, and would keep the session alive

    def wait(self, deadline):
        """True when it has ended."""
        while not self._ended.wait(_WAIT_SECONDS):
            if deadline is not None and time.monotonic() >= deadline:
                return False
        return True

    def is_under_way(self):
        return self.is_made() and not self._ended.is_set()

    def is_made(self):
        """It has begun, and may have ended."""
        return self._fate.get("maker") is not None

    def is_void(self):
        """It never begins."""
        return bool(self._fate) and not self.is_made()

    def _decide(self, maker):
        """Who makes it: a thread that begins, or nobody, where that had not begun."""
        decided = self._fate.setdefault("maker", maker)
        if decided is None:
            self.failure = AgainError("the call was not made, as a signal has ended the wait for it: call again")
            self._ended.set()  # other threads may wait
        return decided

    def _run(self):
        maker = object()
        if self._decide(maker) is not maker:
            return
        try:
            self.failure = None if self._call() == 0 else self._handle.failure()
        except BaseException as failure:
            self.failure = failure.with_traceback(None)
        finally:
            self._call = None
            self._ended.set()
