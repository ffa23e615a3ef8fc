"""Who owns a C hub in Python, and who may use it: threads call it while none frees it, and one frees it."""

import contextlib
import threading
import weakref

from ._errors import AgainError, InvalidError


class ReadOnly:
    """Memory of the hub's weights as the base object of a NumPy array."""

    def __init__(self, owner, address, shape, dtype):
        self._owner = owner
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": dtype.str, "data": (address, True)}


class HubHandle:
    """Has the C hub: drops it when neither the Hub nor an array of its weights refers to this object any more."""

    def __init__(self, session, hub):
        self.session = session  # the Handle of the session, which owns the hub
        self.hub = hub
        self.shown = weakref.WeakSet()  # the bases of arrays that show its weights where they lie
        self._lock = threading.Lock()
        self._users = 0  # threads in a call of the library that has the C hub
        session.keep_hub(hub)

    @contextlib.contextmanager
    def use(self):
        """The C hub, which is not freed before the block ends."""
        with self._lock:
            if self.hub is None:
                raise InvalidError("this hub was freed: make another one")
            self._users += 1
        try:
            yield self.hub
        finally:
            with self._lock:
                self._users -= 1

    def call(self, function, *arguments):
        """This function of the library, for the C hub."""
        with self.use() as hub:
            return getattr(self.session.native, function)(hub, *arguments)

    def take(self):
        """The C hub, for who frees it; from now on nobody else has it, unless it is put back."""
        with self._lock:
            if self.hub is None:
                raise InvalidError("this hub was freed, or another thread frees it")
            if self._users:
                raise AgainError("another thread is in a call of this hub: wait for its end, and free it then")
            if self.shown:
                # Who would read them then would be killed: the hub's memory can be read no more.
                raise InvalidError("arrays of weights() are in use: copy what is needed, and delete them before free()")
            hub, self.hub = self.hub, None
            return hub

    def free(self, hub, milliseconds):
        code = self.session.free_hub(hub, milliseconds)
        if code == AgainError.code:
            self.hub = hub
        return code

    def __del__(self):
        if self.hub is not None:
            self.session.drop_hub(self.hub)
