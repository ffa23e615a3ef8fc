"""The tool `gradcube`, which knows the running cluster."""

import os

from .failure import Failure


def path():
    """Of the one that has started this, or of the one that the shell would find."""
    return os.environ.get("GRADCUBE_TOOL", "gradcube")


def replace_with(*words):
    """Goes on as `gradcube WORDS`."""
    try:
        os.execvp(path(), [path(), *words])
    except OSError as error:
        raise Failure(f"cannot start {path()}: {error.strerror}; expected the tool `gradcube` in $PATH") from None
