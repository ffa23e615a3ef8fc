"""Makes the backend "gradcube" known to torch.distributed, without loading anything of it.

Where the package was installed by pip, PyTorch finds it by itself: from 2.5 on by the entry point "torch.backends", in
each process that imports PyTorch, and in later versions by "torch.distributed.backends", where the backend is asked
for. So a script needs no import of Gradcube's, and one that does not ask for the backend pays nothing: this module lies
outside of the package, and imports it only when a group is made.
"""

import contextlib

_NAME = "gradcube"


def _create(backend_options, group_options):
    from gradcube import torch as backend  # which may have to build its extension first

    return backend.create(backend_options, group_options)


def register():
    """A second call changes nothing."""
    import inspect

    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, _NAME.upper()):
        return
    options = {"extended_api": True}
    if "devices" in inspect.signature(dist.Backend.register_backend).parameters:
        # Not those for which PyTorch has no backend yet: it would take this one for theirs.
        options["devices"] = list(getattr(dist.Backend, "default_device_backend_map", ["cpu", "cuda"]))
    dist.Backend.register_backend(_NAME, _create, **options)


def autoload():
    """At the end of PyTorch's own import, which must not fail with it. `import gradcube.torch` says what is wrong."""
    with contextlib.suppress(Exception):
        register()
