"""Backfill: the experiment of a service on versions that were published before."""

from __future__ import annotations

from hyperbo_flows.service import surroundings  # isort: skip - before anything that imports JAX

import traceback
from pathlib import Path

# Its import blocks the imports of all other threads; so it comes before Prefect has threads.
import tensorflow_datasets  # noqa: F401
from prefect import flow

from hyperbo.errors import HyperBOError, InvalidInputError, NumericalError
from hyperbo.storage.printable import count
from hyperbo_flows.experiments import ledger
from hyperbo_flows.experiments.evaluate import evaluate
from hyperbo_flows.experiments.evaluation_folder import REPORT_NAME
from hyperbo_flows.experiments.plan import make_plan
from hyperbo_flows.experiments.pretrain import pretrain
from hyperbo_flows.experiments.retrain import provide
from hyperbo_flows.process.progress import say
from hyperbo_flows.service.runner import in_order
from hyperbo_flows.service.settings import Service, read_service
from pd1_builder.version.catalog import version_numbers, versions


@flow(name="backfill", timeout_seconds=14 * 24 * 3600, **surroundings.OPTIONS)
def backfill(service: str, first: str, last: str, failed_only: bool = False) -> list[str]:
    """Pre-train and evaluate what is missing of every version in a range; nothing is promoted.

    Args:
      service: path of the service file.
      first: the first version.
      last: the last version.
      failed_only: leave out versions that were never tried: the ledger has no prior of them.

    Returns:
      The versions that were worked on.

    Raises:
      InvalidInputError: there is no version in the range.
      HyperBOError: versions failed, in whole or in part; the others were worked on.
    """
    settings = read_service(Path(service))
    worked_on: list[str] = []
    failed: dict[str, str] = {}
    for version in _versions_between(settings, first, last):
        try:
            if _worked_on(settings, version, failed_only):
                worked_on.append(version)
        except OSError:
            raise  # All versions would meet it.
        except Exception as error:
            failed[version] = str(error) if isinstance(error, HyperBOError) else repr(error)
            say(f"{settings.dataset}:{version}: failed: {failed[version]}")
            if not isinstance(error, HyperBOError):
                traceback.print_exception(error)
    say(f"{settings.dataset}: {count(len(worked_on), 'version')} worked on")
    if failed:
        reasons = "; ".join(f"{version}: {reason}" for version, reason in failed.items())
        raise HyperBOError(f"{settings.dataset}: {count(len(failed), 'version')} failed: {reasons}")
    return worked_on


def _worked_on(service: Service, version: str, failed_only: bool) -> bool:
    """Pre-train and evaluate what is missing of a version; False where it is left out."""
    plan = make_plan(service.experiment(version))
    complete = not plan.simulations_recorded()[1]
    begun = any(
        ledger.find(plan.experiment.runs, identity) is not None
        for arm in plan.arms.values()
        for identity in arm.priors.values()
    )
    if complete or (failed_only and not begun):
        say(f"{service.dataset}:{version}: {'complete' if complete else 'never tried'}, left out")
        return False
    command = f"hyperbo flows backfill --service {service.path} --from {version} --to {version}"
    provide(plan.experiment)
    folder = evaluate(plan, command, pretrain(plan, in_order("pretrain")), in_order("evaluate"))
    if missing := plan.simulations_recorded()[1]:
        raise NumericalError(f"{count(missing, 'simulation')} failed, see {folder / REPORT_NAME}")
    return True


def _versions_between(service: Service, first: str, last: str) -> list[str]:
    """The versions of a service's dataset from one to another, both included."""
    known = [each.version for each in versions(service.design.data_dir) if each.dataset == service.dataset]
    lowest, highest = version_numbers(first), version_numbers(last)
    chosen = [each for each in known if lowest <= version_numbers(each) <= highest]
    if not chosen:
        raise InvalidInputError(
            f"no version of {service.dataset} from {first} to {last}",
            where=str(service.design.data_dir),
            fix=f"there are {', '.join(known) or 'none'}",
        )
    return chosen
