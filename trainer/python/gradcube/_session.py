"""Session: gradcube.h on NumPy arrays."""

import collections
import ctypes
import time

import numpy

from ._arrays import DTYPES, elements_of, memory_of, number_of_op, shape_of, storage_dtype, whole_number
from ._errors import AgainError, CanceledError, InvalidError, MemoryFullError, error_of
from ._held_memory import HeldMemory, let_go_of
from ._late_memory import LateMemory, register
from ._library import Collective, Message, keep, library
from ._memory import Block, Handle
from ._options import job_name, options_of, socket_path
from ._request import Request, deadline_of

KINDS = {"all_reduce": 0, "reduce_scatter": 1, "all_gather": 2, "broadcast": 3, "reduce": 4, "barrier": 5, "compare": 6}
_COPIED = ("all_gather", "broadcast")
_SEND, _RECEIVE = 0, 1
_MOST = (1 << 32) - 1
_MOST_TAG = (1 << 64) - 1
_REAPED_AT_ONCE = 2  # with each submission, which leaves one more behind at most
_CANCEL_ATTEMPTS = 1000  # of a millisecond


class Session:
    """Membership in a job. Does not wait for the job's other trainers.

    ``socket``: the daemon's socket; None: $GRADCUBE_SOCKET, else the only server in the run directory.

    All trainers of a job ask for the same of these:
    ``algorithm``: of the only lane, one that `gradcube plan --help` lists; "auto": for each collective the one with the
    least modelled time; None: the cluster's default.
    ``lanes``: instead, a sequence of algorithms (None: the default) or of pairs (algorithm, priority).
    ``weight``: the job's share of a link that jobs compete for.
    ``members``: the numbers of the job's servers; None: all servers of the cluster.
    ``reproducible``: what is added has the same bits whatever the algorithm, the topology, the threads and the length
    of the array; the array is copied, and floats take two to eight times their bytes on the links.

    ``rank``: the rank wanted; None: by the server's place among the members.
    ``trainers_per_server``: the job's trainers on each of its servers, 1 to 16, whose ranks are side by side.
    ``local``: this trainer's number among its server's, from 0; None: the lowest that is free.

    The session's own ``rank``, the job's ``size``, and the number of its ``server``, as ``members`` has them, are
    attributes.

    Collectives work in place and have two forms: one that blocks, at most `timeout` seconds, and one that returns a
    Request at once. Until that has said that it has ended, keep it: the array belongs to the daemon. Messages have the
    same two forms: send() and recv(), of arrays of any type and of bytes.
    """

    _handle = None

    def __init__(
        self,
        socket=None,
        job="default",
        *,
        algorithm=None,
        lanes=None,
        weight=1,
        rank=None,
        members=None,
        reproducible=False,
        trainers_per_server=1,
        local=None,
    ):
        options = options_of(
            algorithm, lanes, weight, rank, members, reproducible, trainers_per_server, local
        )
        handle = Handle()
        code = library().gradcube_open(
            socket_path(socket), job_name(job), ctypes.byref(options), ctypes.byref(handle.session)
        )
        if code != 0:
            raise error_of(code, library().gradcube_last_error(None).decode(errors="replace"))
        self._handle = handle
        # Requests whose Request object is gone, and their arrays, which must live until they have ended.
        self._abandoned, self._late = collections.deque(), LateMemory()
        self.rank = library().gradcube_rank(handle.session)
        self.size = library().gradcube_size(handle.session)
        self._last_lane = max(options.lane_count, 1) - 1
        self.server = library().gradcube_server(handle.session)
        register(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    def __reduce__(self):
        """A copy would leave the job where it is dropped, and another process has none of its memory."""
        raise TypeError("a Session cannot be copied or sent to another process: open one there")

    def close(self):
        """Leaves the job at once. Threads that wait get InvalidError.

        Arrays from alloc() stay valid, and are this process's own from then on: what was submitted before is what the
        others get, whatever is written to them.
        """
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.leave()
            self._late.let_go()
            self._abandoned, self._late = collections.deque(), LateMemory()

    def abort(self):
        """Ends the whole job at once, also while other threads wait.

        Here all collectives in flight end with AbortedError, at the other trainers with PeerError. close() is still
        to be called.
        """
        handle = self._open_handle()
        if handle.native.gradcube_abort(handle.session) != 0:
            raise handle.failure()

    def fileno(self):
        """A descriptor that is readable when a request may have ended: for select and asyncio's add_reader().

        Then call test() on the requests: once the end of each that has ended was reported, it is unreadable again,
        but for a message of the daemon, which the next test() of a request that goes on takes. So watch it only while
        there are requests.
        """
        handle = self._open_handle()
        descriptor = handle.native.gradcube_event_fd(handle.session)
        if descriptor < 0:
            raise handle.failure()
        return descriptor

    def alloc(self, shape, dtype="float32"):
        """A new array of zeros in memory shared with the daemon: collectives on it copy nothing."""
        handle = self._open_handle()
        storage = storage_dtype(dtype)
        shape = shape_of(shape)
        size = storage.itemsize
        for n in shape:
            size *= n
        if max(size, *shape, 0) >= 1 << 63:
            raise InvalidError(f"invalid shape {str(shape):.64}: it is too large")
        address = handle.native.gradcube_alloc(handle.session, size)
        if not address and self._reap_abandoned(len(self._abandoned)):
            address = handle.native.gradcube_alloc(handle.session, size)
        if not address:
            raise handle.failure()
        array = numpy.asarray(Block(handle, address, shape, storage))
        array.fill(0)
        return array

    def allreduce(self, array, op="sum", dtype=None, timeout=None, lane=0):
        """Combines `array` with those of all other trainers. ``op``: sum, average, min, max."""
        self._on_array("all_reduce", array, dtype, lane, op=op)._complete(timeout)

    def allreduce_async(self, array, op="sum", dtype=None, lane=0):
        return self._on_array("all_reduce", array, dtype, lane, op=op)._begin()

    def reduce_scatter(self, array, op="sum", dtype=None, timeout=None, lane=0):
        """Combines `array`, `size` chunks of one length, and leaves chunk `rank` of the result in its place.

        The rest of the array is undefined then.
        """
        self._on_array("reduce_scatter", array, dtype, lane, op=op, in_chunks=True)._complete(timeout)

    def reduce_scatter_async(self, array, op="sum", dtype=None, lane=0):
        return self._on_array("reduce_scatter", array, dtype, lane, op=op, in_chunks=True)._begin()

    def allgather(self, array, dtype=None, timeout=None, lane=0):
        """Gives chunk `rank` of `array`, which has `size` chunks of one length, and gets those of the others."""
        self._on_array("all_gather", array, dtype, lane, in_chunks=True)._complete(timeout)

    def allgather_async(self, array, dtype=None, lane=0):
        return self._on_array("all_gather", array, dtype, lane, in_chunks=True)._begin()

    def broadcast(self, array, root=0, dtype=None, timeout=None, lane=0):
        """Fills `array` with that of the trainer of rank `root`."""
        self._on_array("broadcast", array, dtype, lane, root=root)._complete(timeout)

    def broadcast_async(self, array, root=0, dtype=None, lane=0):
        return self._on_array("broadcast", array, dtype, lane, root=root)._begin()

    def reduce(self, array, root=0, op="sum", dtype=None, timeout=None, lane=0):
        """Combines the arrays of all trainers in that of rank `root`. Elsewhere the array is undefined then."""
        self._on_array("reduce", array, dtype, lane, op=op, root=root)._complete(timeout)

    def reduce_async(self, array, root=0, op="sum", dtype=None, lane=0):
        return self._on_array("reduce", array, dtype, lane, op=op, root=root)._begin()

    def barrier(self, timeout=None, lane=0):
        """Waits until all trainers of the job have called it."""
        self._barrier(lane)._complete(timeout)

    def barrier_async(self, lane=0):
        return self._barrier(lane)._begin()

    def _barrier(self, lane):
        return self._collective("barrier", HeldMemory(), lane)

    def compare(self, data, timeout=None, lane=0):
        """CorruptError on every trainer, which names ranks, unless all have the same bytes in `data`: an array or bytes."""
        self._comparison(data, lane)._complete(timeout)

    def compare_async(self, data, lane=0):
        return self._comparison(data, lane)._begin()

    def _comparison(self, data, lane):
        with HeldMemory() as held:
            address, count, _ = memory_of(data, is_written=False, held=held)
            return self._collective("compare", held, lane, buffer=address, count=count, dtype=DTYPES["bytes"])

    def send(self, data, to, tag=0, timeout=None):
        """Sends `data`, an array or bytes, to the trainer of rank `to`. Returns when it has them.

        After TimeoutError it was withdrawn, and nothing was given. So it is after Ctrl-C, unless that exception says
        otherwise.
        """
        deadline_of(timeout)
        request = self._message(_SEND, data, to, tag)
        try:
            request._finish(timeout)
        except BaseException as stop:
            request._break_off(stop)
            raise

    def send_async(self, data, to, tag=0, paths=0):
        """``paths``: the most parallel paths that it may take, of 8 at most; more than there are: all;
        0: one, or all where it is large."""
        return self._message(_SEND, data, to, tag, whole_number(paths, "paths", 0, _MOST))._begin()

    def recv(self, array, source, tag=0, timeout=None):
        """Fills `array` with a message from the trainer of rank `source`, which may be shorter: returns its bytes.

        After TimeoutError it was withdrawn: it has taken nothing, and a later receive gets the message. One that is
        under way when the time is up is waited for, some seconds; if it takes longer, the error says that it is lost.
        The error says who is missing, which may take 0.5 s more: recv_async() and its test() are for looking.
        Ctrl-C withdraws it, too. Where the message has come all the same, the exception says so, and its ``received``
        is what the call would have returned.
        """
        deadline_of(timeout)
        request = self._message(_RECEIVE, array, source, tag)
        try:
            request._finish(timeout)
            received = request.received
        except BaseException as stop:
            request._break_off(stop)
            raise
        return received

    def recv_async(self, array, source, tag=0):
        """The request's `received` is the number of bytes, when it has ended."""
        return self._message(_RECEIVE, array, source, tag)._begin()

    def recv_bytes(self, most, source, tag=0, timeout=None):
        """A message of at most `most` bytes, as bytes."""
        buffer = numpy.empty(whole_number(most, "length", 0, (1 << 62)), numpy.uint8)
        deadline_of(timeout)
        request = self._message(_RECEIVE, memoryview(buffer), source, tag)
        try:
            request._finish(timeout)
            received = buffer[: request.received].tobytes()
        except BaseException as stop:
            if request._break_off(stop):
                stop.received = buffer[: stop.received].tobytes()
            raise
        return received

    def _message(self, direction, data, peer, tag, paths=0):
        message = Message(
            size=ctypes.sizeof(Message),
            direction=direction,
            peer=whole_number(peer, "rank", 0, self.size - 1),
            tag=whole_number(tag, "tag", 0, _MOST_TAG),
            paths=paths,
        )
        received = None
        if direction == _RECEIVE:
            received = ctypes.c_size_t()
            message.received = ctypes.pointer(received)
        with HeldMemory() as held:
            message.buffer, message.bytes, message.dtype = memory_of(data, received is not None, held)
            return self._request("gradcube_submit_message", message, held, received)

    def _on_array(self, kind, array, dtype, lane, op="sum", root=0, in_chunks=False):
        with HeldMemory(array) as held:
            number, count = elements_of(array, dtype, copied=kind in _COPIED)
            is_written = array.nbytes != 0 and not (kind == "broadcast" and root == self.rank)
            if in_chunks and count % self.size != 0:
                raise InvalidError(
                    f"invalid array: {count} elements have no chunks of one length for {self.size} trainers: "
                    "expected a multiple of that number"
                )
            return self._collective(
                kind,
                held,
                lane,
                buffer=held.take(array, is_written),
                count=count // self.size if in_chunks else count,
                dtype=number,
                op=number_of_op(op),
                root=whole_number(root, "root", 0, self.size - 1),
            )

    def _collective(self, kind, held, lane, **fields):
        lane = whole_number(lane, "lane", 0, self._last_lane)
        collective = Collective(size=ctypes.sizeof(Collective), kind=KINDS[kind], lane=lane, **fields)
        return self._request("gradcube_submit", collective, held)

    def _request(self, function, asked, held, received=None):
        """Of what `asked` describes: to be submitted."""
        handle = self._open_handle()
        function = getattr(handle.native, function)
        return Request._of(
            self, lambda number: function(handle.session, ctypes.byref(asked), number), held, received
        )

    def _begin(self, submit, number):
        """Calls `submit(number)`, and again if what has ended made room."""
        handle = self._open_handle()
        self._reap_abandoned(_REAPED_AT_ONCE)
        code = submit(number)
        if code in (AgainError.code, MemoryFullError.code) and self._reap_abandoned(len(self._abandoned)):
            code = submit(number)
        if code != 0:
            raise handle.failure()

    def _cancel(self, number):
        handle = self._open_handle()
        for _ in range(_CANCEL_ATTEMPTS):
            code = handle.native.gradcube_cancel(handle.session, number)
            if code != AgainError.code:
                break
            time.sleep(0.001)
        if code != 0:
            raise handle.failure()

    def _open_handle(self):
        handle = self._handle
        if handle is None:
            raise InvalidError("this session is closed: open another one")
        return handle

    def _abandon(self, number, owned):
        """Nobody asks for its end any more. What it holds is given back when it has ended.

        What it brings is written nowhere from now on, where that is not the daemon's doing: the program may have written
        there by then. True where it has not ended, or its result is lost, and nobody was told.
        """
        is_told = True
        has_ended = False
        try:
            handle = self._handle
            if handle is not None and handle.is_own() and not handle.has_left():
                is_told = self._late.knows(number)
                if handle.native.gradcube_forget(handle.session, number) == 0:
                    self._late.end(number)
                    if not self._late.knows(number):
                        let_go_of(owned)
            codes = self._codes_at_end(number)
            has_ended = bool(codes)
            is_told = is_told or codes not in ([], [CanceledError.code])
        finally:
            if not has_ended:
                self._abandoned.append((number, owned))
        return not is_told

    def _codes_at_end(self, number):
        """What the library says of its end; empty where it goes on."""
        handle = self._handle
        if handle is None:
            return [InvalidError.code]
        done = ctypes.c_int()
        code = handle.native.gradcube_poll(handle.session, number, 0, ctypes.byref(done))
        if not done.value and code != InvalidError.code:  # of what was reported to a call that Ctrl-C has ended
            return []
        self._late.end(number)
        return [code]

    def _check_late(self, memory):
        """That none of it is that of a request of this session which a timeout or Ctrl-C has left."""
        if self._late.find(memory) is not None:
            self._reap_abandoned(len(self._abandoned))
            self._late.refuse(memory)

    def _reap_abandoned(self, most):
        """Looks at so many of those that nobody asks for, in turn. True when one has ended."""
        room = False
        for _ in range(min(most, len(self._abandoned))):
            taken = []
            try:
                keep(taken, collections.deque.popleft, self._abandoned)
                if self._codes_at_end(taken[0][0]):
                    taken, room = [], True
            except IndexError:  # another thread was faster
                break
            finally:
                self._abandoned.extend(taken)
        return room
