"""The programs of a wheel, by the names that pip puts into $PATH. It loads nothing of the package, so they start at once."""

import os
import pathlib
import sys


def _become(name):
    program = str(pathlib.Path(__file__).resolve().with_name("gradcube") / "bin" / name)
    os.execv(program, [program, *sys.argv[1:]])


def tool():
    _become("gradcube")


def daemon():
    _become("gradcubed")
