"""The numbers in the Python package and the daemon's are those of gradcube.h.

Usage: numbers_test.py GRADCUBE_H ELEMENT_H. The package is found through PYTHONPATH.
"""

import pathlib
import re
import sys
import unittest

import gradcube
from gradcube import _arrays, _errors, _session

ELEMENT_TYPES = pathlib.Path(sys.argv.pop(2)).read_text(encoding="utf-8")
HEADER = pathlib.Path(sys.argv.pop(1)).read_text(encoding="utf-8")
CONSTANTS = {name: int(value) for name, value in re.findall(r"GRADCUBE_(\w+) = (-?\d+)", HEADER)}


def names_of(block):
    """The constants of `typedef enum { ... } block;`, lower-case, with their values."""
    body = re.search(r"typedef enum \{([^}]*)\} " + block + ";", HEADER).group(1)
    return {name.lower(): int(value) for name, value in re.findall(r"GRADCUBE_(\w+) = (-?\d+)", body)}


class Numbers(unittest.TestCase):
    def test_of_element_types_are_those_of_the_header(self):
        self.assertEqual(_arrays.DTYPES, names_of("gradcube_dtype"))

    def test_of_element_types_are_those_of_the_daemon(self):
        rows = re.findall(r'\{(\d+), "(\w+)", \d+, (\w+)', ELEMENT_TYPES)
        self.assertEqual({name: int(number) for number, name, _ in rows}, _arrays.DTYPES)
        combined = [name for _, name, operations in rows if operations != "kMoved"]
        self.assertEqual(sorted(combined), sorted(_arrays._COMBINED))

    def test_of_operations_are_those_of_the_header(self):
        self.assertEqual(_arrays.OPS, names_of("gradcube_op"))

    def test_of_kinds_are_those_of_the_header(self):
        self.assertEqual(_session.KINDS, names_of("gradcube_kind"))

    def test_every_error_code_of_the_header_has_one_exported_exception(self):
        codes = [value for value in CONSTANTS.values() if value < 0]
        self.assertGreaterEqual(len(codes), 12)
        self.assertEqual(sorted(_errors._BY_CODE), sorted(codes))
        for kind in _errors._BY_CODE.values():
            self.assertIs(getattr(gradcube, kind.__name__), kind)

    def test_an_overflow_is_the_built_in_kind_of_error_too(self):
        self.assertIsInstance(_errors.error_of(CONSTANTS["EOVERFLOW"], "text"), OverflowError)


if __name__ == "__main__":
    unittest.main(verbosity=2)
