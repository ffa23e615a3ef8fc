"""When a HubOptimizer makes checkpoints, and whether one is being made."""

import os

from ._errors import AgainError, Error, InvalidError, TimeoutError
from ._hub_settings import period_of


class HubCheckpoints:
    def __init__(self, path, every):
        self.path = None if path is None else os.path.abspath(path)
        self._every = period_of(path, every)
        self._is_saving = False
        self._unsure_step = None  # of one that may not have begun, as Ctrl-C came
        self._is_unsure = False  # Ctrl-C came while one ended
        # After the step that was taken last; also one that could not begin, as the end of the one before came too late.
        self.is_due = False

    def count(self, steps):
        """So many steps were taken."""
        self.is_due = self.is_due or (self._every is not None and steps % self._every == 0)

    def begin(self, hub, steps, timeout):
        self.end(hub, timeout)
        # Before it may have begun: where Ctrl-C comes, this trainer ends it when all others do, and begins it first if
        # it had not. Then all have it, or hear that this trainer's part is of other weights.
        was_due, self.is_due = self.is_due, False
        self._is_saving, self._unsure_step = True, steps
        try:
            hub.begin_checkpoint(self.path, steps)
        except Error:
            self.is_due, self._is_saving, self._unsure_step = was_due, False, None
            raise
        self._unsure_step = None

    def _begin_late(self, hub):
        try:
            hub.begin_checkpoint(self.path, self._unsure_step)
        except AgainError:
            pass  # it has begun
        except Error:
            self._is_saving, self._unsure_step = False, None
            raise
        self._unsure_step = None

    def end(self, hub, timeout):
        """That of the last one, if it has not ended."""
        if not self._is_saving:
            return
        if self._unsure_step is not None:
            self._begin_late(hub)
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
            if not (was_unsure and isinstance(failure, InvalidError)):  # else it had ended
                raise
        self._is_saving = self._is_unsure = False
