"""How a command ends that cannot do what it was asked for: one line on standard error, and an exit code."""


class Failure(Exception):
    """The system refuses something: exit code 1. The text says what failed and what to do."""

    code = 1


class UsageError(Failure):
    """The command line, or a file that it names, is wrong: exit code 2."""

    code = 2
