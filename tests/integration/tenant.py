"""A user of somebody else's daemon, for tenants_test.py: runs as a process of its own, under the user that it stands for.

    tenant.py reduce SOCKET JOB RANK [HOLD]      joins and adds; prints the sum, or why it could not; HOLD: and stays
    tenant.py sessions SOCKET COUNT              opens so many sessions, each in a job of its own, and stays
    tenant.py heaps SOCKET COUNT                 asks for so many heaps of 1 TiB
    tenant.py leave FIRST SECOND                 two trainers on each of two servers, of which one leaves the first
    tenant.py spy PID                            tries to get at the memory of that process
    tenant.py flood CONTROL SOCKET               asks, connects and talks nonsense until it is ended

What it prints is JSON, a line each. One that stays ends when its standard input does.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import socket
import sys

import gradcube
import numpy

import raw_session

PATIENCE = 60


def say(**what):
    print(json.dumps(what), flush=True)


def stay():
    sys.stdin.read()


def reduce(path, job, rank, hold=""):
    try:
        with gradcube.Session(path, job, rank=int(rank)) as session:
            values = numpy.full(1000, 1.0 + session.rank, "float32")
            session.allreduce_async(values).wait(PATIENCE if not hold else 5)
            say(sum=float(values[0]))
            if hold:
                stay()
    except gradcube.Error as error:
        say(error=str(error))
        if hold:
            stay()


def sessions(path, count):
    opened = []
    for number in range(int(count)):
        try:
            opened.append(gradcube.Session(path, f"many{number}"))
            say(opened=len(opened))
        except gradcube.Error as error:
            say(error=str(error))
    stay()


def heaps(path, count):
    """Sessions that ask for as much address space as one may, and stay at that."""
    opened = []
    for number in range(int(count)):
        opened.append(raw_session.connect(path))
        opened[-1].send(raw_session.hello(f"heap{number}", heap_bytes=1 << 40))
        answer, descriptors, _, _ = socket.recv_fds(opened[-1], 4096, 4)
        say(**({"offered": number} if descriptors else {"error": raw_session.read_notice(answer).text}))
    stay()


def leave(*paths):
    """A job that goes on without one of its trainers, which has left in order."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        joining = [
            pool.submit(gradcube.Session, path, "goes-on", trainers_per_server=2, local=local)
            for path in paths
            for local in (0, 1)
        ]
        joined = [each.result(PATIENCE) for each in joining]
    joined[1].close()
    say(left=1)
    stay()


def may_open(path):
    """Also where it lets nobody read: that it is there, and not forbidden, is enough."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except (PermissionError, FileNotFoundError):
        return False
    except OSError:
        return True
    return True


def spy(pid):
    """What it can get at of that process: of its memory, and of the memory that it shares."""
    process = pathlib.Path("/proc") / pid
    # By number: also where it may not list them.
    paths = [process / name for name in ("mem", "maps", "environ")] + [process / "fd" / str(n) for n in range(256)]
    got = [str(path) for path in paths if may_open(path)]
    for name in ("map_files", "fd"):
        with contextlib.suppress(PermissionError):
            got += os.listdir(process / name)
    say(got=got)


def flood(control, path):
    generator = random.Random(1)
    connections = []
    say(begun=True)
    while True:
        with contextlib.suppress(OSError):
            asker = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            asker.setblocking(False)
            asker.connect(control)
            asker.send(b'{"command":"status"}\n' * 50 + b'{"command":"down"}\n')
            connections.append(asker)
        with contextlib.suppress(OSError):
            trainer = raw_session.connect(path)
            trainer.setblocking(False)
            connections.append(trainer)
            trainer.send(raw_session.hello(f"flood{generator.randrange(10)}", heap_bytes=1 << 20))
            trainer.send(generator.randbytes(generator.randrange(1, 2000)))
        while len(connections) > 200:
            connections.pop(generator.randrange(len(connections))).close()


if __name__ == "__main__":
    {"reduce": reduce, "sessions": sessions, "heaps": heaps, "leave": leave, "spy": spy, "flood": flood}[sys.argv[1]](*sys.argv[2:])
