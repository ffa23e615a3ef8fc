"""Who owns a session's shared memory in Python.

``Handle`` owns the C session. The session object and every ``Block`` of shared memory hold it, so the mapping
lives as long as any array in it, even after the session was closed.

The garbage collector may free an array at any time and in any thread, which the library allows.
"""

import atexit
import bisect
import ctypes
import math
import os
import threading
import weakref

from ._errors import AgainError, error_of
from ._leaving import leave_with
from ._library import keep, library

_handles = weakref.WeakSet()


@atexit.register
def _leave_all():
    """A daemon thread that waits has its session to the end, which would so leave no job in order."""
    for handle in list(_handles):
        handle.leave_at_exit()


class Handle:
    """Owns the C session, which gradcube_open() writes here; closes it when nothing refers to this object any more.

    And the session's C hubs: one that was dropped is freed when the session has left its job, because only then that
    waits for nobody. The garbage collector may take this object before those that refer to it.
    """

    session = None  # where Ctrl-C ends the constructor

    def __init__(self):
        self.native = library()
        self.session = ctypes.c_void_p()
        self._process = os.getpid()
        self._has_left = False
        self._is_at_exit = False
        self._heap = []  # addresses in it, sorted
        self._hubs = {}  # by their addresses: whether each was dropped
        self.making = None  # the HubHandle of a Hub() that has not returned
        _handles.add(self)
        leave_with(self._process, _leave_all)

    def leave_at_exit(self):
        if self.session and self.is_own():
            self._is_at_exit = True
            self.leave()

    def rest_at_exit(self):
        """Without a lock that others want. A daemon thread that waits ends with the process, and has nothing to tell."""
        if self._is_at_exit and threading.current_thread().daemon:
            threading.Event().wait()

    def leave(self):
        self.native.gradcube_leave(self.session)
        self._has_left = True
        self.making = None
        for hub, is_dropped in list(self._hubs.items()):
            if is_dropped:
                self.free_hub(hub, 0, [])

    def has_left(self):
        return self._has_left

    def keep_block(self, first, last):
        """The addresses of a block's first byte and of its last one."""
        for address in (first, last):
            if not self.shares(address):
                bisect.insort(self._heap, address)  # in C: no other thread comes between, nor a handler of a signal

    def shares(self, address):
        """Whether it lies in the memory that the daemon shares: between the blocks of alloc() lies nothing else."""
        return bool(self._heap) and self._heap[0] <= address <= self._heap[-1]

    def keep_hub(self, hub):
        self._hubs[hub] = False

    def drop_hub(self, hub):
        if hub not in self._hubs:
            return
        self._hubs[hub] = True
        if self._has_left:
            self.free_hub(hub, 0, [])

    def free_hub(self, hub, milliseconds, codes):
        """``codes`` gets that of the library, whose hub is gone then unless it is that of AgainError.

        Who has taken the address frees the hub: another thread may be here, too, and Ctrl-C may come anywhere.
        """
        taken = []
        try:
            keep(taken, self._hubs.pop, hub, None)
            if taken[0] is not None:
                keep(codes, self.native.gradcube_hub_free, hub, milliseconds)
        finally:
            if taken and taken[0] is not None and (not codes or codes[-1] == AgainError.code):
                self._hubs[hub] = taken[0]

    def is_own(self):
        """Whether this process has opened it, and is not a forked child, in which a lock may be held for ever."""
        return os.getpid() == self._process

    def check_process(self):
        """Before any lock. What the library refuses in a forked child raises with its sentence."""
        if not self.is_own() and self.native.gradcube_event_fd(self.session) < 0:
            raise self.failure()

    def failure(self, code=None):
        """The exception for the calling thread's last failure on the session; or of an earlier one, with its code."""
        last = self.native.gradcube_last_code(self.session)
        if code not in (None, last):
            return error_of(code, "it failed while Ctrl-C came, and other calls have failed since")
        return error_of(last, self.native.gradcube_last_error(self.session).decode(errors="replace"))

    def __del__(self):
        if not self.session:
            return
        self.leave()
        for hub in list(self._hubs):
            self.free_hub(hub, 0, [])
        session, self.session = self.session, None
        self.native.gradcube_close(session)


class Block:
    """Shared memory as the base object of a NumPy array (through the array interface)."""

    def __init__(self, handle, address, shape, dtype):
        self._handle = handle
        self._address = address
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (address, False),
        }
        handle.keep_block(address, address + max(1, math.prod(shape) * dtype.itemsize) - 1)

    def __reduce__(self):
        raise TypeError("memory of alloc() cannot be copied without its array: copy that")

    def __del__(self):
        self._handle.native.gradcube_free(self._handle.session, self._address)
