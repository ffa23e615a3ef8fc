"""How the ranks of a process group find the job that they share, and each other's servers.

Through the group's Store, a dictionary that all ranks of the group see: each rank tells where it runs, rank 0 names the
job as well, and then each tells the number of its server. After that nothing is asked of the store: it may be gone when ranks leave.
"""

import contextlib
import json
import os
import pathlib
import re
import secrets
import socket

from ._errors import Error
from ._launchers import launched
from ._session import Session

_LONGEST_LABEL = 24  # of a group's name in the job's
_ANSWERS = ("place", "server", "joined")  # of rank 0 in an attempt to join, in their order


class _NoServer(RuntimeError):
    """Of a rank that reaches no server: mostly all ranks of a host fail so, and rank 0 speaks for them."""


def run_directory():
    if os.environ.get("GRADCUBE_RUN"):
        return os.environ["GRADCUBE_RUN"]
    if os.environ.get("XDG_RUNTIME_DIR"):
        return os.path.join(os.environ["XDG_RUNTIME_DIR"], "gradcube")
    return f"/tmp/gradcube-{os.geteuid()}"


def _sockets():
    """Those of the daemons that this process finds, in the order of their servers."""
    return sorted(
        map(str, pathlib.Path(run_directory()).glob("server-*.sock")),
        key=lambda path: [int(digit) for digit in re.findall(r"\d+", os.path.basename(path))],
    )


def _place():
    """The same for the processes of a host that see the same run directory, and for no others."""
    try:
        host = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        host = socket.gethostname()
    try:
        directory = os.stat(run_directory())
    except OSError:
        return f"{host} {run_directory()}"
    return f"{host} {directory.st_dev} {directory.st_ino}"


def _where(held):
    """What a rank tells the others about its place. `held`: the socket at which it has joined another group."""
    chosen = os.environ.get("GRADCUBE_SOCKET") or held
    return {"chosen": chosen, "place": _place(), "sockets": [] if chosen else _sockets()}


def _shared_out(told, rank):
    """The rank's socket, from what all ranks tell. Those of one place that have not chosen share its servers out in the
    order of their ranks, with as many on each of them in all places, and as few as can be. A job needs two servers.
    Empty: it finds none."""
    if told[rank]["chosen"]:
        return told[rank]["chosen"]
    places = {}
    for other, one in enumerate(told):
        if one["sockets"]:
            places.setdefault(one["place"], []).append(other)
    if not told[rank]["sockets"]:
        return ""
    servers = {place: len(told[ranks[0]]["sockets"]) for place, ranks in places.items()}
    elsewhere = sum(1 for one in told if not one["sockets"])
    for each in range(1, len(told) + 1):
        fits = all(len(ranks) % each == 0 and len(ranks) <= each * servers[place] for place, ranks in places.items())
        if fits and elsewhere + sum(len(ranks) // each for ranks in places.values()) > 1:
            return told[rank]["sockets"][places[told[rank]["place"]].index(rank) // each]
    counts = ", ".join(f"ranks on a host with {servers[place]} servers: {len(ranks)}" for place, ranks in places.items())
    raise _NoServer(
        f"gradcube needs two servers or more, and the same number of ranks on each ({counts}): start other numbers, or "
        "set GRADCUBE_SOCKET to the socket of each rank's server"
    )


def launched_session():
    """A session at the place that the launcher has given this process. `gradcube run` counts the processes of a server, and
    its job has the name of the run. Others count those of a host, which share its servers out, with as many on each; then
    it is the job "default"."""
    place = launched()
    run = os.environ.get("TORCHELASTIC_RUN_ID", "")
    job = run if run.startswith("run-") else "default"  # of `gradcube run`, not of torchrun
    sockets = [os.environ["GRADCUBE_SOCKET"]] if "GRADCUBE_SOCKET" in os.environ else _sockets()
    if not place or not sockets or place["LOCAL_WORLD_SIZE"] % len(sockets) != 0:
        return Session(job=job)
    each = place["LOCAL_WORLD_SIZE"] // len(sockets)
    server, local = divmod(place["LOCAL_RANK"], each)
    return Session(sockets[server], job, trainers_per_server=each, local=local)


def _server_and_cluster(path):
    """The number of the server behind the socket of this path, and how many the cluster has.

    In a job of all servers, which never starts, because no other trainer joins it.
    """
    try:
        with Session(path or None, f"torch-probe-{secrets.token_hex(8)}") as session:
            return session.server, session.size
    except Error as error:
        raise _NoServer(str(error)) from None


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


class _BegunAnew(Exception):
    """Rank 0 has read what a rank wrote before it was cut short, and that rank has come again."""


class _Attempt:
    """One of the ranks' attempts to join, with keys of its own: the store may have those of a group of this name that
    was, of attempts that failed, and of ranks that died.

    Rank 0 counts the attempts. Another rank sees the number of the last one, but not whether that is over: it is this one
    if rank 0's first answer has the rank's token, and else the next one.
    """

    def __init__(self, store, rank, size):
        self._store, self._rank, self._size = store, rank, size
        self._token = secrets.token_hex(8)
        self._number = store.add("gradcube/attempts", 1 if rank == 0 else 0) or 1
        if rank == 0:
            for number in range(self._number - 1, 0, -1):
                if self._has_ended(number):
                    break

    def _has_ended(self, number):
        """Whether rank 0 has given the last answer of this attempt. Where it was killed nobody is to wait for what it
        has not answered."""
        for what in _ANSWERS:
            key = f"gradcube/{number}/{what}"
            answer = self._store.compare_set(key, "", "[]")
            self._store.set(key, answer)  # this wakes who waits in a TCPStore, compare_set() does not
        return answer != b"[]"

    def gather(self, what, mine):
        """What each rank has, in their order: rank 0 puts it together."""
        if self._rank == 0:
            key = f"gradcube/{self._number}/{what}"
            try:
                each = [mine, *(json.loads(self._store.get(f"{key}/{other}")) for other in range(1, self._size))]
            except BaseException:  # as where Ctrl-C ends it: the others wait for the next attempt
                with contextlib.suppress(Exception):  # the store may be gone
                    self._store.set(key, json.dumps([{"is_anew": True}]))
                raise
            self._store.set(key, json.dumps(each))
        else:
            each = self._told(what, mine)
            while all(one.get("token") != self._token for one in each):
                if what != "place":  # this attempt has ended
                    raise _BegunAnew
                # Rank 0 reads this where it took for this rank's what is older, and waits for more.
                for later in _ANSWERS[1:]:
                    self._tell(later, {"is_anew": True})
                self._number += 1
                each = self._told(what, mine)
        if any("is_anew" in one for one in each):
            raise _BegunAnew
        return each

    def _tell(self, what, mine):
        self._store.set(f"gradcube/{self._number}/{what}/{self._rank}", json.dumps({"token": self._token, **mine}))

    def _told(self, what, mine):
        self._tell(what, mine)
        return json.loads(self._store.get(f"gradcube/{self._number}/{what}"))


def _agree(attempt, what, rank, act):
    """What `act` returned on each rank. If it failed on one, all ranks raise, and name each that failed; what servers
    are not found rank 0 says alone."""
    failure, mine = None, {}
    try:
        mine["value"] = act()
    except Exception as error:
        failure = error
        mine = {"failure": str(error), "found": not isinstance(error, _NoServer)}
    answers = attempt.gather(what, mine)
    failures = {}  # by text: whose
    for other, answer in enumerate(answers):
        if "failure" in answer:
            failures.setdefault(answer["failure"], []).append(str(other))
    if not failures:
        return [answer["value"] for answer in answers]
    if rank != 0 and not any(answer.get("found") for answer in answers):
        raise RuntimeError(f"rank {rank} cannot join: rank 0 says which ranks find no server, and why") from None
    raise RuntimeError(
        "not all ranks can join: "
        + "; ".join(f"rank{'s' if len(who) > 1 else ''} {', '.join(who)}: {text}" for text, who in failures.items())
    ) from (None if isinstance(failure, _NoServer) else failure)


def join(store, rank, size, name, check, open_group, held=None):
    """The result of `open_group`, which gets socket, job, servers and trainers_per_server, when all ranks have one.

    `check` raises what is wrong with this rank's own wishes: the others are to learn of it, too. `held`: the socket at
    which this process has joined another group.
    """
    while True:
        try:
            return _join_in(_Attempt(store, rank, size), rank, name, check, open_group, held)
        except _BegunAnew:
            pass


def _join_in(attempt, rank, name, check, open_group, held):
    def where():
        check()
        label = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:_LONGEST_LABEL]
        return {"job": f"torch-{label}-{secrets.token_hex(8)}", **_where(held)}

    told = _agree(attempt, "place", rank, where)
    paths = []

    def find():
        paths.append(_shared_out(told, rank))
        return _server_and_cluster(paths[0])

    found = _agree(attempt, "server", rank, find)
    members, trainers = _layout([server for server, _ in found], found[rank][1])
    opened = []
    place = {"socket": paths[0], "servers": members, "trainers_per_server": trainers, "job": told[0]["job"]}
    _agree(attempt, "joined", rank, lambda: opened.append(open_group(**place)))
    return opened[0]
