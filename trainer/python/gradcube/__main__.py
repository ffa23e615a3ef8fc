"""python3 -m gradcube torch build: builds the backend for this Python's PyTorch now, and not when it is first imported.

It is Python's, and no command of the tool `gradcube`, because an extension is for one Python and its PyTorch: the one
that runs this.
"""

import argparse
import sys


def main():
    parser = argparse.ArgumentParser(prog="python3 -m gradcube")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    backend = commands.add_parser("torch", help="the backend for PyTorch")
    actions = backend.add_subparsers(required=True, metavar="COMMAND")
    build = actions.add_parser("build", help="builds it for the PyTorch of this Python, once")
    build.add_argument("--again", action="store_true", help="also where it was built before")
    arguments = parser.parse_args()
    try:
        from . import _torch_extension

        found = None if arguments.again else _torch_extension.find(_torch_extension.identity())
        if found is None:
            from ._torch_builder import build

            found = build(arguments.again)
    except ImportError as error:
        sys.exit(f"gradcube: {error}")
    print(found)


if __name__ == "__main__":
    main()
