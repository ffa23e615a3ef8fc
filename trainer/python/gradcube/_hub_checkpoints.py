"""When a HubOptimizer makes checkpoints, and whether one is being made."""

import os

from ._errors import AgainError, Error, InvalidError, TimeoutError
from ._hub_settings import period_of


class HubCheckpoints:
    def __init__(self, path, every):
        self.path = None if path is None else os.path.abspath(path)
        self._every = period_of(path, every)
        self._is_saving = False
        self._is_unsure = False  # Ctrl-C came while one began or ended
        # After the step that was taken last; also one that could not begin, as the end of the one before came too late.
        self.is_due = False

    def count(self, steps):
        """So many steps were taken."""
        self.is_due = self.is_due or (self._every is not None and steps % self._every == 0)

    def begin(self, hub, steps, timeout):
        self.end(hub, timeout)
        # Before it may have begun: where Ctrl-C comes, this trainer ends it when all others do, and begins none alone.
        was_due, self.is_due = self.is_due, False
        self._is_saving = self._is_unsure = True
        try:
            hub.begin_checkpoint(self.path, steps)
        except Error:
            self.is_due, self._is_saving = was_due, False
            raise
        self._is_unsure = False

    def end(self, hub, timeout):
        """That of the last one, if it has not ended."""
        if not self._is_saving:
            return
        was_unsure, self._is_unsure = self._is_unsure, True
        try:
            hub.end_checkpoint(timeout)
        except (TimeoutError, AgainError):
            self._is_unsure = was_unsure
            # Where this trainer's own file is late it is still being written, and can be waited for again. Where others
            # are late it has been given up here, and the next end says that none was begun.
            raise
        except Error as failure:
            self._is_saving = False
            if not (was_unsure and isinstance(failure, InvalidError)):  # else it had not begun, or had ended
                raise
        self._is_saving = self._is_unsure = False
