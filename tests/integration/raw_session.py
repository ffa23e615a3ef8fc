"""A session that speaks trainer/shared_layout.h by hand, and so can say what the library never would."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import select
import socket
import struct
import time
import typing

from fabrics import PATIENCE

HELLO, WELCOME, REFUSED, FAILURE, INQUIRY, REPORT, GOODBYE, CLOSING, ABORT, OFFER, MAPPED, GROW, GROWN = range(1, 14)
COLLECTIVE, MESSAGE, WITHDRAWAL, PUSH = range(4)  # types of submissions
ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, BARRIER = range(6)
SEND, RECEIVE = range(2)
LAYOUT_VERSION = 16
RING_ENTRIES = 1024
SUBMISSION_ENTRIES = 2 * RING_ENTRIES
MOST_LANES = 8
SUBMISSIONS = 4096
COMPLETIONS = 1 << 18
HEAP = 1 << 21
SEALS = 0x1F ^ fcntl.F_SEAL_WRITE  # of a mapped region
CONTROL_PAGES = COMPLETIONS + RING_ENTRIES * 24

# RegionHeader's words: a cache line each, after the first.
SUBMISSION_TAIL, SUBMISSION_HEAD, COMPLETION_TAIL, COMPLETION_HEAD, TRAINER_ASLEEP = range(64, 384, 64)

_HELLO = struct.Struct("<IIQQIiIIIBBh64s")
_LANE = struct.Struct("<56siI")
_OFFER = struct.Struct("<IIQQ")
_WELCOME = struct.Struct("<IIII64s")
_NOTICE = struct.Struct("<IiIIQ1024s")
_SUBMISSION = struct.Struct("<QQQBB6x32s")
_COLLECTIVE = struct.Struct("<IBBBx")
_MESSAGE = struct.Struct("<QIIIB3x")
_COMPLETION = struct.Struct("<QiIQ")


def hello(
    job, heap_bytes=1 << 20, version=LAYOUT_VERSION, rank=-1, weight=1, lanes=(("", 0),), members=(), lane_count=None,
    member_count=None, trainers=1, local=-1, secret=b"",
):  # fmt: skip
    """A Hello. ``lane_count`` and ``member_count`` are those of `lanes` and `members`, unless they are to be lies."""
    message = _HELLO.pack(
        HELLO, version, 0, heap_bytes, os.getpid(), rank, weight,
        len(lanes) if lane_count is None else lane_count,
        len(members) if member_count is None else member_count,
        trainers, 0, local, job.encode(),
    )  # fmt: skip
    for name, priority in (*lanes, *[("", 0)] * MOST_LANES)[:MOST_LANES]:
        message += _LANE.pack(name.encode(), priority, 0)
    message += struct.pack("256s", secret)
    return message + struct.pack(f"<{len(members)}I", *members)


def hello_of_version_1(job):
    """What a library of layout version 1 says: a shorter message, whose type and version have the same place."""
    return struct.pack("<IIQII64s", HELLO, 1, 1 << 20, os.getpid(), 0, job.encode())


def inquiry(request, lane=0, number=None):
    """``number`` is the collective's place in its lane, as long as there is one lane its request's number."""
    return struct.pack("<IIQQ", INQUIRY, lane, request, request if number is None else number)


def grow(end, wanted=0):
    return struct.pack("<IIQQ", GROW, 0, end, max(end, wanted))


def bare(message_type):
    """A message that is its type alone: GOODBYE, ABORT or MAPPED."""
    return struct.pack("<I", message_type)


class Notice(typing.NamedTuple):
    kind: int
    code: int
    number: int  # of a failure
    request: int  # of a report; of a grown: a byte of the region
    text: str


def read_notice(message):
    kind, code, number, _, request, text = _NOTICE.unpack(message)
    return Notice(kind, code, number, request, text.rstrip(b"\0").decode())


def connect(path, timeout=PATIENCE):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(str(path))  # blocks while the daemon's backlog is full
    connection.settimeout(timeout)
    return connection


def receive_descriptor(connection, kind):
    """A message of this kind, and the descriptor that comes with it."""
    message, descriptors, _, _ = socket.recv_fds(connection, 4096, 4)
    if struct.unpack_from("<I", message)[0] != kind:
        raise AssertionError(f"not what was expected but {read_notice(message)}")
    return message, descriptors[0]


def knock(connection, message):
    """Sends a hello, and seals the memory if some is offered. The refusal, if it came instead."""
    connection.send(message)
    answer, descriptors, _, _ = socket.recv_fds(connection, 4096, 4)
    if struct.unpack_from("<I", answer)[0] != OFFER:
        return read_notice(answer)
    fcntl.fcntl(descriptors[0], fcntl.F_ADD_SEALS, SEALS)
    os.close(descriptors[0])
    connection.send(bare(MAPPED))
    return None


class RawSession:
    """A trainer. ``wishes`` are those of hello(). ``backed``: the bytes of its heap that it touches and reports."""

    def __init__(self, path, job, backed=1 << 20, **wishes):
        with contextlib.ExitStack() as cleanup:
            self.socket = cleanup.enter_context(connect(path))
            self.socket.send(hello(job, **wishes))
            offer, self.file = receive_descriptor(self.socket, OFFER)
            cleanup.callback(os.close, self.file)
            _, self.version, _, size = _OFFER.unpack(offer)
            self.memory = cleanup.enter_context(mmap.mmap(self.file, size))
            fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, SEALS)
            self.socket.send(bare(MAPPED))
            welcome, doorbell = receive_descriptor(self.socket, WELCOME)
            self.doorbell = cleanup.enter_context(socket.socket(fileno=doorbell))
            _, self.rank, self.size, _, _ = _WELCOME.unpack(welcome)
            self.doorbell.setblocking(False)
            self.cleanup = cleanup.pop_all()
        self.next_request = 1
        if backed:
            self.touch(HEAP, HEAP + backed)
            answer = self.grow(HEAP + backed)
            if answer.code != 0:
                raise AssertionError(answer)

    def touch(self, begin, end):
        for page in range(begin, end, mmap.PAGESIZE):
            self.memory[page] = 0

    def grow(self, end, wanted=0):
        """Reports memory, and gives the answer."""
        self.socket.send(grow(end, wanted))
        while True:
            answer = read_notice(self.socket.recv(4096))
            if answer.kind == GROWN:
                return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cleanup.close()

    def word(self, where):
        return ctypes.c_uint64.from_buffer(self.memory, where).value

    def set_word(self, where, value):
        """In one store: struct would write zeros first, for the daemon to see."""
        ctypes.c_uint64.from_buffer(self.memory, where).value = value

    def put(
        self, request=None, offset=HEAP, count=1, dtype=0, op=0, kind=ALL_REDUCE, root=0, lane=0, submission=COLLECTIVE,
    ):  # fmt: skip
        """A collective, unless ``submission`` says another type."""
        self._submit(request, offset, count, submission, dtype, _COLLECTIVE.pack(root, kind, op, lane))

    def put_message(self, direction, peer, offset=HEAP, count=1, dtype=0, tag=0, paths=0, place=0):
        self._submit(None, offset, count, MESSAGE, dtype, _MESSAGE.pack(tag, peer, paths, place, direction))

    def _submit(self, request, offset, count, submission, dtype, rest):
        """Writes a submission at the tail, publishes it, and rings."""
        tail = self.word(SUBMISSION_TAIL)
        if request is None:
            request = self.next_request
            self.next_request += 1
        place = SUBMISSIONS + tail % SUBMISSION_ENTRIES * _SUBMISSION.size
        _SUBMISSION.pack_into(self.memory, place, request, offset, count, submission, dtype, rest)
        self.set_word(SUBMISSION_TAIL, tail + 1)
        self.ring()

    def ring(self):
        with contextlib.suppress(OSError):
            self.doorbell.send(b"\0")

    def completion(self, timeout=PATIENCE):
        """The next one, (request, code), taken out of its ring."""
        head = self.word(COMPLETION_HEAD)
        deadline = time.monotonic() + timeout
        while self.word(COMPLETION_TAIL) == head:
            if time.monotonic() > deadline:
                raise AssertionError("no completion came")
            time.sleep(0.001)
        request, code, _, _ = _COMPLETION.unpack_from(
            self.memory, COMPLETIONS + head % RING_ENTRIES * _COMPLETION.size
        )
        self.set_word(COMPLETION_HEAD, head + 1)
        return request, code

    def farewell(self, timeout=PATIENCE):
        """What the daemon says when it closes the session: (code, message); None if it only closes."""
        said = None
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if not select.select([self.socket], [], [], 0.1)[0]:
                continue
            try:
                message = self.socket.recv(4096)
            except ConnectionResetError:
                continue  # told once, before what was sent last
            if not message:
                return said
            notice = read_notice(message)
            if notice.kind == CLOSING:
                said = notice.code, notice.text
        raise AssertionError("the daemon did not close the session")
