"""When a HubOptimizer makes checkpoints, and whether one is being made."""

import os

from ._errors import AgainError, Error, TimeoutError
from ._hub_settings import period_of


class HubCheckpoints:
    def __init__(self, path, every):
        self.path = None if path is None else os.path.abspath(path)
        self._every = period_of(path, every)
        self._is_saving = False
        self._may_not_have_begun = False  # as Ctrl-C came
        # After the step that was taken last; also one that could not begin, as the end of the one before came too late.
        self.is_due = False

    def count(self, steps):
        """So many steps were taken."""
        self.is_due = self.is_due or (self._every is not None and steps % self._every == 0)

    def begin(self, hub, steps, timeout):
        self.end(hub, steps, timeout)
        # Before it may have begun: where Ctrl-C comes, this trainer ends it when all others do, and begins it first if
        # it had not. That one is of the step of then: all have it, or hear that their steps differ.
        was_due, self.is_due = self.is_due, False
        self._is_saving = self._may_not_have_begun = True
        try:
            hub.begin_checkpoint(self.path, steps)
        except Error:
            self.is_due, self._is_saving, self._may_not_have_begun = was_due, False, False
            raise
        self._may_not_have_begun = False

    def _begin_late(self, hub, steps):
        try:
            hub.begin_checkpoint(self.path, steps)
        except AgainError:
            pass  # it has begun
        except Error:
            self._is_saving = self._may_not_have_begun = False
            raise
        self._may_not_have_begun = False

    def end(self, hub, steps, timeout):
        """That of the last one, if it has not ended. So many steps were taken."""
        if not self._is_saving:
            return
        if self._may_not_have_begun:
            self._begin_late(hub, steps)
        try:
            hub.end_checkpoint(timeout)
        except (TimeoutError, AgainError):
            # Where this trainer's own file is late it is still being written, and can be waited for again. Where others
            # are late it has been given up here, and the next end says that none was begun.
            raise
        except Error:
            self._is_saving = False
            raise
        self._is_saving = False
