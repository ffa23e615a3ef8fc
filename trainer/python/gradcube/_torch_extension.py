"""Finds the extension for the PyTorch that this process has imported; where there is none, has it built.

An extension fits one PyTorch alone (_torch_identity.py), and none is loaded that does not say that it was built for
this one. Looked for in this order: beside $GRADCUBE_LIBRARY; beside this file, where `meson install` puts that of
Debian's PyTorch; in a build folder of the source tree that the package lies in; in the cache.

The cache is $GRADCUBE_CACHE, else $XDG_CACHE_HOME/gradcube, else ~/.cache/gradcube. It has a folder for each PyTorch
and each state of the sources, with one extension in it and its SHA-256.

Errors are ImportErrors, in a sentence.
"""

import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import re

from . import _library

_NAME = "_gradcube_torch"
_MARK = re.compile(rb"gradcube-torch-identity:([^\0]*)\0")
_PACKAGE = pathlib.Path(__file__).resolve().parent

FILE = _NAME + importlib.machinery.EXTENSION_SUFFIXES[0]
DIGEST = "sha256"  # the file beside it

extension = None  # the module, once it is loaded


def identity():
    from . import _torch_identity  # imports PyTorch

    return _torch_identity.identity()


def version_of(identity):
    return identity.split(",")[0]


def load():
    """The extension, as a module. A second call loads nothing."""
    global extension
    if extension is None:
        _library.library()  # so that the extension gets this one
        path = find(identity())
        if path is None:
            from ._torch_builder import build

            path = build()
        extension = loaded(path)
    return extension


def loaded(path):
    spec = importlib.util.spec_from_file_location(_NAME, path)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise ImportError(
            f"{path} cannot be loaded ({error}): build the backend for PyTorch again: "
            "python3 -m gradcube torch build --again"
        ) from None
    return module


def find(wanted):
    """The path of an extension of this identity, or None."""
    for path in _built_by_meson():
        if built_for(path) == wanted:
            return path
    place = place_of(wanted)
    return place if is_whole(place) and built_for(place) == wanted else None


def built_for(path):
    """The identity that the extension in this file has, without loading it; None: there is no such file."""
    try:
        found = _MARK.search(path.read_bytes())
    except OSError:
        return None
    return found and found[1].decode(errors="replace")


def is_whole(path):
    """Whether a file of the cache has all that was built."""
    try:
        return digest_of(path) == path.with_name(DIGEST).read_text()
    except OSError:
        return False


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _built_by_meson():
    given = os.environ.get("GRADCUBE_LIBRARY")
    if given:
        places = [pathlib.Path(given).resolve().parent / "torch", _PACKAGE]
    else:
        built = _PACKAGE.parents[2].glob("build*/trainer/torch")
        places = [_PACKAGE, *sorted(built, key=lambda path: path.stat().st_mtime, reverse=True)]
    return [place / (_NAME + suffix) for place in places for suffix in importlib.machinery.EXTENSION_SUFFIXES]


def cache():
    given = os.environ.get("GRADCUBE_CACHE")
    if given:
        return pathlib.Path(given).absolute()
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "gradcube"


def sources():
    """The folder in which trainer/torch and trainer/include lie; None: this package has none."""
    places = (_PACKAGE / "_torch_source", _PACKAGE.parents[2])
    return next((place for place in places if (place / "trainer/torch/module.cc").exists()), None)


def place_of(wanted):
    """Where the cache has the extension of this identity."""
    digest = hashlib.sha256(wanted.encode())
    root = sources() or _PACKAGE
    patterns = ("trainer/torch/*.h", "trainer/torch/*.cc", "trainer/include/gradcube/*.h")
    for path in (path for pattern in patterns for path in sorted(root.glob(pattern))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    version = re.sub(r"[^\w.+-]", "_", version_of(wanted))
    return cache() / f"torch-{version}-{digest.hexdigest()[:16]}" / FILE
