"""The relay on one core, against DPDK's testpmd with its macswap forwarding on the same kind of ports.

A generator on another core sends frames into the first port and counts what comes out of the second. Over memif links
it is the same process for both sides; over rings, which testpmd shares with nobody, it is a bench that has testpmd's
loop (tests/bench/dataplane/bench_relay_rings.cc).
"""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

from bench_process import Failure
from bench_process import run_json
from bench_row import Medians
from bench_row import Row
from bench_row import at_least

SIZES = (64, 1500)  # bytes of a frame without FCS
LEAST = 0.85
# Below this share of frames for which the relay had no room, it was the generator that was measured.
LEAST_REFUSED = 0.02


def _cores():
    """Of the generator, and of what it measures."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise Failure("this takes two cores, one for the generator and one for the relay")
    return str(cores[0]), str(cores[1])


def _seconds(setting):
    return "1" if setting.quick else "2"


@contextlib.contextmanager
def _running(command, output, errors):
    """A process whose input stays open; it is ended when the block is left."""
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=output, stderr=errors, text=True)
    except FileNotFoundError as error:
        raise Failure(f"{error.filename} is not there") from None
    with process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()


def _testpmd(_, socket, cores):
    link = f"role=server,bsize=1536,rsize=10,socket={socket},socket-abstract=no"
    command = ["stdbuf", "-oL", "dpdk-testpmd", "--lcores", f"0@{cores[0]},1@{cores[1]}", "--no-huge", "--no-shconf"]
    command += ["--no-pci", "--no-telemetry", "--iova-mode=va", "-m", "256"]
    command += [f"--file-prefix=gradcube-bench-{os.getpid()}"]
    command += [part for number in (0, 1) for part in ("--vdev", f"net_memif{number},id={number},{link}")]
    command += ["--", "--forward-mode=macswap", "--burst=32", "--rxd=1024", "--txd=1024", "--total-num-mbufs=16384"]
    return [*command, "--disable-link-check", "--no-lsc-interrupt"]


def _text(file):
    """All that a process has written so far, who goes on at the file's own position."""
    return os.pread(file.fileno(), 1 << 20, 0).decode(errors="replace")


def _last_line(file):
    return _text(file).strip().splitlines()[-1:]


def _wait_until_it_says(words, forwarder, log):
    """Until then it refuses the generator's links, which would not be offered again."""
    deadline = time.monotonic() + 30
    while True:
        if words in _text(log):
            return
        if forwarder.poll() is not None or time.monotonic() > deadline:
            raise Failure("; ".join(_last_line(log)) or "what is to forward does not start")
        time.sleep(0.05)


def _forwarded(setting, size, make_command, ready):
    """Frames per second that this command forwards between two memif links once it has said that it is `ready`."""
    program = str(pathlib.Path(setting.build) / "tests/bench/dataplane/bench_relay")
    generator_core, core = _cores()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gradcube-bench.", dir="/tmp"))
        errors = stack.enter_context(tempfile.TemporaryFile("w+"))
        log = stack.enter_context(tempfile.TemporaryFile("w+"))
        socket = f"{folder}/links"
        forwarder = stack.enter_context(_running(make_command(program, socket, (generator_core, core)), log, log))
        _wait_until_it_says(ready, forwarder, log)
        command = [program, "generate", socket, generator_core, str(size), _seconds(setting)]
        generator = stack.enter_context(_running(command, subprocess.PIPE, errors))
        try:
            output, _ = generator.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            raise Failure("the generator did not end") from None
        if generator.returncode != 0:
            raise Failure("; ".join([*_last_line(log), *_last_line(errors)]) or "the generator ended without a word")
    measured = json.loads(output)
    if measured["refused"] < LEAST_REFUSED:
        raise Failure("the generator is slower than what it was to measure")
    return measured["frames_per_second"]


def _relay(program, socket, cores):
    return [program, "relay", socket, cores[1]]


def _rows(setting, ports, peer, measure):
    """A row for each size; measure(size) gives the relay's and the peer's frames per second, taken in turn."""
    rows = []
    for size in SIZES:
        medians = Medians()
        for _ in range(setting.turns(5)):
            ours, theirs = measure(size)
            medians.add("ours", ours)
            medians.add("theirs", theirs)
            medians.add("ratio", ours / theirs)
        bound = f"{peer} {medians['theirs'] / 1e6:.4g} Mpps"
        row = Row(f"relay, one core, {size} bytes, {ports}", medians["ours"] / 1e6, "Mpps", bound, medians["ratio"])
        rows.append(at_least(row, LEAST))
    return rows


def memif_rows(setting):
    def both(size):
        ours = _forwarded(setting, size, _relay, "ready")
        return ours, _forwarded(setting, size, _testpmd, "macswap packet forwarding - ports")

    return _rows(setting, "memif ports", "testpmd's macswap", both)


def ring_rows(setting):
    program = str(pathlib.Path(setting.build) / "tests/bench/dataplane/bench_relay_rings")

    def both(size):
        measured = run_json([program, *_cores(), str(size), _seconds(setting)], 60)
        return measured["relay"], measured["macswap"]

    return _rows(setting, "embedded ports", "macswap on net_ring", both)


GROUPS = [
    ("hosts: the relay on memif ports against testpmd", memif_rows),
    ("hosts: the relay on embedded ports against macswap", ring_rows),
]
