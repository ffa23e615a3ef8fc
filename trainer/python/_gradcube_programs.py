"""The programs of a wheel, by the names that pip puts into $PATH. It loads nothing of the package, so they start at once."""

import os
import pathlib
import sys


def _become(name):
    program = str(pathlib.Path(__file__).resolve().with_name("gradcube") / "bin" / name)
    os.execv(program, [program, *sys.argv[1:]])


def tool():
    if sys.argv[1:2] == ["torch"]:  # which is this Python's, as is its PyTorch
        os.execv(sys.executable, [sys.executable, "-m", "gradcube", *sys.argv[1:]])
    _become("gradcube")


def daemon():
    _become("gradcubed")
