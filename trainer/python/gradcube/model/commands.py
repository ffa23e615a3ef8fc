"""All commands of `gradcube model`, and how they end: with an exit code, and on a failure one line on standard
error."""

import os
import signal
import sys

from .. import Error
from . import figure_command, gst_command, hub_command, lines_command, merge_command, tool, training_command
from .command_line import help_of, help_of_models, parse
from .failure import Failure
from .printable import encoded, printable
from .report import write_output

_LONGEST_MESSAGE = 4000
_STANDARD_ERROR = 2
_DESCRIPTION = "Compute what the papers' cost models say of a topology, or fit them to the running cluster"
COMMANDS = (
    gst_command.COMMAND,
    merge_command.COMMAND,
    training_command.COMMAND,
    hub_command.COMMAND,
    figure_command.COMMAND,
    lines_command.COMMAND,
)
_FOOTER = """Examples:
  gradcube model gst --topology bcube:4,2 --topology fattree:16    compare algorithms
  gradcube model gst --switches --topology bcube:4,2               count switches
  gradcube model merge --profile resnet50.json                     merge layers' gradients
  gradcube model training --network resnet50 --nodes 4..64         what that saves
  gradcube model fit                                               measure the cluster
docs/models.md says which equation of which paper each figure is."""


def _complain(text):
    """Never fails where nobody can read it."""
    try:
        os.write(_STANDARD_ERROR, encoded(f"gradcube: {printable(text, _LONGEST_MESSAGE)}\n"))
    except OSError:
        pass


def _run(words):
    command, values = parse(words, COMMANDS)
    if values is not None:
        command.run(values)
    elif command is lines_command.COMMAND:
        tool.replace_with("model", "fit", "--help")
    elif command is not None:
        write_output(help_of(command))
    else:
        write_output(help_of_models(_DESCRIPTION, COMMANDS, _FOOTER))


def run(words):
    """The exit code of a command of these words: 0, 1 where it failed, 2 where it was not written right."""
    try:
        _run(words)
    except Failure as failure:
        _complain(str(failure))
        return failure.code
    except (Error, ValueError) as error:
        _complain(str(error))
        return 1
    return 0


def main():
    # As programs that are not Python's: a reader that is gone, or Ctrl-C, ends it without a word.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run([os.fsencode(word).decode("utf-8", "surrogateescape") for word in sys.argv[1:]])
