"""Forks the ranks of Ranks (torch_launch.py) from one process that has loaded PyTorch: loading takes long.

A line of JSON on stdin starts a program or asks for the exit code of one; each is answered with a line on stdout. What
is forked is a process like one that was started: it has its own environment, files, signals and exit code, and it ends
as an interpreter does. This process has one thread, and neither a session nor a process group. At the end of stdin it
kills what still runs.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
import time

LONGEST = 5  # seconds for rank 0 to listen; then PyTorch goes on to try


def exit_code(process):
    """None: it runs."""
    ended, status = os.waitpid(process, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def wait_for_store():
    """Until rank 0 has PyTorch's store: a rank that finds none would look again after a second."""
    deadline = time.monotonic() + LONGEST
    while os.environ["RANK"] != "0" and time.monotonic() < deadline:
        try:
            return socket.create_connection((os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"])).close()
        except OSError:
            time.sleep(0.01)


def become(request):
    os.environ.clear()
    os.environ.update(request["environment"])
    for descriptor, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["output"], os.O_WRONLY),
        (2, request["errors"], os.O_WRONLY),
    ):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = request["arguments"]
    sys.path[0] = os.path.dirname(sys.argv[0])
    wait_for_store()


def serve(modules):
    """Returns in the processes that were forked, and in this one at the end of stdin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of Ctrl-C, which the test gets, too
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # so that no process that ends looks through all of PyTorch, and copies its pages for it
    requests = os.fdopen(os.dup(0), "r", buffering=1)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    running = set()
    for line in iter(requests.readline, ""):
        request = json.loads(line)
        if "poll" in request:
            answer = exit_code(request["poll"])
            if answer is not None:
                running.discard(request["poll"])
        else:
            assert len(os.listdir("/proc/self/task")) == 1, "a process with several threads must not fork"
            answer = os.fork()
            if answer == 0:
                requests.close()
                answers.close()
                become(request)
                return True
            running.add(answer)
        print(json.dumps(answer), file=answers)
    for process in running:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)
    return False


if __name__ == "__main__" and serve(sys.argv[1:]):
    __file__, __doc__ = sys.argv[0], None
    with open(__file__) as program:
        code = compile(program.read(), __file__, "exec")
    exec(code)  # here, so that its names live as long as those of any other __main__
