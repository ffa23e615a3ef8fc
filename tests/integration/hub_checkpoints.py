"""Jobs with a hub that are trained in parts: for tests of checkpoints."""

import contextlib
import pathlib
import tempfile

import numpy

from harness import job
from hub_keys import LATE, RATE, HubTestCase, first_weights, gradients_of

ROUNDS = 5
SAVED = 3  # of these, when the checkpoint is made


class CheckpointTestCase(HubTestCase):
    """Of jobs that are trained in parts."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def own(self, session):
        """A path on the server's own disk."""
        folder = self.folder / str(session.server)
        folder.mkdir(exist_ok=True)
        return folder / "model.hub"

    def shared(self, _):
        """A path that all servers see."""
        return self.folder / "model.hub"

    def go_on(self, session, path, optimizer="adam", rounds=ROUNDS, **options):
        """Trains from the checkpoint, if there is one, up to so many rounds. The hub, and its weights."""
        hub = self.hub_of(session, optimizer, restore=path(session), **options)
        found = {name: numpy.empty_like(array) for name, array in first_weights().items()}
        for name, array in found.items():
            hub.pull(name, array)
        for number in range(hub.step or 0, rounds):
            gradients = gradients_of(session.rank, number)
            order = self.order(session, number)
            for request in [hub.push_pull_async(name, gradients[name], found[name], RATE) for name in order]:
                request.wait(LATE)
        return hub, found

    def train(self, session, path, optimizer="adam", rounds=ROUNDS, save=False, **options):
        hub, found = self.go_on(session, path, optimizer, rounds, **options)
        if save:
            hub.checkpoint(path(session), rounds, LATE)
        hub.free(LATE)
        return found

    def run_job(self, name, path, members=None, **options):
        """Of all trainers: the weights."""
        with contextlib.ExitStack() as stack:
            algorithm = options.pop("algorithm", None)
            sessions = stack.enter_context(job(self.cluster, name, members, members=members, algorithm=algorithm))
            return self.results(lambda session: self.train(session, path, **options), sessions)

    def nowhere(self, _):
        return self.folder / "none.hub"
