"""How the ranks of a process group find the job that they share, and each other's servers.

Through the group's Store, a dictionary that all ranks of the group see: rank 0 names the job, and each rank tells the
number of its server. At the end each tells that it leaves.
"""

import contextlib
import os
import pathlib
import re
import secrets
import time

from ._session import Session

_LONGEST_LABEL = 24  # of a group's name in the job's
_PATIENCE = 3  # seconds, for ranks that leave later
_BETWEEN_LOOKS = 0.01


def _run_directory():
    if os.environ.get("GRADCUBE_RUN"):
        return os.environ["GRADCUBE_RUN"]
    if os.environ.get("XDG_RUNTIME_DIR"):
        return os.path.join(os.environ["XDG_RUNTIME_DIR"], "gradcube")
    return f"/tmp/gradcube-{os.geteuid()}"


def socket_path():
    """The daemon's socket for this process: $GRADCUBE_SOCKET, else one of the run directory's.

    torchrun starts several processes on a host with the same environment, and tells each its number there. They share
    the servers of the run directory out evenly. Empty: the library is to look for it, or to say why there is none.
    """
    if os.environ.get("GRADCUBE_SOCKET"):
        return os.environ["GRADCUBE_SOCKET"]
    sockets = sorted(
        pathlib.Path(_run_directory()).glob("server-*.sock"),
        key=lambda path: [int(digit) for digit in re.findall(r"\d+", path.name)],
    )
    local = int(os.environ.get("LOCAL_RANK", "-1"))
    processes = int(os.environ.get("LOCAL_WORLD_SIZE", "0"))
    if len(sockets) < 2 or not 0 <= local < processes:
        return ""
    if processes <= len(sockets):
        return str(sockets[local])
    return str(sockets[local * len(sockets) // processes])


def launched_session():
    """A session of the job "default", at the place that `gradcube run` has given this process. Elsewhere as the only
    trainer of its server: other launchers count the processes of a host."""
    if "GRADCUBE_SOCKET" not in os.environ or "LOCAL_WORLD_SIZE" not in os.environ:
        return Session()
    return Session(trainers_per_server=int(os.environ["LOCAL_WORLD_SIZE"]), local=int(os.environ["LOCAL_RANK"]))


def _server_and_cluster(socket):
    """The number of the server behind the socket, and how many the cluster has.

    In a job of all servers, which never starts, because no other trainer joins it.
    """
    with Session(socket or None, f"torch-probe-{secrets.token_hex(8)}") as session:
        return session.server, session.size


def _layout(servers, cluster):
    """The members and the trainers on each, for the servers of the ranks in their order."""
    members = sorted(set(servers))
    trainers = len(servers) // len(members)
    numbers = {server: servers.count(server) for server in members}
    if len(set(numbers.values())) != 1:
        raise RuntimeError(
            "gradcube needs the same number of ranks on each server of a group, and the ranks per server are "
            + ", ".join(f"{number} on server {server}" for server, number in numbers.items())
        )
    blocks = [servers[first : first + trainers] for first in range(0, len(servers), trainers)]
    if any(len(set(block)) != 1 for block in blocks):
        raise RuntimeError(
            f"gradcube needs the ranks of a server side by side, and with {trainers} on each server the servers of "
            f"the ranks are {servers}"
        )
    return [] if len(members) == cluster else members, trainers


def _agree(store, key, rank, size, act):
    """What `act` returned on each rank, as strings. If it failed on one, all ranks raise, and name each that failed."""
    try:
        mine, failure = act(), None
        told = f"+{mine}"
    except Exception as error:
        failure = error
        told = f"-{error}"
    store.set(f"gradcube/{key}/{rank}", told)
    answers = [store.get(f"gradcube/{key}/{other}").decode() for other in range(size)]
    failures = [f"rank {other}: {answer[1:]}" for other, answer in enumerate(answers) if answer[0] == "-"]
    if failures:
        raise RuntimeError("not all ranks can join: " + "; ".join(failures)) from failure
    return [answer[1:] for answer in answers]


def join(store, rank, size, name, check, open_group):
    """The result of `open_group`, which gets socket, job, servers and trainers_per_server, when all ranks have one.

    `check` raises what is wrong with this rank's own wishes: the others are to learn of it, too.
    """
    if rank == 0:
        label = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:_LONGEST_LABEL]
        store.set("gradcube/job", f"torch-{label}-{secrets.token_hex(8)}")
    sockets = []

    def find():
        check()
        sockets.append(socket_path())
        return "%d of %d" % _server_and_cluster(*sockets)

    found = _agree(store, "server", rank, size, find)
    servers = [int(text.split()[0]) for text in found]
    members, trainers = _layout(servers, int(found[rank].split()[2]))
    opened = []
    place = {"socket": sockets[0], "servers": members, "trainers_per_server": trainers}
    place["job"] = store.get("gradcube/job").decode()
    _agree(store, "joined", rank, size, lambda: opened.append(open_group(**place)))
    return opened[0]


class Leaving:
    """The end of a group. A rank that leaves ends the group on all others, so ranks that have done their last call wait
    until the others have done theirs, too; for a moment only, as some may be in trouble, or may never come."""

    def __init__(self, store, size):
        self._store = store
        self._size = size
        self._process = os.getpid()
        self._job = store.get("gradcube/job").decode()  # a later group may have the same store

    @staticmethod
    def together(groups):
        """One moment for all of these groups. Store and ranks may be gone: nothing is raised."""
        groups = [group for group in groups if group._process == os.getpid()]
        deadline = time.monotonic() + _PATIENCE
        with contextlib.suppress(Exception):
            for group in groups:
                group._come(1)
            # Not by the store's wait(): where its time is up, PyTorch 1.13's TCPStore misreads what comes next.
            while not all(group._come(0) for group in groups) and time.monotonic() < deadline:
                time.sleep(_BETWEEN_LOOKS)

    def _come(self, ranks):
        """Whether all have come, with these."""
        return self._store.add(f"gradcube/leaving/{self._job}", ranks) >= self._size
