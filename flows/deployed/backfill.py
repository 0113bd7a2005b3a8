"""Backfill: the experiment of a service on versions that were published before."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

import traceback
from pathlib import Path

from prefect import flow

from flows import ledger
from flows.evaluation_folder import REPORT_NAME
from flows.identities import prior_identities, simulation_identities
from flows.progress import say
from flows.retrain import retrain
from flows.service import Service, read_service
from hyperbo.errors import HyperBOError, InvalidInputError, NumericalError
from hyperbo.evaluation.findings import count
from hyperbo.methods import PretrainedMethod
from pd1_builder.catalog import version_numbers, versions


@flow(name="backfill", timeout_seconds=14 * 24 * 3600, **surroundings.options())
def backfill(service: str, first: str, last: str, failed_only: bool = False) -> list[str]:
    """Pre-train and evaluate what is missing of every version in a range; nothing is promoted.

    Args:
      service: the service file.
      first: the first version.
      last: the last version.
      failed_only: leave out versions that were never tried, of which the ledger has no prior.

    Returns:
      The versions that were worked on.

    Raises:
      InvalidInputError: there is no version in the range.
      HyperBOError: versions failed, in whole or in part; the others were worked on.
    """
    of = read_service(Path(service))
    worked_on: list[str] = []
    failed: dict[str, str] = {}
    for version in versions_between(of, first, last):
        try:
            if _worked_on(of, version, failed_only):
                worked_on.append(version)
        except OSError:
            raise  # It is no version's fault, and would be met by all.
        except Exception as error:
            failed[version] = str(error) if isinstance(error, HyperBOError) else repr(error)
            say(f"{of.dataset}:{version}: failed: {failed[version]}")
            if not isinstance(error, HyperBOError):
                traceback.print_exception(error)
    say(f"{of.dataset}: {count(len(worked_on), 'version')} worked on")
    if failed:
        told = "; ".join(f"{version}: {reason}" for version, reason in failed.items())
        raise HyperBOError(f"{of.dataset}: {count(len(failed), 'version')} failed: {told}")
    return worked_on


def _worked_on(service: Service, version: str, failed_only: bool) -> bool:
    """Pre-train and evaluate what is missing of a version; False where it is left out.

    Raises:
      NumericalError: simulations are missing still, which their report says.
      HyperBOError: as `flows.retrain.retrain`.
    """
    complete = not progress_of(service, version)[1]
    if complete or (failed_only and not was_begun(service, version)):
        say(f"{service.dataset}:{version}: {'complete' if complete else 'never tried'}, left out")
        return False
    command = f"hyperbo flows backfill --service {service.path} --from {version} --to {version}"
    folder = retrain(service.experiment(version), command)
    if missing := progress_of(service, version)[1]:
        raise NumericalError(f"{count(missing, 'simulation')} failed, see {folder / REPORT_NAME}")
    return True


def versions_between(service: Service, first: str, last: str) -> list[str]:
    """The versions of a service's dataset from one to another, both included.

    Raises:
      InvalidInputError: there is none, or a number is none.
    """
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


def was_begun(service: Service, version: str) -> bool:
    """Whether the ledger has a prior of the service's experiment on a version."""
    experiment = service.experiment(version)
    bed = experiment.test_bed()
    return any(
        ledger.find(experiment.runs, identity) is not None
        for arm in experiment.arms.values()
        if isinstance(arm.method, PretrainedMethod)
        for identity in prior_identities(experiment, bed, arm).values()
    )


def progress_of(service: Service, version: str) -> tuple[int, int]:
    """How many simulations of a service's experiment on a version are in the ledger, and how many are not."""
    experiment = service.experiment(version)
    bed = experiment.test_bed()
    present = missing = 0
    for arm in experiment.arms.values():
        identities = simulation_identities(experiment, bed, arm)
        lacking = len(ledger.missing(experiment.runs, identities))
        present, missing = present + len(identities) - lacking, missing + lacking
    return present, missing
