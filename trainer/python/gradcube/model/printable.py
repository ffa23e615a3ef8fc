"""Foreign text in messages: what a user typed, what a file said.

It is shortened, and what could move a terminal's cursor or end a line is escaped, so a message stays one line that can
be read. Texts may hold bytes that are not UTF-8, as surrogates (PEP 383).
"""

import re

_SHOWN_BYTES = 60  # enough to recognise a value by
_LONGEST_WORD = 64  # longer ones are no typing mistakes
# A character that may be shown: not one of the controls, which are also U+0080 to U+009F.
_SHOWN = re.compile(
    rb"[\x20-\x7e]|\xc2[\xa0-\xbf]|[\xc3-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_NAMED = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}


def encoded(text):
    return text.encode("utf-8", "surrogateescape")


def printable(text, most=_SHOWN_BYTES):
    """Control characters and bytes that are not UTF-8 as \\n, \\t or \\x1b; beyond `most` bytes it is cut."""
    data = encoded(text)
    shown, at = [], 0
    while at < min(len(data), most):
        character = _SHOWN.match(data, at)
        if character:
            shown.append(character[0].decode("utf-8", "surrogateescape"))
            at = character.end()
        else:
            shown.append(_NAMED.get(data[at], f"\\x{data[at]:02x}"))
            at += 1
    return "".join(shown) + (f"... ({len(data)} bytes)" if len(data) > most else "")


def quoted(text):
    return f'"{printable(text)}"'


def _distance(word, other):
    """How many letters to insert, remove or replace (Levenshtein)."""
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word):
        diagonal, row[0] = row[0], i + 1
        for j, another in enumerate(other):
            replaced = diagonal + (letter != another)
            diagonal = row[j + 1]
            row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
    return row[-1]


def did_you_mean(word, known):
    """ " (did you mean bcube?)"; empty where no name is near: a third of the word's letters may be wrong."""
    letters = encoded(word)
    best, least = None, len(letters)
    if least <= _LONGEST_WORD:
        for name in known:
            wrong = _distance(letters, name.encode())
            if wrong < least:
                best, least = name, wrong
    return f" (did you mean {best}?)" if best is not None and 3 * least <= len(letters) else ""
