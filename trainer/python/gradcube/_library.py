"""Finds libgradcube.so and declares its functions (gradcube.h, gradcube_hub.h) to ctypes.

Looked for, in this order: $GRADCUBE_LIBRARY; where `meson install` put it (``_installed.py``, which an installed
package has); in a build folder of the source tree that the package lies in; where the system looks for libraries.
"""

import ctypes
import functools
import os
import pathlib

from ._errors import Error

try:
    from . import _installed
except ImportError:
    _installed = None  # a source tree



class Lane(ctypes.Structure):
    """gradcube_lane"""

    _fields_ = [("algorithm", ctypes.c_char_p), ("priority", ctypes.c_int)]


class Options(ctypes.Structure):
    """gradcube_options"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("algorithm", ctypes.c_char_p),
        ("lanes", ctypes.POINTER(Lane)),
        ("lane_count", ctypes.c_size_t),
        ("weight", ctypes.c_uint),
        ("rank", ctypes.c_int),
        ("members", ctypes.POINTER(ctypes.c_uint32)),
        ("member_count", ctypes.c_size_t),
        ("reproducible", ctypes.c_int),
        ("trainers_per_server", ctypes.c_uint),
        ("local", ctypes.c_int),
    ]


class Collective(ctypes.Structure):
    """gradcube_collective"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("buffer", ctypes.c_void_p),
        ("count", ctypes.c_size_t),
        ("dtype", ctypes.c_int),
        ("op", ctypes.c_int),
        ("root", ctypes.c_uint),
        ("lane", ctypes.c_uint),
    ]


class Message(ctypes.Structure):
    """gradcube_message"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("direction", ctypes.c_int),
        ("peer", ctypes.c_uint),
        ("buffer", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("tag", ctypes.c_uint64),
        ("paths", ctypes.c_uint),
        ("received", ctypes.POINTER(ctypes.c_size_t)),
        ("dtype", ctypes.c_int),
    ]


class Layer(ctypes.Structure):
    """gradcube_layer"""

    _fields_ = [("bytes", ctypes.c_uint64), ("backward_seconds", ctypes.c_double)]


class HubKey(ctypes.Structure):
    """gradcube_hub_key"""

    _fields_ = [("name", ctypes.c_char_p), ("elements", ctypes.c_size_t), ("dtype", ctypes.c_int)]


class HubSettings(ctypes.Structure):
    """gradcube_hub_settings"""

    _fields_ = [
        ("size", ctypes.c_size_t),
        ("keys", ctypes.POINTER(HubKey)),
        ("key_count", ctypes.c_size_t),
        ("optimizer", ctypes.c_char_p),
        ("chunk_bytes", ctypes.c_size_t),
        ("lane", ctypes.c_uint),
        ("reserved", ctypes.c_uint64),
        ("aggregator", ctypes.c_uint64),
        ("staleness", ctypes.c_uint64),
        ("aggregators", ctypes.POINTER(ctypes.c_uint64)),
        ("aggregator_count", ctypes.c_size_t),
        ("accumulate", ctypes.c_uint64),
    ]


_SESSION = ctypes.c_void_p
_HUB = ctypes.c_void_p
_REQUEST = ctypes.POINTER(ctypes.c_uint64)
_FUNCTIONS = {
    "gradcube_version": (ctypes.c_int, []),
    "gradcube_open": (
        ctypes.c_int,
        [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(Options), ctypes.POINTER(_SESSION)],
    ),
    "gradcube_abort": (ctypes.c_int, [_SESSION]),
    "gradcube_close": (None, [_SESSION]),
    "gradcube_leave": (None, [_SESSION]),
    "gradcube_rank": (ctypes.c_int, [_SESSION]),
    "gradcube_size": (ctypes.c_int, [_SESSION]),
    "gradcube_server": (ctypes.c_int, [_SESSION]),
    "gradcube_alloc": (ctypes.c_void_p, [_SESSION, ctypes.c_size_t]),
    "gradcube_free": (None, [_SESSION, ctypes.c_void_p]),
    "gradcube_submit": (
        ctypes.c_int,
        [_SESSION, ctypes.POINTER(Collective), ctypes.POINTER(ctypes.c_uint64)],
    ),
    "gradcube_submit_message": (
        ctypes.c_int,
        [_SESSION, ctypes.POINTER(Message), ctypes.POINTER(ctypes.c_uint64)],
    ),
    "gradcube_cancel": (ctypes.c_int, [_SESSION, ctypes.c_uint64]),
    "gradcube_forget": (ctypes.c_int, [_SESSION, ctypes.c_uint64]),
    "gradcube_event_fd": (ctypes.c_int, [_SESSION]),
    "gradcube_poll": (
        ctypes.c_int,
        [_SESSION, ctypes.c_uint64, ctypes.c_int, ctypes.POINTER(ctypes.c_int)],
    ),
    "gradcube_wait": (ctypes.c_int, [_SESSION, ctypes.c_uint64, ctypes.c_int]),
    "gradcube_merge_layers": (
        ctypes.c_int,
        [
            ctypes.c_int,
            ctypes.c_double,
            ctypes.c_double,
            ctypes.POINTER(Layer),
            ctypes.c_size_t,
            ctypes.POINTER(ctypes.c_size_t),
        ],
    ),
    "gradcube_hub_create": (
        ctypes.c_int,
        [_SESSION, ctypes.POINTER(HubSettings), ctypes.c_int, ctypes.POINTER(_HUB)],
    ),
    "gradcube_hub_free": (ctypes.c_int, [_HUB, ctypes.c_int]),
    "gradcube_hub_init": (ctypes.c_int, [_HUB, ctypes.c_size_t, ctypes.c_void_p, _REQUEST]),
    "gradcube_hub_push": (
        ctypes.c_int,
        [_HUB, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_double, _REQUEST],
    ),
    "gradcube_hub_push_pull": (
        ctypes.c_int,
        [_HUB, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double, _REQUEST],
    ),
    "gradcube_hub_accumulate": (ctypes.c_int, [_HUB, ctypes.c_size_t, ctypes.c_void_p, _REQUEST]),
    "gradcube_hub_norm": (ctypes.c_int, [_HUB, ctypes.POINTER(ctypes.c_double)]),
    "gradcube_hub_apply": (
        ctypes.c_int,
        [_HUB, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_double, ctypes.c_double, _REQUEST],
    ),
    "gradcube_hub_pull": (ctypes.c_int, [_HUB, ctypes.c_size_t, ctypes.c_void_p]),
    "gradcube_hub_weights": (ctypes.c_void_p, [_HUB, ctypes.c_size_t]),
    "gradcube_hub_begin_checkpoint": (ctypes.c_int, [_HUB, ctypes.c_char_p, ctypes.c_uint64]),
    "gradcube_hub_end_checkpoint": (ctypes.c_int, [_HUB, ctypes.c_int]),
    "gradcube_hub_restore": (
        ctypes.c_int,
        [_HUB, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_uint64)],
    ),
    "gradcube_last_error": (ctypes.c_char_p, [_SESSION]),
    "gradcube_last_code": (ctypes.c_int, [_SESSION]),
}


def keep(results, function, *arguments):
    """Calls the function, of C, and appends its result. What a plain call returns is lost where Ctrl-C comes just then:
    Python raises between two of its instructions."""
    results.extend(map(function, *zip(arguments)))


def _candidates():
    given = os.environ.get("GRADCUBE_LIBRARY")
    if given:
        return [given]
    package = pathlib.Path(__file__).resolve().parent
    if _installed is not None:
        return [str(package / _installed.LIBRARY)]
    built = sorted(
        package.parents[2].glob("build*/trainer/libgradcube.so"),
        key=lambda path: path.stat().st_mtime,
        reverse=True,
    )
    return [str(path) for path in built] + ["libgradcube.so.1"]


@functools.lru_cache(maxsize=None)
def library():
    """The loaded library. Loaded once, at the first session."""
    refusals = []
    for candidate in _candidates():
        try:
            loaded = ctypes.CDLL(candidate)
        except OSError as error:
            refusals.append(str(error))
            continue
        missing = [name for name in _FUNCTIONS if not hasattr(loaded, name)]
        if missing:
            refusals.append(f"{candidate} has no {missing[0]}: it is of another version")
            continue
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(loaded, name)
            function.restype = result
            function.argtypes = arguments
        return loaded
    raise Error(
        "cannot load libgradcube.so (" + "; ".join(refusals) + "): build it, or set GRADCUBE_LIBRARY to its path"
    )
