"""Memory of requests whose time was up, or whose waits were interrupted, and for whose ends nobody has waited since; or
that were dropped before anybody had.

A collective goes on then, and what it brings is written to its array at any time: what a trainer has written there
since would be lost, and the result of before be submitted in its place. So nothing is submitted with such memory, in
whichever session of this process. It is kept, too: no other array comes to lie there.
"""

import weakref

import numpy

from ._errors import InvalidError
from ._memory import Block

NOTHING = "nothing"  # in the place of whether memory is written: it is, but with nothing that anybody wants
_LEFT = "whose time was up or whose wait was interrupted"
_DROPPED = "which was dropped before wait() or test() had told its end"

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
        # By their numbers: the memory of each, what owns it, and why nobody knows its end. The garbage collector drops
        # requests at any time: these are looked at in copies.
        self._requests = {}
        self._ended = set()  # of these, what nobody can wait for any more

    def add(self, number, memory, owned):
        """``memory``: for each piece the address, the bytes, and whether they are written."""
        if memory:  # a barrier has none
            self._requests[number] = (memory, owned, _LEFT)

    def has(self, number):
        return number in self._requests

    def drop(self, number, memory, array, is_lost):
        """Its request was dropped, and is known until the memory, ``array``'s, is given back.

        ``is_lost``: nothing is written to it any more. Then it matters only that a program may take it for the result.
        """
        while isinstance(array.base, numpy.ndarray):
            array = array.base
        owner = array if array.base is None else array.base
        if isinstance(owner, (numpy.ndarray, Block)):
            owner = weakref.ref(owner, lambda _: self.remove(number))
        if is_lost and array.base is not None:  # shared with the daemon, or nobody tells when it is given back
            return
        self._requests[number] = (memory, owner, _DROPPED)
        if is_lost:
            self._ended.add(number)

    def end(self, number):
        """It has ended, and nobody was told. What it has only read is as it was."""
        memory, _, _ = self._requests.get(number, ((), None, None))
        if any(writes for _, _, writes in memory):
            self._ended.add(number)
        else:
            self.remove(number)

    def remove(self, number):
        """Its end was reported."""
        self._requests.pop(number, None)
        self._ended.discard(number)

    def find(self, memory):
        """The request that has some of it; None: there is none, or both only read it."""
        for number, (late, _, _) in self._requests.copy().items():
            if any(_overlap(one, other) for one in memory for other in late):
                return number
        return None

    def refuse(self, memory):
        """What has some that is a request's; once where that has ended: then the caller knows."""
        number = self.find(memory)
        _, _, why = self._requests.get(number, (None, None, None))
        if why is None:
            return
        request = f"this memory is that of request {number}, {why}"
        if number in self._ended:
            while number in self._ended:  # once for all of them
                self.remove(number)
                number = self.find(memory)
            has = "whose result may be lost" if why == _DROPPED else "which has written to it since"
            raise InvalidError(f"{request}, and {has}: write there anew what is to be sent")
        known = "" if why == _DROPPED else ", which the exception has as .request"
        raise InvalidError(f"{request}, and which may still read or write it: wait for that request first{known}")


def _overlap(one, other):
    (begin, length, writes), (other_begin, other_length, other_writes) = one, other
    return (writes or other_writes) and begin < other_begin + other_length and other_begin < begin + length
