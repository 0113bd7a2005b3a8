"""Pre-train: the priors of a version that the ledger lacks, on whatever accelerator is there."""

from __future__ import annotations

from hyperbo_flows.service import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

from prefect import flow

from hyperbo.errors import NumericalError
from hyperbo_flows.experiments.plan import Plan, make_plan
from hyperbo_flows.experiments.pretrain import pretrain as pretrain_plan
from hyperbo_flows.experiments.work import Failures
from hyperbo_flows.service.contest import IN_SERVICE, contest, failure_recorded
from hyperbo_flows.service.events import tell
from hyperbo_flows.service.runner import in_order
from hyperbo_flows.service.settings import Service, read_service


@flow(name="pretrain", timeout_seconds=7 * 24 * 3600, **surroundings.OPTIONS)
def pretrain(service: str, version: str) -> None:
    """Pre-train what is missing: each fold's priors of every arm, those in service, and the one to promote.

    Args:
      service: path of the service file.
      version: version of its dataset.

    Raises:
      NumericalError: the prior to promote, or all priors of an arm, could not be trained; that is recorded.
      HyperBOError: the service file or the version cannot be read.
    """
    settings = read_service(Path(service))
    plan, runner = make_plan(contest(settings, version)), in_order("pretrain")
    with failure_recorded(settings, version):
        failed = pretrain_plan(plan, runner)
        _require_some(settings, plan, failed)
        not_for_use = pretrain_plan(plan.of_prior_for_use(settings.challenger), runner)
        if not_for_use:
            (runs,) = not_for_use.values()
            raise NumericalError(
                f"the prior of {settings.challenger} to promote failed: {next(iter(runs.values()))}"
            )
    tell("prior.trained", settings, version, failed=len(failed))


def _require_some(service: Service, plan: Plan, failed: Failures) -> None:
    """Refuse to go on where an arm has no prior at all: it could not be compared."""
    for label, arm in plan.arms.items():
        reasons = [next(iter(runs.values())) for (of_arm, _), runs in failed.items() if of_arm == label]
        if reasons and len(reasons) == len(arm.priors):
            back = f"hyperbo prior rollback {service.promotion.line} --catalog {service.priors}"
            fix = (
                f"roll back to another: {back}"
                if label == IN_SERVICE
                else f"change or remove the arm {label}"
            )
            raise NumericalError(f"all priors of {label} failed, the first: {reasons[0]}; {fix}")
