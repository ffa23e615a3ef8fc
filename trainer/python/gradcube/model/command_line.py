"""A command's words, and its help: what they mean and how they are refused is as in all commands of the tool, which is
CLI11's way with the tool's own sentences (cli/text/parse_error.h).

A Command has options and at most one positional. parse() gives their values by their names: a text, a list of texts
where it may be repeated, or a bool.
"""

import collections.abc
import dataclasses
import types
import typing

from .failure import UsageError
from .printable import did_you_mean, printable, quoted
from .units import parse_integer

_HELP_WIDTH = 30  # of the column with the names
_LONGEST_PARSE_ERROR = 300
_FLAG_VALUES = {"true": True, "on": True, "yes": True, "enable": True, "1": True, "t": True, "y": True, "+": True}
_FLAG_VALUES.update({"false": False, "off": False, "no": False, "disable": False, "0": False, "f": False, "n": False})
_FLAG_VALUES["-"] = False
_HELP_NAMES = ("-h", "--help")


def not_empty(text):
    """A check: an empty value is most often an unset variable of a script, and never means "not given"."""
    return "the value is empty" if text == "" else ""


def whole_number_in(least, most):
    def check(text):
        try:
            parse_integer(text, "", least, most)
        except UsageError:
            return f"{quoted(text)}: expected a whole number in {least}..{most}"
        return ""

    return check


@dataclasses.dataclass(frozen=True)
class Option:
    """`default`: also what the help shows, a list where it may be repeated. A kind that is empty makes a flag."""

    name: str
    help: str
    default: typing.Any = ""
    kind: str = "TEXT"
    check: collections.abc.Callable = not_empty
    delimiter: str = ""  # of several values in one word
    needs: tuple = ()
    excludes: tuple = ()
    required: bool = False  # and a positional

    @property
    def key(self):
        return self.name.lstrip("-").replace("-", "_")

    @property
    def is_list(self):
        return isinstance(self.default, list)

    def heading(self):
        text = self.name + (" " if self.kind else "") + self.kind
        shown = f"[{','.join(self.default)}]" if self.default and self.is_list else self.default
        text += f"={shown}" if shown and self.kind else ""
        text += " ..." if self.is_list else ""
        text += " REQUIRED" if self.required else ""
        text += f" Needs: {' '.join(self.needs)}" if self.needs else ""
        return text + (f" Excludes: {' '.join(self.excludes)}" if self.excludes else "")


def any_text(_):
    """The check of a value that may be empty."""
    return ""


def flag(name, help_text, **more):
    return Option(name, help_text, default=False, kind="", **more)


JSON = flag("--json", "Print one JSON object")


@dataclasses.dataclass(frozen=True)
class Command:
    name: str
    description: str
    run: collections.abc.Callable  # with the values
    options: tuple
    footer: str


def _help_line(heading, text):
    left = "  " + heading
    if len(left) >= _HELP_WIDTH:
        left += "\n" + " " * _HELP_WIDTH
    return left.ljust(_HELP_WIDTH) + text + "\n"


def help_of(command):
    positionals = [option for option in command.options if option.required]
    text = f"{command.description}\nUsage: gradcube model {command.name} [OPTIONS]"
    text += "".join(" " + option.name for option in positionals) + "\n\n"
    if positionals:
        text += "Positionals:\n" + "".join(_help_line(o.heading(), o.help) for o in positionals) + "\n"
    text += "Options:\n" + _help_line("-h,--help", "Print this help message and exit")
    text += "".join(_help_line(o.heading(), o.help) for o in command.options if not o.required)
    return f"{text}\n{command.footer}\n"


def help_of_models(description, commands, footer):
    text = f"{description}\nUsage: gradcube model [OPTIONS] [SUBCOMMAND]\n\nOptions:\n"
    text += _help_line("-h,--help", "Print this help message and exit") + "\nSubcommands:\n"
    return text + "".join(_help_line(c.name, c.description) for c in commands) + f"\n{footer}\n"


class _Parser:
    """Reads words from the left, on the level of the models (`gradcube model`), of a command once that is named, and
    behind a "--" of those above, which expect nothing."""

    def __init__(self, words, commands):
        self.words = list(reversed(words))
        self.commands = {command.name: command for command in commands}
        self.command = None
        self.above = False  # a "--" has ended the command
        self.only_positionals = False
        self.results = {}  # of the options that are given, by name
        self.extras = {"models": [], "command": []}  # what is not expected
        self.wants_help = False

    def options(self):
        return {} if self.command is None or self.above else {option.name: option for option in self.command.options}

    def positional(self):
        """What is not given yet."""
        waiting = [o for o in self.options().values() if o.required and o.name not in self.results]
        return waiting[0] if waiting else None

    def read(self):
        while self.words:
            word = self.words.pop()
            if self.only_positionals or not self._read_special(word):
                self._read_plain(word)

    def _read_special(self, word):
        """Whether the word is a flag, a command's name or "--"."""
        if word == "--":
            self.only_positionals = self.positional() is not None or self.above
            self.above = self.above or not self.only_positionals
        elif self.command is None and not self.above and word in self.commands:
            self.command = self.commands[word]
        elif len(word) > 2 and word.startswith("--") and word[2] not in "-! \n":
            self._read_flag(word, *word.partition("=")[::2])
        elif len(word) > 1 and word[0] == "-" and word[1] not in "-! \n0123456789":
            if word[:2] == "-h":
                self.wants_help = True
                if len(word) > 2:
                    self.words.append("-" + word[2:])
            else:
                self._refuse(word)
        else:
            return False
        return True

    def _read_flag(self, word, name, value):
        option = self.options().get(name)
        if name in _HELP_NAMES:
            self.wants_help = True
        elif option is None:
            self._refuse(word)
        elif not option.kind:
            self.results.setdefault(name, []).append(value if "=" in word else "true")
        else:
            if "=" in word:
                self.words.append(value)
            self._read_value(option)

    def _read_value(self, option):
        values = self.results.setdefault(option.name, [])
        while True:
            if not self.words:
                self.fail(f"{option.name}: a value is missing")
            value = self.words.pop()
            if option.delimiter and option.delimiter in value:
                parts = [part for part in value.split(option.delimiter) if part]
            else:
                parts = [value]
            values.extend(parts)
            if parts:
                return

    def _read_plain(self, word):
        option = self.positional()
        if option is not None:
            self.results[option.name] = [word]
        else:
            self._refuse(word)

    def _refuse(self, word):
        self.extras["models" if self.command is None or self.above else "command"].append(word)

    def fail(self, text):
        raise UsageError(f"{printable(text, _LONGEST_PARSE_ERROR)}; {self.help_text()} tells what is accepted")

    def help_text(self):
        return f"`gradcube model {self.command.name} --help`" if self.command else "`gradcube model --help`"

    def values(self):
        values = types.SimpleNamespace()
        for option in self.command.options if self.command else ():
            results = self.results.get(option.name, [])
            for value in results:
                wrong = option.check(value) if option.kind else ""
                if wrong:
                    self.fail(f"{option.name}: {wrong}")
            if not option.kind:
                value = _FLAG_VALUES.get(results[-1].lower()) if results else False
                if value is None:
                    self.fail(f"{option.name}: it does not take the value {quoted(results[-1])}")
            elif option.is_list:
                value = results or option.default
            else:
                if len(results) > 1:
                    self.fail(f"{option.name} is given more than once")
                value = results[0] if results else option.default
            setattr(values, option.key, value)
        return values

    def check_requirements(self):
        for option in self.command.options if self.command else ():
            given = bool(self.results.get(option.name))
            if option.required and not given:
                self.fail(f"{option.name} is required")
            for other in option.needs if given else ():
                if not self.results.get(other):
                    self.fail(f"{option.name} requires {other}")
            for other in option.excludes if given else ():
                if self.results.get(other):
                    self.fail(f"{option.name} excludes {other}")

    def check_extras(self, words):
        if not words:
            return
        self.check_command(words)
        unknown = next((word for word in words if word.startswith("-")), None)
        if unknown is None:
            raise UsageError(f"{quoted(words[0])} is not expected; {self.help_text()} tells what is accepted")
        name = unknown.partition("=")[0]
        known = ["--help", *(o.name for o in self.command.options if not o.required)] if self.command else ["--help"]
        if name in known:
            raise UsageError(
                f"{quoted(name)} stands before its command: expected it behind, as in `gradcube model "
                f"{self.command.name} {name}`"
            )
        raise UsageError(
            f"there is no flag {quoted(name)}{did_you_mean(name, known)}; {self.help_text()} tells what is accepted"
        )

    def check_command(self, words):
        """Refuses a word that is no command."""
        word = next((word for word in words if not word.startswith("-")), None)
        if word is None or self.command is not None:
            return
        raise UsageError(
            f"there is no command {quoted('model ' + word)}{did_you_mean(word, self.commands)}; the commands are "
            f"{', '.join(self.commands)}: `gradcube model --help` tells more"
        )


def parse(words, commands):
    """(command, values): both None where no command is named, and no values where its help is asked for.

    Raises a UsageError.
    """
    for word in words:
        if word.startswith("--") and word.endswith("="):
            raise UsageError(f"{printable(word[:-1])}: the value is empty")
    parser = _Parser(words, commands)
    parser.read()
    values = parser.values()
    extras = parser.extras["models"] + parser.extras["command"]
    if parser.wants_help:
        parser.check_command(extras)
        return parser.command, None
    parser.check_requirements()
    parser.check_extras(extras)
    if parser.command is None:
        raise UsageError(
            f"the model is missing; the models are {', '.join(parser.commands)}: `gradcube model --help` tells more"
        )
    return parser.command, values


def require_known(where, what, name, known, or_else=""):
    """Raises a UsageError unless the name is one of them."""
    if name not in known:
        raise UsageError(
            f"{where} {quoted(name)}: there is no such {what}{did_you_mean(name, known)}; expected "
            f"{', '.join(known)}{or_else}"
        )
