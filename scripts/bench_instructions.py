"""Instructions of a segment, counted by valgrind's callgrind: they are the same in each run.

valgrind shows a program no AVX-512, so they are those of a CPU with AVX2.
"""

import functools
import pathlib
import re

from bench_process import Failure
from bench_process import run_all
from bench_row import Row
from bench_row import value_at_most

SHORT, LONG = 1152, 8192  # bytes of payload
FEW, MANY = 10, 30  # all-reduces


def counted(setting, checksum, segment, allreduces):
    """Segments and instructions of one run."""
    program = str(pathlib.Path(setting.build) / "tests/bench/dataplane/count_segments")
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-fd=1"]
    text = run_all([[*command, program, checksum, str(segment), str(allreduces)]], 300)
    segments = re.search(r'"segments": (\d+)', text)
    instructions = re.search(r"Collected : (\d+)", text)
    if segments is None or instructions is None:
        raise Failure("valgrind has counted nothing")
    return int(segments[1]), int(instructions[1])


def of_a_segment(setting, checksum, segment):
    """Instructions, by two runs that differ by their all-reduces alone."""
    few, before = counted(setting, checksum, segment, FEW)
    many, after = counted(setting, checksum, segment, MANY)
    return (after - before) / (many - few)


def segment_rows(checksum, words, limit, setting):
    """What a segment takes whatever its length is, and what each KiB of it takes."""
    short = of_a_segment(setting, checksum, SHORT)
    long = of_a_segment(setting, checksum, LONG)
    of_kibibyte = (long - short) / (LONG - SHORT) * 1024
    figure = f"instructions of a segment, {words}: "
    whole = Row(figure + "whatever its length", short - of_kibibyte * SHORT / 1024, "")
    return [value_at_most(whole, limit), Row(figure + "of each KiB", of_kibibyte, "")]


# What was reached, and 5 % more; docs/performance.md has the goals.
GROUPS = [
    ("instructions of a segment", functools.partial(segment_rows, "none", "without a checksum", 2970)),
    ("instructions of a segment, CRC32C", functools.partial(segment_rows, "crc", "with CRC32C", 3410)),
    ("instructions of a segment, MAC", functools.partial(segment_rows, "mac", "with MAC", 3880)),
]
