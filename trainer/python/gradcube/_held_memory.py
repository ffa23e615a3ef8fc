"""Memory of calls, which stays where it is until they have ended.

What gets another size may come to lie elsewhere, and what is closed is gone: a call would write into memory that is
others' by then. So each call does this, in this order: it holds its arrays, looks at their sizes and addresses, asks
whether they are late memory (_late_memory.py), and is made.

ctypes.resize(), assignments to an array's `data`, and a resize of the array under torch.from_numpy(array).numpy() are
not kept from moving it (docs/trainers.md).
"""

import weakref

import numpy

from ._errors import InvalidError


# From an array to the object whose memory it is; other programs' objects may lead in a circle.
_MOST_OWNERS = 100


class HeldMemory:
    """Of the arrays of a call. Lets go where its `with` ends, unless it was passed on to a Request."""

    def __init__(self, *arrays):
        """Anything else than a NumPy array is left to who checks them, and refuses it."""
        self.pieces = []  # for each array that was taken the address, the bytes, and whether they are written
        self._holds = []
        for array in arrays:
            if isinstance(array, numpy.ndarray):
                self.hold(array)

    def hold(self, array):
        """From now on its memory stays where it is, as long as it is.

        It may be that of another object, to which the array leads from base to base. On the way there each object is
        held as its kind can be:

        - A NumPy array gets a weak reference. NumPy resizes none that has one, not even with refcheck=False.
        - What has a buffer, such as a bytearray, or the mmap of SharedMemory, gets a memoryview. It raises BufferError
          where it is to be resized or closed while that is there.
        - Others, such as what as_strided() puts between two arrays, and a Block of alloc(), only live on. So does a
          tensor, which does not lead to the NumPy array of from_numpy().
        """
        self._holds.append(array)
        owner = array
        for _ in range(_MOST_OWNERS):
            if owner is None:
                break
            if isinstance(owner, numpy.ndarray):
                self._holds.append(weakref.ref(owner))
                owner = owner.base
                continue
            view = _view_of(owner)
            if view is None:
                owner = getattr(owner, "base", None)
            else:
                self._holds.append(view)
                owner = view.obj if view.obj is not owner else None

    def take(self, array, is_written):
        """The address of an array that is held, and that the call uses."""
        address = array.ctypes.data
        self.pieces.append((address, array.nbytes, is_written))
        return address

    def pass_on(self):
        """What is held, for longer than the `with`."""
        held = HeldMemory()
        held.pieces, held._holds, self._holds = self.pieces, self._holds, []
        return held

    def let_go(self):
        """At once, even where a traceback still has this object."""
        self._holds = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.let_go()


def let_go_of(owned):
    """Of what a call has owned, the memory: nothing is written there any more."""
    for each in owned:
        if isinstance(each, HeldMemory):
            each.let_go()


def _view_of(owner):
    """A memoryview of it; None: it has no buffer."""
    try:
        return memoryview(owner)
    except (TypeError, BufferError):
        return None
    except ValueError as refusal:  # as of a closed mmap
        raise InvalidError(
            f"invalid array: the {type(owner).__name__} under it does not give its memory: {refusal}"
        ) from None
