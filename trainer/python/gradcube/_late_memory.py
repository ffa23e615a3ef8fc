"""Memory of requests whose time was up, or whose waits were interrupted, and for whose ends nobody has waited since.

A collective goes on then, and what it brings is written to its array at any time: what a trainer has written there
since would be lost, and the result of before be submitted in its place. So nothing is submitted with such memory, in
whichever session of this process. It is kept, too: no other array comes to lie there.
"""

import weakref

from ._errors import InvalidError
from ._held_memory import let_go_of

_sessions = weakref.WeakValueDictionary()  # by their numbers in Python


def check_late(memory):
    """That none of it is that of a request which a timeout or Ctrl-C has left."""
    for reference in _sessions.valuerefs():
        session = reference()
        handle = None if session is None else session._handle
        if handle is not None and handle.is_own():  # a forked child has a copy of its parent's memory
            session._check_late(memory)


def register(session):
    """From now on other threads ask it, too."""
    _sessions[id(session)] = session


class LateMemory:
    def __init__(self):
        self._requests = {}  # by their numbers: the memory of each, and what owns it
        self._ended = set()  # of these, what nobody can wait for any more

    def add(self, number, memory, owned):
        """``memory``: for each piece the address, the bytes, and whether they are written."""
        if memory:  # a barrier has none
            self._requests[number] = (memory, owned)

    def end(self, number):
        """It has ended, or writes nothing any more, and nobody was told. What it has only read is as it was."""
        memory, _ = self._requests.get(number, ((), None))
        if any(writes for _, _, writes in memory):
            self._ended.add(number)
        else:
            self.remove(number)

    def knows(self, number):
        return number in self._requests

    def remove(self, number):
        """Its end was reported."""
        self._requests.pop(number, None)
        self._ended.discard(number)

    def let_go(self):
        """The session has left."""
        for _, owned in list(self._requests.values()):
            let_go_of(owned)

    def find(self, memory):
        """The request that has some of it; None: there is none, or both only read it."""
        for number, (late, _) in list(self._requests.items()):
            if any(_overlap(one, other) for one in memory for other in late):
                return number
        return None

    def refuse(self, memory):
        """What has some that is a request's; once where that has ended: then the caller knows."""
        number = self.find(memory)
        if number is None:
            return
        request = f"this memory is that of request {number}, whose time was up or whose wait was interrupted"
        if number in self._ended:
            self.remove(number)
            raise InvalidError(f"{request}, and which may have written to it since: write there anew what is to be sent")
        raise InvalidError(
            f"{request}, and which may still read or write it: wait for that request first, which the exception has as "
            ".request"
        )


def _overlap(one, other):
    (begin, length, writes), (other_begin, other_length, other_writes) = one, other
    return (writes or other_writes) and begin < other_begin + other_length and other_begin < begin + length
