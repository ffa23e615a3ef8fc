"""scripts/tidy.py finds each kind of place that breaks a rule, and nothing else; and the picture of the README is the one
that scripts/draw_allreduce.py draws.

Usage: tidy_test.py
"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
ENTRANCE = "# All\n\n[one](one.md#a-heading-with-code) [two](../README.md)\n"
ONE = "# One\n\n## A heading, with `code`\n\nPlain words about code.cc and folder/code.cc.\n"
CODE = "// What it does (docs/one.md).\nnamespace a {\n\nint f(int n) {\n  return n;\n}\n\n}  // namespace a\n"
LONG = "namespace a {\n\nclass B {\n  int f(int n) {\n" + "    ++n;\n" * 60 + "    return n;\n  }\n};\n\n}  // namespace a\n"


class Tidy(unittest.TestCase):
    def findings(self, **changed):
        """What it says of a tidy tree, in which these files are others: by path, or without dots and slashes."""
        files = {"README.md": "# It\n", "docs/README.md": ENTRANCE, "docs/one.md": ONE, "folder/code.cc": CODE}
        for name, text in changed.items():
            files[name if "/" in name else name.replace("__", "/").replace("_", ".")] = text
        with tempfile.TemporaryDirectory() as directory:
            for name, text in files.items():
                path = pathlib.Path(directory, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            done = subprocess.run(
                [sys.executable, ROOT / "scripts/tidy.py", directory], capture_output=True, text=True, timeout=60
            )
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.returncode, 1 if done.stdout else 0)
        return done.stdout.splitlines()

    def test_says_nothing_of_a_tidy_tree(self):
        self.assertEqual(self.findings(), [])

    def test_finds_what_is_too_long_or_too_wide(self):
        self.assertEqual(self.findings(folder__code_cc=LONG), ["folder/code.cc:4: f() has 63 lines: expected at most 60"])
        self.assertEqual(
            self.findings(folder__code_cc="\n" * 401), ["folder/code.cc:401: has 401 lines: expected at most 400"]
        )
        self.assertEqual(self.findings(README_md="\n" * 151), ["README.md:151: has 151 lines: expected at most 150"])
        self.assertEqual(self.findings(folder__code_cc="//" + "x" * 99), ["folder/code.cc:1: wider than 100"])
        python = "def f():\n" + "    pass\n" * 60
        self.assertEqual(self.findings(a_py=python), ["a.py:1: f() has 61 lines: expected at most 60"])

    def test_finds_a_folder_of_too_many_files(self):
        many = {f"folder__x{number}_txt": "" for number in range(40)}
        self.assertEqual(self.findings(**many), ["folder:1: has 41 files: expected at most 40"])

    def test_finds_names_of_files_that_do_not_exist(self):
        code = CODE.replace("docs/one.md", "docs/two.md, other/code.cc")
        said = ["folder/code.cc:1: there is no docs/two.md", "folder/code.cc:1: there is no other/code.cc"]
        self.assertEqual(self.findings(folder__code_cc=code), said)

    def test_finds_planted_bugs_that_cannot_be_planted(self):
        bug = '[[bug]]\nsays = "a bug"\nfile = "folder/code.cc"\nfrom = "{}"\n'
        line = CODE.splitlines()[-1]
        self.assertEqual(self.findings(**{"tests/planted_bugs.toml": bug.format(line)}), [])
        said = ['tests/planted_bugs.toml:1: "a bug": its line stands 0 times in folder/code.cc']
        self.assertEqual(self.findings(**{"tests/planted_bugs.toml": bug.format("other();")}), said)

    def test_finds_links_that_lead_nowhere_and_pages_to_which_none_leads(self):
        changed = ENTRANCE.replace("one.md#a", "one.md#the").replace("../README.md", "../READ.me")
        self.assertEqual(
            self.findings(docs__README_md=changed),
            [
                "docs/README.md:3: docs/one.md has no heading #the-heading-with-code",
                "docs/README.md:3: there is no READ.me",
                "README.md:1: no link leads here from docs/README.md",
            ],
        )

    def test_finds_words_that_are_not_plain_and_paths_of_one_machine(self):
        said = self.findings(docs__one_md=ONE + "Those that wait. `whoever`\n", folder__code_cc=CODE + "// In /home/me.\n")
        self.assertEqual(
            said,
            [
                'docs/one.md:6: "Those that": write the noun: segments that',
                'folder/code.cc:9: "/home/": write no path of one machine',
            ],
        )

    def test_lets_comments_have_no_more_of_these_words_than_today(self):
        said = self.findings(folder__code_cc=CODE + "// Whoever asks.\n" * 61)
        self.assertEqual(len(said), 1)
        self.assertIn("61 times, at most 60", said[0])


class Picture(unittest.TestCase):
    def test_of_the_readme_is_what_the_script_draws(self):
        drawn = subprocess.run([sys.executable, ROOT / "scripts/draw_allreduce.py"], capture_output=True, text=True, timeout=60)
        self.assertEqual(drawn.stdout, (ROOT / "docs/allreduce.svg").read_text(), "run it again: > docs/allreduce.svg")


if __name__ == "__main__":
    unittest.main()
