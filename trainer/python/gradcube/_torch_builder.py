"""Builds the extension for this process's PyTorch, in the cache (_torch_extension.py).

A process of its own compiles it and loads it (_torch_compile.py), in a folder of its own; only what has come through
that is moved to its place. Processes that need the same one at the same time, as ranks do, wait for the one that builds
it. On a file system without locks several may build, each in its own folder.

Progress goes to stderr, what the compiler says to a log in the cache. Errors are ImportErrors, in a sentence.
"""

import contextlib
import fcntl
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time

from . import _torch_extension

# Of PyTorch's versions, those that the tests have run with (docs/pytorch.md).
TRIED = ((1, 13), (2, 15))

_LONGEST_BUILD = 1800  # seconds, on a host that has much else to do
_PROGRESS = 10  # seconds from one line of progress to the next

_COMPILE = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from gradcube._torch_compile import main; main()"


def build(again=False):
    """Returns its path. `again`: also where the cache has it already."""
    wanted = _torch_extension.identity()
    version = _torch_extension.version_of(wanted)
    place = _torch_extension.place_of(wanted)
    what = lacks()
    if what is not None:
        raise ImportError(f"the backend for PyTorch {version} has yet to be built, once, and {what}")
    _make_cache(place.parent.parent)
    with locked(pathlib.Path(f"{place.parent}.lock"), _LONGEST_BUILD + 60):
        if not again and _torch_extension.find(wanted) == place:
            return place
        log = pathlib.Path(f"{place.parent}.log")
        _say(f"building the backend for PyTorch {version}, once; the compiler's output: {log}")
        note = untried(version)
        if note:
            _say(f"{note}: building it all the same")
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="building-", dir=place.parent.parent) as scratch:
            built = pathlib.Path(scratch) / _torch_extension.FILE
            failure = _compile(scratch, log)
            if failure is None and _torch_extension.built_for(built) != wanted:
                failure = "what was built is not for this PyTorch"
            if failure is not None:
                raise ImportError(
                    f"the backend for PyTorch {version} could not be built: {failure}; the compiler's output: {log}"
                    + (f"; {note}" if note else "")
                )
            _put(built, place)
        _say(f"built in {time.monotonic() - began:.0f} s: {place}")
    return place


def untried(version):
    """A sentence, if this version of PyTorch is newer than all that were tried; else nothing."""
    newest = TRIED[-1]
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) <= newest:
        return ""
    return f"Gradcube was not tried with PyTorch {version}: the newest that it was tried with is {newest[0]}.{newest[1]}"


def lacks():
    """What has to be installed before an extension can be built, and how; None: nothing."""
    header = pathlib.Path(sysconfig.get_path("include", "posix_prefix")) / "Python.h"
    torch = pathlib.Path(sys.modules["torch"].__file__).parent
    if _torch_extension.sources() is None:
        return "its sources are missing: install the package gradcube anew"
    if _compiler() is None:
        return "there is no C++ compiler: install g++ (apt-get install g++), or set CXX to the name of one"
    if not header.exists():
        return f"there is no {header}: install the headers of Python (apt-get install python3-dev)"
    if importlib.util.find_spec("setuptools") is None:
        return "Python's setuptools are missing: pip install setuptools (or apt-get install python3-setuptools)"
    if not (torch / "include/torch/csrc/distributed/c10d/Work.hpp").exists():
        return "PyTorch's headers are missing: apt-get install libtorch-dev (pip's PyTorch has them)"
    return None


def _compiler():
    """g++ where it is, by which PyTorch is built as well."""
    given = os.environ.get("CXX")
    names = [given] if given else ["g++", "c++", "clang++"]
    return next((name for name in names if shutil.which(name.split()[-1])), None)


def _say(text):
    print(f"gradcube: {text}", file=sys.stderr, flush=True)


def _make_cache(directory):
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = directory.stat()
        if about.st_uid not in (0, os.geteuid()) or about.st_mode & stat.S_IWOTH:
            raise OSError("other users can write to it")
        if not os.access(directory, os.W_OK | os.X_OK):
            raise OSError("this user cannot write to it")
    except OSError as error:
        raise ImportError(
            f"the backend for PyTorch cannot be kept in {directory} ({error}): set GRADCUBE_CACHE to a folder of yours"
        ) from None


@contextlib.contextmanager
def locked(path, patience):
    """Holds the file's lock. `patience`: how long another process may have it, in seconds."""
    deadline = time.monotonic() + patience
    waits = False
    with open(path, "a+") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                pass
            except OSError:
                break  # a file system without locks
            if time.monotonic() > deadline:
                raise ImportError(
                    f"another process has held {path} for {patience:.0f} s, to build the backend for PyTorch: end it, "
                    "and try again"
                )
            if not waits:
                _say("waiting for another process, which builds the backend for PyTorch")
            waits = True
            time.sleep(0.1)
        yield


def _compile(scratch, log):
    """Leaves the extension in the folder `scratch`. Returns why it could not, or None."""
    compiler = _compiler()
    environment = {**os.environ, "CC": compiler, "CXX": compiler, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    if os.environ.get("GRADCUBE_LIBRARY"):  # as this process sees it, which is elsewhere
        environment["GRADCUBE_LIBRARY"] = os.path.abspath(os.environ["GRADCUBE_LIBRARY"])
    with open(log, "w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _COMPILE, json.dumps([os.path.abspath(path) for path in sys.path])],
            cwd=scratch,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = _wait_for(process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code is None:
        return f"it took longer than {_LONGEST_BUILD} s"
    return None if code == 0 else _first_error(log) or f"exit code {code}"


def _wait_for(process):
    """Its exit code; None: it takes too long."""
    began = time.monotonic()
    while time.monotonic() - began < _LONGEST_BUILD:
        try:
            return process.wait(_PROGRESS)
        except subprocess.TimeoutExpired:
            _say(f"still building, {time.monotonic() - began:.0f} s")
    return None


def _first_error(log):
    lines = log.read_text(errors="replace").splitlines()
    return next((line.strip() for line in lines if re.search(r"\berror:", line)), lines[-1].strip() if lines else "")


def _put(built, place):
    """Whoever looks meanwhile finds no file, or one that is not whole by the digest, or the whole one."""
    place.parent.mkdir(mode=0o700, exist_ok=True)
    digest = built.with_name(_torch_extension.DIGEST)
    digest.write_text(_torch_extension.digest_of(built))
    for path in (digest, built):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        os.replace(path, place.with_name(path.name))
