"""A collective or message in flight, and the time that a trainer waits for it."""

import contextlib
import copy
import ctypes
import threading
import time
import warnings

from ._errors import CanceledError, Error, InvalidError, TimeoutError
from ._late_memory import check_late
from ._library import keep

# The longest stay inside the library. Python handles Ctrl-C between two stays: only one of the threads that wait
# in a session sleeps where a signal would wake it.
_SLICE_MILLISECONDS = 100
# How long a withdrawal is waited for, whose answer takes a round trip between servers; or a message that was under way.
_WITHDRAWAL_SECONDS = 5
_DROPPED = (
    "a Request was dropped before wait() or test() had told its end: its array does not get the result, or, where it is of "
    "alloc(), may get it at any time; keep each Request until then"
)


def deadline_of(timeout):
    """The time.monotonic() at which `timeout` seconds are over; None: never."""
    if timeout is None:
        return None
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        seconds = float("nan")
    if seconds != seconds:
        raise InvalidError(f"invalid timeout {timeout!r:.64}: expected a number of seconds, or None")
    return None if seconds < 0 else time.monotonic() + seconds


def milliseconds_of(timeout):
    """For the library: -1: no limit."""
    if timeout is None:
        return -1
    deadline_of(timeout)  # an invalid one is refused
    seconds = float(timeout)
    return -1 if seconds < 0 else int(min(seconds * 1000, (1 << 31) - 1))


class Request:
    """A collective or message in flight.

    Its end is reported by wait() and test(), in any thread, as often as they are called. Keep it until then: where one is
    dropped before, a RuntimeWarning says so. The others get what was submitted, but its array, which is the caller's own
    from then on, does not get the result. On arrays of alloc() the daemon may work itself: those get it at any time.

    Ctrl-C may come between any two instructions of Python's. So this is there before the library has the request, and
    what the library says of it is here before Python goes on.
    """

    _number = ctypes.c_uint64()  # where Ctrl-C ends the constructor

    def __init__(self, session, number, received=None):
        self._session = session
        self._number = number  # where the library writes it; 0: not submitted
        self._received = received
        self._submit = None
        self._owned = ()
        self._held = None
        self._memory = ()  # for each piece the address, the bytes, and whether they are written
        self._failure = None
        self._done = ctypes.c_int()  # gradcube_poll() has reported the end
        self._waited = []  # what gradcube_wait() has said
        self._codes = []  # of these two, the one that was called last
        # The library reports an end once: one thread asks at a time. A handler of a signal may wait on top of it.
        self._lock = threading.RLock()
        self._ended = False
        self._is_canceled = False

    @classmethod
    def _of(cls, session, submit, held, received=None, owned=None):
        """To be submitted. ``submit`` gets where the library writes the number. What is ``held``, a HeldMemory, is so
        until the end, and ``received`` and what is ``owned`` live until then."""
        check_late(held.pieces)
        request = cls(session, ctypes.c_uint64(), received)
        request._submit, request._memory, request._held = submit, held.pieces, held.pass_on()
        request._owned = (request._held, received, owned)
        return request

    def _begin(self):
        try:
            self._session._begin(self._submit, ctypes.byref(self._number))
        except BaseException as stop:
            self._leave(stop)
            if self._number.value == 0:
                self._held.let_go()
            raise
        self._submit = None
        return self

    @property
    def received(self):
        """The bytes of the message that a receive has got; None until it has, and of all else."""
        if self._received is None or not self._ended or self._failure is not None:
            return None
        return self._received.value

    def test(self):
        """True when the collective has ended. Raises when it failed."""
        try:
            return self._look(0)
        finally:
            self._settle()

    def wait(self, timeout=None):
        """Blocks until the collective has ended, at most `timeout` seconds: then TimeoutError, and it goes on.

        Its array must be left alone until it has ended: what would use it is refused until wait() or test() has said
        so. The TimeoutError has this request as ``request``, as has what Ctrl-C raises. A message can be withdrawn:
        cancel().
        """
        try:
            self._wait(timeout)
        except BaseException as stop:
            handle = self._session._handle
            if handle is not None:
                handle.rest_at_exit()
            self._leave(stop)
            raise
        finally:
            self._settle()

    def _leave(self, stop):
        """It goes on where `stop` has ended the wait for it, or its submission."""
        if self._goes_on():
            with contextlib.suppress(AttributeError):  # of an exception that takes none
                stop.request = self
            self._go_on()

    def _go_on(self):
        """Nobody waits for it any more, and its memory is its own until it has ended."""
        if self._goes_on():
            self._session._late.add(self._number.value, self._memory, self._owned)

    def _goes_on(self):
        return not self._ended and self._number.value != 0 and self._session._handle is not None

    def _settle(self):
        if self._ended or self._session._handle is None:
            self._session._late.remove(self._number.value)
            self._held.let_go()  # only then: others may come to lie there

    def _wait(self, timeout):
        deadline = deadline_of(timeout)
        while not self._ended:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                if not self._look(0):
                    with self._lock:  # in this process, as _look() has seen
                        self._hear(self._time_out)
                return
            self._look(int(_SLICE_MILLISECONDS if left is None else min(_SLICE_MILLISECONDS, left * 1000 + 1)))
        self._repeat()

    def cancel(self):
        """Withdraws a message that has not met the other trainer's.

        It then ends with CanceledError, and has given or taken nothing; else it ends as it would have. wait() and
        test() report which. InvalidError for all that is no message.
        """
        if not self._ended and not self._is_reported():
            self._session._cancel(self._number)
            self._is_canceled = True

    def _complete(self, timeout):
        """Submits it, and waits. Ctrl-C may come between the two, where nobody but this call has the request."""
        deadline_of(timeout)  # an invalid one is refused before
        try:
            self._begin().wait(timeout)
        except BaseException as stop:
            self._leave(stop)
            if isinstance(stop, TimeoutError) and stop.request is self:
                stop.args = (f"{stop}; it goes on, and this error's .request waits for it: a new call is another one",)
            raise

    def _finish(self, timeout):
        """Submits a message for whose end nobody can ask, and waits: it is withdrawn if that does not come."""
        try:
            self._begin().wait(timeout)
        except TimeoutError as late:
            self._withdraw(late)
        finally:
            if self._number.value:
                self.cancel()

    def _break_off(self, stop):
        """Ends what `stop`, Ctrl-C or whatever a handler of a signal raises, has ended the wait for. If the message has
        come or gone all the same, `stop` says so: a second call would get the next one, or send it twice. True then."""
        if isinstance(stop, Error) or not self._number.value:
            return False
        try:
            self.cancel()
            self.wait(_WITHDRAWAL_SECONDS)
        except CanceledError:
            stop.request = None
            return False
        except Error as failure:
            stop.args = (*stop.args, f"a signal has ended the call, and its message may be lost: {failure}")
            return False
        stop.received = self.received
        come = "was sent" if self._received is None else "has come, and this exception has it as .received"
        stop.args = (*stop.args, f"a signal has ended the call, but its message {come}")
        return True

    def _withdraw(self, late):
        """Returns if it has come after all."""
        self.cancel()
        try:
            self.wait(_WITHDRAWAL_SECONDS)
        except CanceledError:
            raise TimeoutError(f"{late}; it was withdrawn, and has taken or given nothing") from None
        except TimeoutError:
            failure = TimeoutError(
                f"{late}; nor was it withdrawn in {_WITHDRAWAL_SECONDS} s, because a message is on its way, or servers "
                "do not answer: no later receive gets that message, and the array must be left alone"
            )
            failure.request = self
            raise failure from None

    def _look(self, milliseconds):
        held = []
        try:
            if not self._ended:
                self._session._open_handle().check_process()
                keep(held, self._lock.acquire, True, milliseconds / 1000)
                return held[0] and self._hear(self._poll, milliseconds)
        finally:
            if held and held[0]:
                self._lock.release()
        self._repeat()
        return True

    def _hear(self, ask, *arguments):
        """True when it has ended; raises when it failed. With the lock."""
        codes = self._codes
        if not self._ended and not self._is_reported():
            codes = ask(*arguments)
        if not self._ended:  # nor did a signal's handler hear of it meanwhile
            code = codes[-1]
            if code != 0 and not self._is_reported():
                raise self._session._open_handle().failure(code)
            if self._is_reported():
                self._failure = None if code == 0 else self._session._open_handle().failure(code)
                self._owned = ()
                self._ended = True
        self._repeat()
        return self._ended

    def _poll(self, milliseconds):
        """What the library says of it."""
        handle, codes = self._session._open_handle(), []
        self._codes = codes
        done = ctypes.byref(self._done)
        keep(codes, handle.native.gradcube_poll, handle.session, self._number, milliseconds, done)
        return codes

    def _time_out(self):
        """The deadline has come: lets the library ask the daemon why."""
        handle, codes = self._session._open_handle(), []
        self._codes = self._waited = codes
        keep(codes, handle.native.gradcube_wait, handle.session, self._number, 0)
        return codes

    def _is_reported(self):
        """The library has reported the end, which it does once."""
        return self._done.value != 0 or self._waited not in ([], [TimeoutError.code])

    def _repeat(self):
        if self._failure is not None:
            raise copy.copy(self._failure)  # whose traceback would keep the session and its arrays alive

    def __copy__(self):
        return self

    def __deepcopy__(self, _):
        return self

    def __reduce__(self):
        """Of exceptions that have it: another process waits for nothing of this one's."""
        return type(None), ()

    def __del__(self):
        if not self._number.value:
            return
        if self._ended or self._is_reported():
            self._session._late.end(self._number.value)  # Ctrl-C may have come between the end and its report
        else:
            brings = not self._is_canceled and any(is_written for _, _, is_written in self._memory)
            if self._session._abandon(self._number.value, self._owned) and brings:
                warnings.warn(_DROPPED, RuntimeWarning, stacklevel=2)
