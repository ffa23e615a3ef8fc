"""Reads our sources with clang-tidy, as many at a time as there are cores. What it found nothing in before, in this
clone or another, it does not read again: that it has read lies in ~/.cache/gradcube/clang-tidy by a hash of all that
it sees.

    usage: scripts/clang_tidy.py BUILD_DIRECTORY [--changed] FOLDER...

BUILD_DIRECTORY has a compile_commands.json. With --changed it reads what has come to the main line in the three hours
up to its last commit, whenever it was written: of a header its own source, or one that includes it. Where git does not
know it reads all.
"""

import hashlib
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gradcube" / "clang-tidy"
VERSION = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
ELSEWHERE = (  # what only other trees compile, or other processors
    "trainer/torch/",
    "dataplane/host/thread_sanitizer.cc",
    "aggregation/kernels_neon.cc",
)
SETTINGS = VERSION + (Path(__file__).resolve().parent.parent / ".clang-tidy").read_bytes()


def text_of(command):
    """The source with all that it includes, comments and macros too: they may silence a check.

    None if clang++ fails.
    """
    arguments = shlex.split(command["command"])
    while not arguments[0].startswith("-"):  # ccache and the compiler
        arguments.pop(0)
    kept = []
    for argument in (words := iter(arguments)):
        if argument in ("-o", "-MF", "-MQ"):
            next(words)
        elif argument not in ("-c", "-MD"):
            kept.append(argument)
    preprocessed = subprocess.run(
        ["clang++", "-w", "-E", "-P", "-CC", "-dD", *kept], cwd=command["directory"], capture_output=True, check=False
    )
    if preprocessed.returncode != 0:
        return None
    return b"\0".join([preprocessed.stdout, " ".join(kept).encode(), SETTINGS])


def complaints(build, source, command):
    """What clang-tidy has against it: empty if it is as it should be."""
    text = text_of(command)
    mark = CACHE / hashlib.sha256(text or b"").hexdigest()
    if text is not None and mark.exists():
        return ""
    tidy = ["clang-tidy", "-quiet", "-p", build, source]
    read = subprocess.run(tidy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if read.returncode == 0:
        if text is not None:
            mark.touch()
        return ""
    return re.sub(r"(?m)^(.*warnings.* generated|Suppressed|Use -header).*\n", "", read.stdout)


def git(*arguments):
    """What git says; nothing where it fails, as in an unpacked archive."""
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=False).stdout.split()


def sources_in(folders):
    found = [path for folder in folders for path in Path(folder).rglob("*.cc")]
    return sorted(str(path) for path in found if not str(path).startswith(ELSEWHERE))


def changed_sources(folders):
    everything = sources_in(folders)
    committed = git("log", "-1", "--format=%ct")
    base = committed and git("rev-list", "-1", "--first-parent", f"--before={int(committed[0]) - 3 * 3600}", "HEAD")
    if not base:
        return everything
    changed = set(git("diff", "--name-only", "--diff-filter=d", base[0], "--", *folders))
    changed.update(git("ls-files", "--others", "--exclude-standard", "--", *folders))
    sources = changed.intersection(everything)
    for header in (name for name in changed if name.endswith((".h", ".hpp"))):
        own = re.sub(r"\.h(pp)?$", ".cc", header)
        includes = re.compile(rf'#include ["<](.*/)?{re.escape(Path(header).name)}[">]')
        of_it = [own] if own in everything else (one for one in everything if includes.search(Path(one).read_text()))
        sources.update(itertools.islice(of_it, 1))
    return sorted(sources)


def main():
    build, *folders = sys.argv[1:] or [""]
    some = folders[:1] == ["--changed"]
    if not folders[some:]:
        sys.exit(__doc__)
    sources = changed_sources(folders[1:]) if some else sources_in(folders)
    CACHE.mkdir(parents=True, exist_ok=True)
    commands = {}
    for command in json.loads((Path(build) / "compile_commands.json").read_text(encoding="utf-8")):
        commands[os.path.realpath(os.path.join(command["directory"], command["file"]))] = command
    if unknown := [source for source in sources if os.path.realpath(source) not in commands]:
        sys.exit(f"{build} does not compile: {' '.join(unknown)}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda source: complaints(build, source, commands[os.path.realpath(source)]), sources)
        said = [text for text in found if text]
    print("\n".join(said))
    return bool(said)


if __name__ == "__main__":
    sys.exit(main())
