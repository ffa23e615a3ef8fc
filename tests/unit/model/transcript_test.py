"""What each command of `gradcube model` prints and how it ends, word for word, is in transcript.txt.

Usage: transcript_test.py [--write]

A line "$ WORDS" is a command. Below it are its standard output, its standard error behind "! ", its exit code if that
is not 0, "[2]", and what it has written into out.json behind "> ". With --write the outputs are written anew: to add a
command, write its line, and look at what comes of it.
"""

import json
import os
import pathlib
import shlex
import sys
import tempfile
import unittest

from gradcube.model import commands

TRANSCRIPT = pathlib.Path(__file__).resolve().parent / "transcript.txt"
# docs/mg-wfbp.md: what Algorithm 1 takes is 9, and the least is 8.
THREE_LAYERS = {"alpha": 2, "beta": 1, "layers": [{"bytes": 1, "backward_seconds": s} for s in (2, 1, 1)]}
MANY_LAYERS = {
    "alpha": 6e-4,
    "beta": 1.6e-9,
    "forward_seconds": 0.0137,
    "layers": [{"bytes": i * 7919 % 900001 + 1, "backward_seconds": (i * 31 % 17 + 1) * 1.7e-4} for i in range(60)],
}
RUN = {
    "topology": {"spec": "bcube:4,2", "kind": "bcube", "servers": 16},
    "rate_bps": 8_000_000,
    "results": [{"bytes": 1000, "in_flight": 1, "seconds_median": 0.01}, {"bytes": 10**6, "seconds_median": 1.25}],
}
FILES = {"three.json": THREE_LAYERS, "many.json": MANY_LAYERS, "run.json": RUN}


def text_of(descriptor):
    with open(descriptor, encoding="utf-8") as file:
        return file.read()


def output_of(words):
    """As a transcript has it, of a command in the folder with the files."""
    reads, writes = zip(os.pipe(), os.pipe())
    saved = [os.dup(1), os.dup(2)]
    pathlib.Path("out.json").unlink(missing_ok=True)
    try:
        for number, write in enumerate(writes, start=1):
            os.dup2(write, number)
        code = commands.run(words)
    finally:
        for number, kept in enumerate(saved, start=1):
            os.dup2(kept, number)
        for descriptor in (*saved, *writes):
            os.close(descriptor)
    out, err = map(text_of, reads)
    written = pathlib.Path("out.json").read_text(encoding="utf-8") if os.path.exists("out.json") else ""
    text = out + "".join(f"! {line}\n" for line in err.splitlines())
    return text + (f"[{code}]\n" if code else "") + "".join(f"> {line}\n" for line in written.splitlines())


def parts():
    """(command, expected) of the transcript."""
    for part in ("\n" + TRANSCRIPT.read_text(encoding="utf-8")).split("\n$ ")[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected.strip("\n") + "\n"


class Transcript(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        for name, content in FILES.items():
            pathlib.Path(name).write_text(json.dumps(content))

    def test_every_command_prints_what_it_printed(self):
        for command, expected in parts():
            with self.subTest(command):
                self.assertEqual(output_of(shlex.split(command)).strip("\n") + "\n", expected)

    def test_every_model_and_its_help_is_in_the_transcript(self):
        seen = {command for command, _ in parts()}
        for model in ("", "gst ", "merge ", "training ", "hub ", "figure "):
            self.assertIn(f"{model}--help", seen)

    def write(self):
        self.setUp()
        texts = [f"$ {command}\n{output_of(shlex.split(command))}" for command, _ in list(parts())]
        TRANSCRIPT.write_text("\n".join(texts), encoding="utf-8")
        self.doCleanups()


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        Transcript("write").write()
    else:
        unittest.main()
