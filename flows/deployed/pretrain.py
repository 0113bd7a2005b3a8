"""Pre-train: the priors of a version that the ledger lacks, on whatever accelerator is there."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

from prefect import flow

from flows.champion import IN_SERVICE, contest
from flows.contest_failures import failure_recorded
from flows.events import tell
from flows.experiment import Experiment
from flows.identities import Failures
from flows.pretrain import pretrain as pretrain_experiment
from flows.pretrain import pretrain_arm
from flows.service import Service, read_service
from hyperbo.errors import NumericalError


@flow(name="pretrain", timeout_seconds=7 * 24 * 3600, **surroundings.options())
def pretrain(service: str, version: str) -> None:
    """Pre-train what is missing: each fold's priors of every arm, those in service, and the one to promote.

    Args:
      service: the service file.
      version: of its dataset.

    Raises:
      NumericalError: the prior to promote, or all priors of an arm, could not be trained; that is recorded.
      HyperBOError: as `flows.pretrain.pretrain_arm`.
    """
    of = read_service(Path(service))
    experiment = contest(of, version)
    with failure_recorded(of, version):
        failed = pretrain_experiment.fn(experiment)
        _require_some(of, experiment, failed)
        for_use = pretrain_arm(of.for_use(version), of.challenger, everything=True)
        if for_use:
            (runs,) = for_use.values()
            raise NumericalError(
                f"the prior of {of.challenger} to promote failed: {next(iter(runs.values()))}"
            )
    tell("prior.trained", of, version, failed=len(failed))


def _require_some(service: Service, experiment: Experiment, failed: Failures) -> None:
    """Refuse to go on where an arm has no prior at all: nothing could be said of it."""
    folds = experiment.test_bed().folds
    for label in experiment.arms:
        reasons = [next(iter(runs.values())) for (arm, _), runs in failed.items() if arm == label]
        if len(reasons) == len(folds) * len(experiment.seeds):
            back = f"hyperbo prior rollback {service.promotion.line} --catalog {service.priors}"
            fix = (
                f"roll back to another: {back}"
                if label == IN_SERVICE
                else f"change or remove the arm {label}"
            )
            raise NumericalError(f"all priors of {label} failed, the first: {reasons[0]}; {fix}")
