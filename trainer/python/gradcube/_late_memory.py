"""Memory of requests whose time was up, and for whose ends nobody has waited since.

A collective goes on then, and what it brings is written to its array at any time: what a trainer has written there
since would be lost, and the result of before be submitted in its place. So nothing is submitted with such memory. It
is kept, too: no other array comes to lie there.
"""

from ._errors import InvalidError


class LateMemory:
    def __init__(self):
        self._requests = {}  # by their numbers: the memory of each, and what owns it

    def add(self, number, memory, owned):
        """``memory``: for each piece the address, the bytes, and whether they are written."""
        self._requests[number] = (memory, owned)

    def remove(self, number):
        """Its end was reported."""
        self._requests.pop(number, None)

    def check(self, memory):
        """That none of it is a late request's; both may read it."""
        for number, (late, _) in list(self._requests.items()):
            if any(_overlap(one, other) for one in memory for other in late):
                raise InvalidError(
                    f"this memory is that of request {number}, whose time was up, and which may still write to it: wait "
                    "for that request first, which the TimeoutError has as .request"
                )


def _overlap(one, other):
    (begin, length, writes), (other_begin, other_length, other_writes) = one, other
    return (writes or other_writes) and begin < other_begin + other_length and other_begin < begin + length
