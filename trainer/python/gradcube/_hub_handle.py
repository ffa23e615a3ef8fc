"""Who owns a C hub in Python, and who may use it: threads call it while none frees it, and one frees it."""

import contextlib
import ctypes
import threading
import weakref

from ._errors import AgainError, InvalidError

_FREED = "this hub was freed, or another thread frees it: make another one"


class _Use:
    """As long as a thread has this object, which may end by Ctrl-C anywhere, it may use the C hub."""

    def __init__(self, hub):
        self.hub = hub


class ReadOnly:
    """Memory of the hub's weights as the base object of a NumPy array."""

    def __init__(self, owner, address, shape, dtype):
        self._owner = owner
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": dtype.str, "data": (address, True)}


class HubHandle:
    """Has the C hub: drops it when neither the Hub nor an array of its weights refers to this object any more."""

    hub = None  # where Ctrl-C ends the constructor, and until the hub is made

    def __init__(self, session):
        self.session = session  # the Handle of the session, which owns the hub
        self.is_left = False  # its Hub() has failed, or Ctrl-C has ended it
        self.shown = weakref.WeakSet()  # the bases of arrays that show its weights where they lie
        self._uses = weakref.WeakSet()
        self._lock = threading.RLock()  # a handler of a signal may call the hub, too

    def make(self, settings, milliseconds):
        """Makes the C hub. The code of the library.

        Not in the main thread: Ctrl-C never comes between the library's call and what is done with the hub here.
        """
        use = _Use(None)
        self._uses.add(use)
        if self.is_left:  # before this thread had come so far: another one may be made by now
            return 0
        hub = ctypes.c_void_p()
        code = self.session.native.gradcube_hub_create(
            self.session.session, ctypes.byref(settings), milliseconds, ctypes.byref(hub)
        )
        if hub.value is not None:
            self.session.keep_hub(hub.value)
            self.hub = hub.value
        return code

    def discard(self):
        """Frees what a Hub() that has not returned has made, and waits for no other trainer."""
        if not self.is_left or self._uses:
            raise AgainError(
                "another hub of this session is being made, as one may be that Ctrl-C has left: try again when that "
                "has ended"
            )
        if self.hub is not None and self.free(0) == AgainError.code:
            raise self.session.failure()

    def call(self, function, *arguments):
        """This function of the library, for the C hub."""
        use = self._use()
        try:
            return getattr(self.session.native, function)(use.hub, *arguments)
        finally:
            del use  # or the traceback of Ctrl-C would keep the hub in use

    def show(self, place, shape, dtype):
        """The key's weights where they lie, as the base of an array; None: the library refuses it."""
        self.session.check_process()
        with self._lock:  # for a moment: who frees the hub looks at `shown`
            if self.hub is None:
                raise InvalidError(_FREED)
            address = self.session.native.gradcube_hub_weights(self.hub, place)
            if address is None:
                return None
            shown = ReadOnly(self, address, shape, dtype)
            self.shown.add(shown)
            return shown

    def free(self, milliseconds):
        """The code of the library; the hub is gone unless it is that of AgainError."""
        hub, codes = None, []
        try:
            with self._lock if self.session.is_own() else contextlib.nullcontext():
                if self.hub is None:
                    raise InvalidError(_FREED)
                if self._uses:
                    raise AgainError("another thread is in a call of this hub: wait for its end, and free it then")
                if self.shown:
                    # Who would read them then would be killed: the hub's memory can be read no more.
                    raise InvalidError(
                        "arrays of weights() are in use: copy what is needed, and delete them before free()"
                    )
                hub, self.hub = self.hub, None
            self.session.free_hub(hub, milliseconds, codes)
            return codes[-1]
        finally:
            if hub is not None and (not codes or codes[-1] == AgainError.code):
                self.hub = hub

    def _use(self):
        self.session.check_process()
        with self._lock:
            if self.hub is None:
                raise InvalidError(_FREED)
            use = _Use(self.hub)
            try:
                self._uses.add(use)
                return use
            finally:
                del use

    def __del__(self):
        if self.hub is not None:
            self.session.drop_hub(self.hub)
