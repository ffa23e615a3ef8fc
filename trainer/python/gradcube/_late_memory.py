"""Memory of requests for whose ends nobody has waited: their time was up, their waits were interrupted, or they were
dropped.

A collective goes on then, and what it brings may be written to its array at any time: what a trainer has written there
since would be lost, and the result of before be submitted in its place. So nothing that such a request may write to is
used by another one of this process, in whichever session; and what it has written, or was to write, is not submitted
before the caller was told once. Memory of requests that can still be waited for is kept, too: no other array comes to
lie there. Of dropped ones it is forgotten when it is given back.
"""

import weakref

from ._arrays import READ, WRITTEN, block_of, root_of
from ._errors import InvalidError

_LEFT = "whose time was up or whose wait was interrupted"
_DROPPED = "which was dropped, or the exception that had it, before its end was told"

_sessions = weakref.WeakValueDictionary()  # by their numbers in Python


def check_late(memory):
    """That no request for which nobody has waited is in the way of one that is to use the memory."""
    for reference in _sessions.valuerefs():
        session = reference()
        handle = None if session is None else session._handle
        if handle is not None and handle.is_own():  # a forked child has a copy of its parent's memory
            session._check_late(memory)


def register(session):
    """From now on other threads ask it, too."""
    _sessions[id(session)] = session


class _Late:
    """A request. Its ``memory`` are pieces as pieces_of() has them; or with weak references in place of the arrays."""

    def __init__(self, memory, owned, why, is_lost=False):
        self.memory = memory
        self.owned = owned
        self.why = why
        self.is_lost = is_lost  # what it would have brought: nothing is written
        self.has_ended = is_lost  # or it writes nothing any more; and nobody can wait for it

    def is_in_the_way_of(self, memory):
        """After its end that is only what reads where it has written, or was to."""
        return any(self.has_in_the_way_of(memory, piece) for piece in self.memory)

    def leave(self, is_left):
        """Pieces for which `is_left` says so are not its own any more."""
        self.memory = [piece for piece in self.memory if not is_left(piece)]

    def has_in_the_way_of(self, memory, piece):
        its_address, its_length, its_use, array = piece
        for address, length, use, _ in memory:
            if address < its_address + its_length and its_address < address + length:
                if use & READ and its_use & WRITTEN if self.has_ended else (use | its_use) & WRITTEN:
                    return not _is_given_back(array)
        return False

    def refusal(self, number):
        request = f"this memory is that of request {number}, {self.why}"
        if self.has_ended:
            return f"{request}, so it may have the result or not: write there anew what is to be sent"
        request += ", and which may still read or write it"
        if self.why == _DROPPED:
            return f"{request}: use other memory until it has ended, and keep each Request until its end was told"
        return f"{request}: wait for that request first, which the exception has as .request"


class LateMemory:
    """Of a session's requests."""

    def __init__(self):
        # By their numbers. The garbage collector drops requests at any time, so all are looked at in a copy.
        self._requests = {}

    def add(self, number, memory, owned):
        """It may be waited for again. ``memory``: as pieces_of() has it."""
        if memory:  # a barrier has none
            self._take_over(memory)
            self._requests[number] = _Late(memory, owned, _LEFT)

    def drop(self, number, memory, is_forgotten):
        """It cannot be waited for any more, and writes to memory. ``is_forgotten``: from now on to none."""

        def give_back(_, requests=self._requests):
            late = requests.get(number)
            if late is not None and all(_is_given_back(array) for _, _, _, array in late.memory):
                requests.pop(number, None)

        def known(array):
            root, block = root_of(array), block_of(array)
            if block is None and not (is_forgotten or root.flags.owndata):
                return array  # the memory is not NumPy's, and may live longer than the array
            return weakref.ref(root if block is None else block, give_back)

        written = [(*piece, known(array)) for *piece, array in memory if piece[2] & WRITTEN]
        is_lost = is_forgotten and all(block_of(array) is None for _, _, _, array in memory)
        self._take_over(written)
        self._requests[number] = _Late(written, None, _DROPPED, is_lost)

    def _take_over(self, memory):
        """Where a request writes, what others have written before matters no more."""
        for number, late in self._requests.copy().items():
            if late.has_ended and any(_is_overwritten(piece, other) for piece in late.memory for other in memory):
                late.leave(lambda piece: any(_is_overwritten(piece, other) for other in memory))
                self.end(number)

    def has_lost(self, number):
        """It was dropped before its result was written, which it has or will have, as far as is known."""
        late = self._requests.get(number)
        return late is not None and late.is_lost

    def end(self, number, has_failed=False):
        """It has ended, and nobody was told. What it has only read is as it was."""
        late = self._requests.get(number)
        if late is None or (late.is_lost and has_failed) or not any(use & WRITTEN for _, _, use, _ in late.memory):
            self.remove(number)
        else:
            late.has_ended = True

    def remove(self, number):
        """Its end was reported."""
        self._requests.pop(number, None)

    def find(self, memory):
        """What is in the way of a request that is to use this memory: numbers, and what is known of each."""
        return [(number, late) for number, late in self._requests.copy().items() if late.is_in_the_way_of(memory)]

    def refuse(self, memory):
        """Once where all that is in the way has ended: then the caller knows."""
        found = self.find(memory)
        for number, late in found:
            if not late.has_ended:
                raise InvalidError(late.refusal(number))
        for number, late in found:
            late.leave(lambda piece: late.has_in_the_way_of(memory, piece))
            self.end(number)
        for number, late in found:
            raise InvalidError(late.refusal(number))


def _is_overwritten(piece, other):
    (its_address, its_length, _, _), (address, length, use, _) = piece, other
    return use & WRITTEN and address <= its_address and its_address + its_length <= address + length


def _is_given_back(array):
    return isinstance(array, weakref.ref) and array() is None
