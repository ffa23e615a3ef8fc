"""Runs a program under the seccomp filter that a systemd unit asks for, where no systemd runs to do so.

    system_call_filter.py UNIT PROGRAM [ARGUMENT...]

SystemCallFilter=, RestrictAddressFamilies= and MemoryDenyWriteExecute= of the unit, by the kernel: what is not allowed
fails with EPERM, a socket of another family with EAFNOSUPPORT. systemd-analyze says what the unit's @sets are. It takes
x86-64, systemd-analyze, and the kernel's headers for the numbers; why_not() says what is missing.
"""

import ctypes
import errno
import functools
import os
import pathlib
import platform
import re
import shutil
import socket
import struct
import subprocess
import sys

NUMBERS = pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
ARCHITECTURE = 0xC000003E  # AUDIT_ARCH_X86_64
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, EQUAL, ANY_BIT, AND, RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16  # in struct seccomp_data
PROT_WRITE, PROT_EXEC = 2, 4


def why_not():
    """Why it cannot be done here; empty if it can."""
    if platform.machine() != "x86_64":
        return "the filter is made for x86-64"
    if shutil.which("systemd-analyze") is None:
        return "there is no systemd-analyze"
    return "" if NUMBERS.exists() else f"there is no {NUMBERS}"


def settings(unit):
    """The unit's settings, by name; of one that is there several times, all."""
    found = {}
    for name, value in re.findall(r"(?m)^([A-Z]\w+)=(.*)$", pathlib.Path(unit).read_text()):
        found.setdefault(name, []).append(value)
    return found


@functools.cache
def call_sets():
    """What each @set has: calls, and other sets."""
    listed = subprocess.run(["systemd-analyze", "syscall-filter"], check=True, capture_output=True, text=True).stdout
    sets, members = {}, None
    for line in listed.splitlines():
        word = line.strip()
        if line.startswith("@"):
            members = sets.setdefault(word, [])
        elif not line.strip():
            members = None
        elif members is not None and not word.startswith("#"):
            members.append(word)
    return sets


def calls_in(words):
    calls = set()
    for word in words:
        calls |= calls_in(call_sets()[word]) if word.startswith("@") else {word}
    return calls


def allowed_calls(unit):
    allowed = set()
    for value in settings(unit)["SystemCallFilter"]:
        if value.startswith("~"):
            allowed -= calls_in(value[1:].split())
        else:
            allowed |= calls_in(value.split())
    return allowed | calls_in(["@default"])


def step(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def program(unit):
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", NUMBERS.read_text())}
    families = [getattr(socket, name) for name in " ".join(settings(unit)["RestrictAddressFamilies"]).split()]
    steps = [step(LOAD, ARCHITECTURE_AT), step(EQUAL, ARCHITECTURE, 1), step(RETURN, KILL), step(LOAD, NUMBER_AT)]
    ask = [step(LOAD, ARGUMENTS_AT)]
    for family in families:
        ask += [step(EQUAL, family, 0, 1), step(RETURN, ALLOW)]
    ask += [step(RETURN, ERROR | errno.EAFNOSUPPORT)]
    steps += [step(EQUAL, numbers["socket"], 0, len(ask)), *ask]
    if settings(unit).get("MemoryDenyWriteExecute") == ["yes"]:
        both = PROT_WRITE | PROT_EXEC
        ask = [step(LOAD, ARGUMENTS_AT + 16), step(AND, both), step(EQUAL, both, 0, 1), step(RETURN, ERROR | errno.EPERM)]
        steps += [step(EQUAL, numbers["mmap"], 0, len(ask) + 1), *ask, step(RETURN, ALLOW)]
        for name in ("mprotect", "pkey_mprotect"):
            ask = [step(LOAD, ARGUMENTS_AT + 16), step(ANY_BIT, PROT_EXEC, 0, 1), step(RETURN, ERROR | errno.EPERM)]
            steps += [step(EQUAL, numbers[name], 0, len(ask) + 1), *ask, step(RETURN, ALLOW)]
    for name in sorted(allowed_calls(unit) & set(numbers)):
        steps += [step(EQUAL, numbers[name], 0, 1), step(RETURN, ALLOW)]
    return b"".join([*steps, step(RETURN, ERROR | errno.EPERM)])


def restrict(unit):
    """This process and its children, for ever."""
    text = program(unit)
    buffer = ctypes.create_string_buffer(text, len(text))
    filter_program = struct.pack("HxxxxxxQ", len(text) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no new privileges")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter_program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the filter was not taken")


if __name__ == "__main__":
    restrict(sys.argv[1])
    os.execv(sys.argv[2], sys.argv[2:])
