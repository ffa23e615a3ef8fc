"""Compares the interface of libgradcube with that of the last release (docs/versions.md).

    usage: abi_test.py HEADERS MAP LIBRARY RELEASED [--describe]

HEADERS is the folder of gradcube/gradcube.h, MAP the linker's version script, and RELEASED what `abidw` said of the last
release. --describe writes RELEASED anew. The library itself is built without debug information and has types of its own
besides; so what the headers declare is compiled into a library of empty functions, and that one is described.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

PUBLIC = ("gradcube/gradcube.h", "gradcube/gradcube_hub.h")
COMPILER = ("gcc", "-g", "-fno-eliminate-unused-debug-types", "-shared", "-fPIC", "-Wl,-soname,libgradcube.so.1")
DESCRIBE = ("abidw", "--load-all-types", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs")
COMPARE = ("abidiff", "--no-added-syms", "--non-reachable-types")


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, capture_output=True, **options).stdout


def declared_alone(headers, linker_map, folder):
    """A library of what the headers declare: each function has its type, and no content."""
    includes = "".join(f"#include <{name}>\n" for name in PUBLIC)
    options = ("-I", str(headers), "-DGRADCUBE_API=function__")
    text = run("gcc", "-E", "-P", *options, "-xc", "-", input=includes)
    text, count = re.subn(r"function__([^;]*);", r"\1 { __builtin_trap(); }", text)
    if count == 0:
        sys.exit(f"no function is declared in {headers}: expected GRADCUBE_API before each")
    source, library = folder / "declared.c", folder / "libgradcube.so.1"
    source.write_text(text)
    run(*COMPILER, f"-Wl,--version-script={linker_map}", "-o", str(library), str(source))
    return library


def symbols(library):
    """With their versions."""
    listed = run("nm", "-D", "--defined-only", str(library)).splitlines()
    return {line.split()[-1] for line in listed if " T " in line}


def main():
    headers, linker_map, library, released = map(pathlib.Path, sys.argv[1:5])
    with tempfile.TemporaryDirectory() as scratch:
        declared = declared_alone(headers, linker_map, pathlib.Path(scratch))
        described = run(*DESCRIBE, str(declared))
        if sys.argv[5:] == ["--describe"]:
            released.write_text(described)
            return
        if differing := symbols(declared) ^ symbols(library):
            sys.exit(f"declared and exported differ in {', '.join(sorted(differing))}: mend {linker_map}")
        now = pathlib.Path(scratch) / "now.abi"
        now.write_text(described)
        compared = subprocess.run([*COMPARE, str(released), str(now)], check=False, capture_output=True, text=True)
        if compared.returncode != 0:
            print(compared.stdout, compared.stderr, sep="")
            sys.exit(
                "the interface is not that of the last release: docs/versions.md says what may change. For what may, "
                "write its description anew: ninja -C build-test abi_description"
            )


if __name__ == "__main__":
    main()
