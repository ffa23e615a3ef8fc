"""What stands in front of the library in tests of the Python package."""

import threading

import gradcube

EINVAL = gradcube.InvalidError.code


class Frees:
    """The library: counts how often the hub is freed. Meanwhile the session leaves, as if in another thread."""

    def __init__(self, handle):
        self.handle = handle
        self.library = handle.native
        self.ended = 0

    def __getattr__(self, name):
        return getattr(self.library, name)

    def gradcube_hub_free(self, hub, milliseconds):
        handle, self.handle = self.handle, None
        if handle is not None:
            handle.leave()
        self.ended += 1
        return 0 if self.ended > 1 else self.library.gradcube_hub_free(hub, milliseconds)


class Checkpoints:
    """The library: a checkpoint begins when `may_begin` is set, and ends with this code when `may_end` is."""

    def __init__(self, handle, code):
        self.library = handle.native
        self.code = code
        self.may_begin = threading.Event()
        self.may_end = threading.Event()
        self.is_begun = False
        self.beginnings = 0
        self.ends = 0
        self.milliseconds = None  # of the last end

    def __getattr__(self, name):
        return getattr(self.library, name)

    def gradcube_hub_begin_checkpoint(self, _hub, _path, _step):
        self.beginnings += 1
        self.may_begin.wait()
        self.is_begun = True
        return 0

    def gradcube_hub_end_checkpoint(self, _hub, milliseconds):
        self.ends += 1
        self.milliseconds = milliseconds
        if self.ends > 1 and not self.may_end.is_set():
            return EINVAL  # as another thread is in it
        self.may_end.wait()
        is_begun, self.is_begun = self.is_begun, False
        return self.code if is_begun else EINVAL

    def gradcube_last_code(self, _session):
        return self.code or EINVAL

    def gradcube_last_error(self, _session):
        return b"so it has ended"


class ComesLate:
    """The library: what is asked for at once comes while the daemon is asked why it has not come in time."""

    def __init__(self, handle):
        self.library = handle.native

    def __getattr__(self, name):
        return getattr(self.library, name)

    def gradcube_poll(self, session, number, milliseconds, done):
        return 0 if milliseconds == 0 else self.library.gradcube_poll(session, number, milliseconds, done)

    def gradcube_wait(self, session, number, _milliseconds):
        return self.library.gradcube_wait(session, number, 60000)


class Meanwhile:
    """The library: before this function of it does anything, something else happens, as if in another thread."""

    def __init__(self, handle, function, happens):
        self.library = handle.native
        self.function = function
        self.happens = happens

    def __getattr__(self, name):
        function = getattr(self.library, name)
        return (lambda *arguments: (self.happens(), function(*arguments))[1]) if name == self.function else function


class NeverEnds:
    """The library: no request ends."""

    def __init__(self, handle):
        self.library = handle.native

    def __getattr__(self, name):
        return getattr(self.library, name)

    @staticmethod
    def gradcube_poll(_session, _number, _milliseconds, _done):
        return 0

    @staticmethod
    def gradcube_wait(_session, _number, _milliseconds):
        return gradcube.TimeoutError.code
