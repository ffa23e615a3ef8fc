"""What a trainer may ask for when it joins a job, as gradcube_open() takes it."""

import ctypes
import os

from ._arrays import whole_number
from ._errors import InvalidError, JobError
from ._library import Lane, Options

_MOST = (1 << 32) - 1


def job_name(job):
    if not isinstance(job, str):
        raise InvalidError(f"invalid job name: expected a string, not {type(job).__name__}")
    if "\0" in job:
        raise JobError("invalid job name: it contains a NUL character")
    return job.encode(errors="replace")  # the library checks the characters


def socket_path(socket):
    if socket is None:
        return None
    try:
        path = os.fsencode(socket)
    except TypeError:
        raise InvalidError(f"invalid socket: expected a path, not {type(socket).__name__}") from None
    if b"\0" in path:
        raise InvalidError("invalid socket: the path contains a NUL character")
    return path


def _name(algorithm):
    if algorithm is None:
        return None
    if not isinstance(algorithm, str) or "\0" in algorithm:
        raise InvalidError(f"invalid algorithm {algorithm!r:.64}: expected the name of one, or None")
    return algorithm.encode(errors="replace")


def _lane(lane):
    """A lane: the name of its algorithm, or that and a priority."""
    if lane is None or isinstance(lane, str):
        return Lane(_name(lane), 0)
    try:
        algorithm, priority = lane
    except (TypeError, ValueError):
        raise InvalidError(f"invalid lane {lane!r:.64}: expected an algorithm, or (algorithm, priority)") from None
    return Lane(_name(algorithm), whole_number(priority, "priority", -(1 << 31), (1 << 31) - 1))


def _sequence(values, name, of_what):
    try:
        if isinstance(values, str):
            raise TypeError
        return list(values)
    except TypeError:
        raise InvalidError(f"invalid {name} {values!r:.64}: expected a sequence of {of_what}") from None


def options_of(algorithm, lanes, weight, rank, members, reproducible, trainers_per_server, local):
    """gradcube_options. It keeps what it points to alive."""
    options = Options(size=ctypes.sizeof(Options), algorithm=_name(algorithm), rank=-1, local=-1)
    options.weight = whole_number(weight, "weight", 1, 1000)
    if not isinstance(reproducible, bool):
        raise InvalidError(f"invalid reproducible {reproducible!r:.64}: expected True or False")
    options.reproducible = reproducible
    options.trainers_per_server = whole_number(trainers_per_server, "trainers_per_server", 1, 16)
    if local is not None:
        options.local = whole_number(local, "local", 0, trainers_per_server - 1)
    if rank is not None:
        options.rank = whole_number(rank, "rank", 0, 65535)
    if lanes is not None:
        lanes = [_lane(lane) for lane in _sequence(lanes, "lanes", "algorithms")]
        options.lanes = (Lane * max(len(lanes), 1))(*lanes)
        options.lane_count = len(lanes)
    if members is not None:
        members = [whole_number(server, "member", 0, _MOST) for server in _sequence(members, "members", "servers")]
        options.members = (ctypes.c_uint32 * max(len(members), 1))(*members)
        options.member_count = len(members)
    return options
