"""Checks rules of the house that no compiler knows (CONTRIBUTING.md, "Style"), in all files that git knows.

Prints each place that breaks one as `file:line: what`, and exits with 1 if there is one:
  files and functions that are too long, lines that are too wide, folders with too many files,
  names of files in comments and documents that do not exist, links of documents that lead nowhere,
  documents that cannot be reached from docs/README.md, words that are not plain English, and planted
  bugs whose line has changed.
What breaks a rule today is in the tables of exceptions below, with the reason. They only get shorter.
"""

import argparse
import ast
import collections
import pathlib
import re
import subprocess
import sys
import tomllib

CXX = (".h", ".hpp", ".c", ".cc")
SOURCES = (*CXX, ".py", ".sh")
MOST_LINES = 400
MOST_FUNCTION_LINES = 60
MOST_FILES = 40  # of one folder
WIDTHS = {".md": 120, **dict.fromkeys(CXX, 100)}
MOST_LINES_OF = {"README.md": 150}
ENTRANCE = "docs/README.md"

# Files of users, of DPDK and of PyTorch.
OTHER_FILES = {"train.py", "sum.py", "dpdk-telemetry.py", "rte_vect.h", "distributed_test.py", "App.hpp"}

# Words that are not plain English, what to write, and how often the comments of sources may still have them.
BANNED = {
    r"those that": ("the noun: segments that", 140),
    r"\b(is|are) none\b": ("there is no, and the noun", 110),
    r"\bwhoever\b": ("a noun: trainer, server, user", 60),
    r"\b(seats?|letters?|guests?|residents?)\b": ("the field's word: rank, message, a hub of others", 15),
}
# Neither in documents nor in comments.
BANNED_EVERYWHERE = {
    r"\b(TODO|FIXME|XXX)\b": "what falls short",
    r"(?<![\w./])/(home|work|Users)/": "no path of one machine",
}


class Tree:
    """The files that git knows, or in an unpacked archive all outside build directories."""

    def __init__(self, root):
        self.root = root
        command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
        known = subprocess.run(command, capture_output=True, text=True).stdout if (root / ".git").exists() else ""
        every = known.splitlines() or [
            path.relative_to(root).as_posix()
            for path in root.rglob("*")
            if not re.match(r"build|\.", path.relative_to(root).parts[0])
        ]
        self.paths = sorted(name for name in every if (root / name).is_file())
        self.names = {name.split("/")[-1] for name in self.paths}
        self.texts = {}

    def of(self, *suffixes):
        return [name for name in self.paths if name.endswith(suffixes)]

    def lines(self, name):
        if name not in self.texts:
            self.texts[name] = (self.root / name).read_text(encoding="utf-8").splitlines()
        return self.texts[name]


def functions_of_cxx(lines):
    """(name, first line, last line) of each function that clang-format has laid out: it ends at its own indentation."""
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if not line.endswith("{") or line.lstrip().startswith(("//", "#")):
            continue
        first = number - 1
        while first > 0 and not re.search(r"([;{}:>]|^)$|^ *(//|#|template)", lines[first - 1]):
            first -= 1
        head = " ".join(lines[first:number])
        if re.match(r' *(inline )?(namespace|class|struct|union|enum|extern "C")\b', head):
            continue
        end = re.match(r" *", lines[first])[0] + "}"
        last = next((n for n in range(number, len(lines)) if lines[n].startswith(end)), number)
        name = re.search(r"([\w:~]+|operator\W+)\(", head)
        if name:
            yield name[1], first + 1, last + 1
        number = last + 1


def functions_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, node.end_lineno


def sizes(tree):
    for name in tree.of(*SOURCES, ".md"):
        if name.startswith("tests/"):
            continue
        lines = tree.lines(name)
        most = MOST_LINES_OF.get(name, MOST_LINES)
        if len(lines) > most and (name.endswith(SOURCES) or name in MOST_LINES_OF):
            yield name, most + 1, f"has {len(lines)} lines: expected at most {most}"
        functions = ()
        if name.endswith(CXX):
            functions = functions_of_cxx(lines)
        elif name.endswith(".py"):
            functions = functions_of_python("\n".join(lines))
        for function, first, last in functions:
            if last - first + 1 > MOST_FUNCTION_LINES:
                yield name, first, f"{function}() has {last - first + 1} lines: expected at most {MOST_FUNCTION_LINES}"
    folders = collections.Counter(name.rpartition("/")[0] for name in tree.paths)
    for folder, files in folders.items():
        if files > MOST_FILES and not folder.startswith("tests"):
            yield folder, 1, f"has {files} files: expected at most {MOST_FILES}"


def widths(tree):
    """clang-format leaves comments as they are, and knows no documents. Tables may be wide."""
    for name in tree.of(*WIDTHS):
        most = WIDTHS[pathlib.Path(name).suffix]
        for number, line in enumerate(tree.lines(name), 1):
            if len(line) > most and not line.startswith("|"):
                yield name, number, f"wider than {most}"


def prose(tree):
    """(file, line number, text) of documents and of comments."""
    for name in tree.of(".md"):
        for number, line in enumerate(tree.lines(name), 1):
            yield name, number, line
    for name in tree.of(*CXX):
        for number, line in enumerate(tree.lines(name), 1):
            comment = re.search(r"(?<![:\"])//(?!/).*|^ ?/?\*.*|/\*.*", line)
            if comment:
                yield name, number, comment[0]
    for name in tree.of(".py", ".sh", "meson.build"):
        for number, line in enumerate(tree.lines(name), 1):
            comment = re.search(r"(^|\s)#[ !].*", line)
            if comment:
                yield name, number, comment[0]


def file_names(tree):
    """Names of files in prose: a name, or a path, or its end."""
    for name, number, text in prose(tree):
        for match in re.finditer(r"(?<![\w./<*{$~-])[\w./-]*\w\.(?:h|hpp|cc|py|sh|md)\b(?![\w({*-])", text):
            said = match[0].lstrip("./")
            if re.search(r"\bNAME|^/", match[0]) or said.split("/")[-1] in OTHER_FILES:
                continue
            if said.split("/")[-1] not in tree.names or ("/" in said and not any(
                path == said or path.endswith("/" + said) for path in tree.paths)):
                yield name, number, f"there is no {said}"


def words(tree):
    left = collections.Counter()
    for name, number, text in prose(tree):
        for pattern, instead in BANNED_EVERYWHERE.items():
            match = re.search(pattern, text)
            if match:
                yield name, number, f'"{match[0]}": write {instead}'
        for pattern, (instead, _) in BANNED.items():
            for match in re.finditer(pattern, re.sub(r"`[^`]*`", "", text), re.IGNORECASE):
                if name.endswith(".md"):
                    yield name, number, f'"{match[0]}": write {instead}'
                left[pattern] += not name.endswith(".md")
    for pattern, (instead, most) in BANNED.items():
        if left[pattern] > most:
            yield ".", 0, f'comments have "{pattern}" {left[pattern]} times, at most {most}: write {instead}'


def anchors(lines):
    """What GitHub calls the headings of a document."""
    seen = collections.Counter()
    fenced = False
    for line in lines:
        fenced ^= line.startswith("```")
        heading = re.match(r"#+ (.*)", line)
        if not fenced and heading:
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            yield anchor + (f"-{seen[anchor]}" if seen[anchor] else "")
            seen[anchor] += 1


def links_of(tree, name):
    """(line number, file, anchor) of each link within the tree; the file is "" where it leads out of it."""
    fenced = False
    for number, line in enumerate(tree.lines(name), 1):
        fenced ^= line.startswith("```")
        targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", re.sub(r"`[^`]*`", "", line))
        for target in ("".join(pair) for pair in targets if not fenced):
            if not re.match(r"[a-z]+:", target):
                path, _, anchor = target.partition("#")
                folder = (tree.root / name).parent
                place = (folder / path).resolve() if path else tree.root / name
                yield number, place, anchor


def links(tree):
    pages = set(tree.of(".md"))
    leads_to = collections.defaultdict(set)
    for name in pages:
        for number, place, anchor in links_of(tree, name):
            inside = place.is_relative_to(tree.root)
            target = place.relative_to(tree.root).as_posix() if inside else str(place)
            leads_to[name].add(target)
            if not inside or not place.exists():
                yield name, number, f"there is no {target}"
            elif anchor and target in pages and anchor not in anchors(tree.lines(target)):
                yield name, number, f"{target} has no heading #{anchor}"
    reached, ahead = set(), {ENTRANCE}
    while ahead:
        page = ahead.pop()
        reached.add(page)
        ahead |= (leads_to[page] & pages) - reached
    for name in sorted(pages - reached):
        yield name, 1, f"no link leads here from {ENTRANCE}"


def planted_bugs(tree):
    """Each is a change of a line that stands in its file, once."""
    for name in tree.of("tests/planted_bugs.toml"):
        for bug in tomllib.loads("\n".join(tree.lines(name)))["bug"]:
            lines = "\n".join(tree.lines(bug["file"])) if bug["file"] in tree.paths else ""
            if lines.count(bug["from"]) != 1:
                yield name, 1, f'"{bug["says"]}": its line stands {lines.count(bug["from"])} times in {bug["file"]}'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", default=pathlib.Path(__file__).parent.parent, type=pathlib.Path, help="the tree")
    tree = Tree(parser.parse_args().root.resolve())
    if not tree.paths:
        parser.error("there are no files")
    found = [place for rule in (sizes, widths, file_names, words, links, planted_bugs) for place in rule(tree)]
    for name, number, what in found:
        print(f"{name}:{number}: {what}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
