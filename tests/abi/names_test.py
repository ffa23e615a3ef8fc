"""Compares the names of the Python package with those of the last release (docs/versions.md).

    usage: names_test.py RELEASED [--describe]

RELEASED has one line for each name of `__all__`, each public method and each parameter, by keyword alone or not. What
is new passes; what is gone or takes other parameters first does not. --describe writes RELEASED anew.
"""

import inspect
import pathlib
import sys

import gradcube


def parameters(name, thing):
    """`name(parameter` and so on, a line each: one that has no default, one that came by place or not."""
    for place, parameter in enumerate(inspect.signature(thing).parameters.values()):
        by_keyword = parameter.kind is parameter.KEYWORD_ONLY
        needed = parameter.default is parameter.empty
        yield f"{name}({parameter.name}, {'by keyword' if by_keyword else place}, {'needed' if needed else 'optional'})"


def names():
    for name in gradcube.__all__:
        thing = getattr(gradcube, name)
        yield name
        if not inspect.isclass(thing):
            yield from parameters(name, thing) if callable(thing) else ()
            continue
        yield from (f"{name} is a {base.__name__}" for base in thing.__mro__[1:-1])
        for method, function in inspect.getmembers(thing):
            if method.startswith("_") and method != "__init__" or issubclass(thing, BaseException):
                continue
            yield f"{name}.{method}"
            if inspect.isfunction(function):
                yield from parameters(f"{name}.{method}", function)


def main():
    released = pathlib.Path(sys.argv[1])
    now = list(names())
    if sys.argv[2:] == ["--describe"]:
        released.write_text("\n".join(sorted(now)) + "\n")
        return
    known = released.read_text().splitlines()
    gone = [line for line in known if line not in now]
    asked = [line for line in now if line.endswith("needed)") and line.split("(")[0] in known and line not in known]
    if gone or asked:
        print("gone:", *gone, "needed and new:", *asked, sep="\n  ")
        sys.exit(
            "the package's names are not those of the last release: docs/versions.md says what may change. For what "
            "may, write them anew: ninja -C build-test python_names_description"
        )


if __name__ == "__main__":
    main()
