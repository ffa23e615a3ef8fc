"""Who owns a session's shared memory in Python.

``Handle`` owns the C session. The session object and every ``Block`` of shared memory hold it, so the mapping
lives as long as any array in it, even after the session was closed.

The garbage collector may free an array at any time and in any thread, which the library allows.
"""

from ._errors import error_of
from ._library import library


class Handle:
    """Owns the C session that the caller opened; closes it when nothing refers to this object any more."""

    def __init__(self, session):
        self.session = session
        self.native = library()

    def leave(self):
        self.native.gradcube_leave(self.session)

    def failure(self):
        """The exception for the calling thread's last failure on the session."""
        message = self.native.gradcube_last_error(self.session).decode(errors="replace")
        return error_of(self.native.gradcube_last_code(self.session), message)

    def __del__(self):
        self.native.gradcube_close(self.session)


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
        self._handle.native.gradcube_free(self._handle.session, self._address)
