"""A session that speaks trainer/shared_layout.h by hand, and so can say what the library never would."""

import contextlib
import ctypes
import mmap
import os
import select
import socket
import struct
import time

HELLO, WELCOME, REFUSED, FAILURE, INQUIRY, REPORT, GOODBYE, CLOSING = range(1, 9)
LAYOUT_VERSION = 1
RING_ENTRIES = 64
SUBMISSIONS = 4096
COMPLETIONS = 8192
HEAP = 1 << 21
CONTROL_PAGES = COMPLETIONS + RING_ENTRIES * 16

# RegionHeader's words: a cache line each, after the first.
SUBMISSION_TAIL, SUBMISSION_HEAD, COMPLETION_TAIL, COMPLETION_HEAD, TRAINER_ASLEEP = range(64, 384, 64)

_HELLO = struct.Struct("<IIQII64s")
_NOTICE = struct.Struct("<IiQQ1024s")
_SUBMISSION = struct.Struct("<QQQBBB5x")
_COMPLETION = struct.Struct("<QiI")


def hello(job, heap_bytes=1 << 20, version=LAYOUT_VERSION):
    return _HELLO.pack(HELLO, version, heap_bytes, os.getpid(), 0, job.encode())


def inquiry(request):
    return struct.pack("<IIQ", INQUIRY, 0, request)


def read_notice(message):
    """(type, code, first request, last request, message)"""
    kind, code, first, last, message = _NOTICE.unpack(message)
    return kind, code, first, last, message.rstrip(b"\0").decode()


def connect(path, timeout=5):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(str(path))  # blocks while the daemon's backlog is full
    connection.settimeout(timeout)
    return connection


class RawSession:
    def __init__(self, path, job):
        with contextlib.ExitStack() as cleanup:
            self.socket = cleanup.enter_context(connect(path))
            self.socket.send(hello(job))
            welcome, descriptors, _, _ = socket.recv_fds(self.socket, 4096, 4)
            if struct.unpack_from("<I", welcome)[0] != WELCOME:
                raise AssertionError(f"no welcome but {read_notice(welcome)}")
            size = struct.unpack_from("<Q", welcome, 16)[0]
            self.memory = cleanup.enter_context(mmap.mmap(descriptors[0], size))
            os.close(descriptors[0])
            self.doorbell = cleanup.enter_context(socket.socket(fileno=descriptors[1]))
            self.doorbell.setblocking(False)
            self.cleanup = cleanup.pop_all()
        self.next_request = 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cleanup.close()

    def word(self, where):
        return ctypes.c_uint64.from_buffer(self.memory, where).value

    def set_word(self, where, value):
        """In one store: struct would write zeros first, for the daemon to see."""
        ctypes.c_uint64.from_buffer(self.memory, where).value = value

    def put(self, request=None, offset=HEAP, count=1, dtype=0, op=0, kind=0):
        """Writes a submission at the tail, publishes it, and rings."""
        tail = self.word(SUBMISSION_TAIL)
        if request is None:
            request = self.next_request
            self.next_request += 1
        place = SUBMISSIONS + tail % RING_ENTRIES * _SUBMISSION.size
        _SUBMISSION.pack_into(self.memory, place, request, offset, count, dtype, op, kind)
        self.set_word(SUBMISSION_TAIL, tail + 1)
        self.ring()

    def ring(self):
        with contextlib.suppress(OSError):
            self.doorbell.send(b"\0")

    def completion(self, timeout=5):
        """The next one, (request, code), taken out of its ring."""
        head = self.word(COMPLETION_HEAD)
        deadline = time.monotonic() + timeout
        while self.word(COMPLETION_TAIL) == head:
            if time.monotonic() > deadline:
                raise AssertionError("no completion came")
            time.sleep(0.001)
        request, code, _ = _COMPLETION.unpack_from(
            self.memory, COMPLETIONS + head % RING_ENTRIES * _COMPLETION.size
        )
        self.set_word(COMPLETION_HEAD, head + 1)
        return request, code

    def farewell(self, timeout=5):
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
            kind, code, _, _, message = read_notice(message)
            if kind == CLOSING:
                said = code, message
        raise AssertionError("the daemon did not close the session")
