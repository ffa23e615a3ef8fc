"""NumPy arrays as the library sees them: types, shapes and numbers, checked."""

import operator

import numpy

from ._errors import InvalidError

DTYPES = {
    "float32": 0,
    "float64": 1,
    "float16": 2,
    "bfloat16": 3,
    "int32": 4,
    "int64": 5,
    "int8": 6,
    "uint8": 7,
    "bytes": 8,
    # From here on: copied, and mostly never combined.
    "bool": 16,
    "int16": 17,
    "uint16": 18,
    "uint32": 19,
    "uint64": 20,
    "complex32": 21,
    "complex64": 22,
    "complex128": 23,
    "float8_e4m3fn": 24,
    "float8_e4m3fnuz": 25,
    "float8_e5m2": 26,
    "float8_e5m2fnuz": 27,
}
_COMBINED = [name for name, number in DTYPES.items() if number < DTYPES["bytes"]] + [
    "bool",
    "int16",
    "complex64",
    "complex128",
]
OPS = {"sum": 0, "average": 1, "min": 2, "max": 3}

# Names of the library that NumPy does not have, and the type that holds their elements.
_STORAGE = {"bfloat16": "uint16", "bytes": "uint8"}


def _numpy_dtype(dtype):
    try:
        return numpy.dtype(dtype)
    except TypeError:
        raise InvalidError(f"invalid dtype {dtype!r:.64}: expected one of {', '.join(DTYPES)}") from None


def storage_dtype(dtype):
    """The NumPy type that holds elements of `dtype`."""
    if isinstance(dtype, str) and dtype in _STORAGE:
        return numpy.dtype(_STORAGE[dtype])
    storage = _numpy_dtype(dtype)
    if storage.name not in DTYPES:
        raise InvalidError(f"invalid dtype {storage.name}: expected one of {', '.join(DTYPES)}")
    return storage


def _check_whole(array):
    if isinstance(array, numpy.ma.MaskedArray):
        raise InvalidError(
            "invalid array: a masked one, whose mask would be left out: expected an array without, such as its filled()"
        )


def _check_layout(array, is_written):
    if not array.flags.c_contiguous:
        raise InvalidError(
            "invalid array: it is not C-contiguous, such as a slice with a step or a transposed array is not; copy it by "
            "numpy.ascontiguousarray()"
        )
    if not array.dtype.isnative:
        raise InvalidError(
            'invalid array: its bytes are not in the order of this processor; convert it by astype(dtype.newbyteorder("="))'
        )
    if is_written and not array.flags.writeable:
        raise InvalidError("invalid array: it is not writeable, and what arrives is written there")


def elements_of(array, dtype, copied=False):
    """The library's number for the elements of `array`, which the caller calls `dtype`, and how many there are.

    ``copied``: they are not combined.
    """
    if not isinstance(array, numpy.ndarray):
        raise InvalidError(f"invalid array: expected a NumPy array, not {type(array).__name__}")
    _check_whole(array)
    _check_layout(array, is_written=True)
    if isinstance(dtype, str) and dtype == "bytes":
        if array.dtype.hasobject:
            raise InvalidError("invalid array: Python objects cannot be sent")
        return DTYPES[dtype], array.nbytes
    if dtype is None:
        name = array.dtype.name
    else:
        name = dtype if isinstance(dtype, str) else _numpy_dtype(dtype).name
    if name == "bfloat16" and array.dtype == numpy.uint16:
        return DTYPES[name], array.size
    known = DTYPES if copied else _COMBINED
    if name not in known or array.dtype.name != name:
        raise InvalidError(
            f"an array of {array.dtype.name} cannot be {'copied' if copied else 'combined'} as {name:.64}: expected an "
            "array of one of "
            + ", ".join(known)
            + ' (bfloat16: uint16 with dtype="bfloat16"; any type for allgather and broadcast with dtype="bytes")'
        )
    return DTYPES[name], array.size


def _bytes_of(data):
    """An object with a buffer, as an array over that."""
    try:
        view = memoryview(data)
        array = numpy.asarray(view.cast("B") if view.nbytes else view)  # Python casts no view with a 0 in its shape
    except (TypeError, ValueError):
        raise InvalidError(
            f"invalid data: expected a NumPy array or contiguous bytes, not {type(data).__name__}"
        ) from None
    _check_whole(view.obj)
    return array


def memory_of(data, is_written, held):
    """Of `data`, a NumPy array or an object with a buffer: the address, the bytes, and the library's number for the
    type. ``held``, a HeldMemory, has it from then on."""
    dtype = DTYPES["bytes"]
    if isinstance(data, numpy.ndarray):
        array = data
        _check_whole(array)
        dtype = DTYPES.get(array.dtype.name, dtype)
    else:
        array = _bytes_of(data)
    held.hold(array)
    if array.dtype.hasobject:
        raise InvalidError("invalid array: Python objects cannot be sent")
    _check_layout(array, is_written)
    return held.take(array, is_written), array.nbytes, dtype


def number_of_op(op):
    if not isinstance(op, str) or op not in OPS:
        raise InvalidError(f"invalid op {op!r:.64}: expected one of {', '.join(OPS)}")
    return OPS[op]


def whole_number(value, name, least, most):
    """`value` as an int: ctypes would cut off the bits that do not fit."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InvalidError(f"invalid {name} {value!r:.64}: expected a whole number") from None
    if not least <= number <= most:
        raise InvalidError(f"invalid {name} {number}: expected {least} to {most}")
    return number


def whole_numbers(given, name, most):
    """`given`, a number from 0 to `most` or a sequence of some, as a list of ints."""
    try:
        values = [operator.index(given)]
    except TypeError:
        try:
            values = [] if isinstance(given, (str, bytes, bytearray)) else list(given)
        except TypeError:
            values = []
    if not values:
        raise InvalidError(f"invalid {name} {given!r:.64}: expected a whole number, or a list of some")
    return [whole_number(value, name, 0, most) for value in values]


def real_number(value, name):
    """`value` as a float that is finite, and 0 or more."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number < float("inf"):
        raise InvalidError(f"invalid {name} {value!r:.64}: expected a finite number, 0 or more")
    return number


def shape_of(shape):
    """`shape`, a number or a sequence of numbers, as a tuple of ints."""
    try:
        try:
            shape = (operator.index(shape),)
        except TypeError:
            shape = tuple(operator.index(n) for n in shape)
    except TypeError:
        raise InvalidError(f"invalid shape {shape!r:.64}: expected a whole number, or a sequence of them") from None
    if any(n < 0 for n in shape):
        raise InvalidError(f"invalid shape {shape}: a dimension is negative")
    return shape
