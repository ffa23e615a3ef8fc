"""Who owns a session's shared memory in Python.

``Handle`` owns the C session. The session object and every ``Block`` of shared memory hold it, so the mapping
lives as long as any array in it, however long the session itself has been closed.

Arrays die whenever the garbage collector says so, perhaps in another thread while this one waits in the
library; a C session is for one thread at a time. So a dying block only puts its address on a list, which is
worked off at the session's next call.
"""

import collections

from ._library import library


class Handle:
    """The C session: opened by the one who makes this, closed when nothing refers to it any more."""

    def __init__(self, session):
        self.session = session
        self.library = library()
        self._dead = collections.deque()  # append and popleft are atomic

    def leave(self):
        self.library.gradcube_leave(self.session)

    def bury(self, address):
        self._dead.append(address)

    def free_dead(self):
        while self._dead:
            self.library.gradcube_free(self.session, self._dead.popleft())

    def last_error(self):
        return self.library.gradcube_last_error(self.session).decode(errors="replace")

    def __del__(self):
        self.library.gradcube_close(self.session)


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

    def __del__(self):
        self._handle.bury(self._address)
