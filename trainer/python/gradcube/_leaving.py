"""How a child of multiprocessing leaves its jobs as it ends: one that was forked ends without atexit."""

import functools
import sys
import threading


@functools.cache
def leave_with(process, leave_all):
    """`leave_all` is called as this process (os.getpid(), another one in a forked child) ends, if multiprocessing has
    started it. Any other one has atexit for that."""
    processes = sys.modules.get("multiprocessing.process")  # what such a child has loaded
    if processes is None or processes.parent_process() is None:
        return
    import multiprocessing.util

    multiprocessing.util.Finalize(None, _end, [leave_all], exitpriority=0)


def _end(leave_all):
    """When all threads but daemons have ended, as with atexit. multiprocessing waits for them later, and finds it done."""
    try:
        threading._shutdown()
    finally:
        leave_all()
