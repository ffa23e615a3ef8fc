"""What ranks did when, in Chrome's trace format: for chrome://tracing and Perfetto."""

import json
import os
import threading
import time
import warnings

import torch.distributed as dist

BACKWARD = 0
COMMUNICATION = 1
_TRACKS = {BACKWARD: "backward pass", COMMUNICATION: "all-reduces"}


def _temporary(path):
    return f"{path}.{os.getpid()}"


def check_writable(path, group):
    """Whether rank 0 of the group can write the file. Every rank calls it; if not, all raise OSError."""
    found = [None]
    if dist.get_rank(group) == 0:
        try:
            with open(_temporary(path), "w", encoding="utf-8"):
                pass
            os.remove(_temporary(path))
        except OSError as error:
            found = [(error.errno, error.strerror)]
    dist.broadcast_object_list(found, 0 if group is None else dist.get_global_rank(group, 0), group=group)
    if found[0] is not None:
        raise OSError(*found[0], str(path))


class Timeline:
    """Of one rank. Any thread may add to it. Times are those of time.perf_counter()."""

    def __init__(self):
        self._to_wall_clock = time.time() - time.perf_counter()  # the ranks may be on several hosts
        self._lock = threading.Lock()
        self._events = []

    def add(self, track, name, begin, end):
        with self._lock:
            self._events.append((track, name, begin + self._to_wall_clock, end + self._to_wall_clock))

    def write(self, path, group):
        """Every rank calls it; rank 0 of the group writes the file with the events of all."""
        with self._lock:
            mine = list(self._events)
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        rows = [None] * size
        dist.all_gather_object(rows, mine, group=group)
        if rank != 0:
            return
        start = min((begin for row in rows for _, _, begin, _ in row), default=0.0)
        events = []
        for number, row in enumerate(rows):
            events.append({"ph": "M", "name": "process_name", "pid": number, "args": {"name": f"rank {number}"}})
            for track, name in _TRACKS.items():
                events.append(
                    {"ph": "M", "name": "thread_name", "pid": number, "tid": track, "args": {"name": name}}
                )
            for track, name, begin, end in row:
                microseconds = {"ts": (begin - start) * 1e6, "dur": (end - begin) * 1e6}
                events.append({"ph": "X", "name": name, "pid": number, "tid": track, **microseconds})
        try:
            with open(_temporary(path), "w", encoding="utf-8") as file:
                json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)
            os.replace(_temporary(path), path)
        except OSError as error:  # of this rank alone, and no reason to end a training
            warnings.warn(f"the timeline was not written: {error}", RuntimeWarning, stacklevel=2)
