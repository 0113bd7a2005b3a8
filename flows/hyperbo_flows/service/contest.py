"""Champion and challenger: the contest of a new prior with the one in service, and what is known of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.priors.history import Line
from hyperbo.priors.names import lines, read_line
from hyperbo.storage.validation import validated
from hyperbo_flows.experiments import ledger
from hyperbo_flows.experiments.arms import configured
from hyperbo_flows.experiments.experiment import Arm, Experiment
from hyperbo_flows.experiments.plan import evaluation_code, libraries
from hyperbo_flows.process.progress import say
from hyperbo_flows.service.settings import Service

# Label of the prior in service among the arms of a contest.
IN_SERVICE = "the prior in service"


def contest(service: Service, version: str) -> Experiment:
    """The service's experiment on a version, with the prior in service as a further arm.

    That prior's method is pre-trained on the version that it was promoted with, held-out sets left out, and
    tested on the same tasks with the same seeds. There is no further arm where no prior is in service, or
    where it was made from the same version by the same settings.

    Raises:
      InvalidInputError: the prior in service cannot be trained again as it was.
    """
    experiment = service.experiment(version)
    champion = champion_of(service)
    if champion is None or is_challenger(champion, service, version):
        return experiment
    return replace(experiment, arms={**experiment.arms, IN_SERVICE: champion})


def is_challenger(champion: Arm, service: Service, version: str) -> bool:
    """Whether the prior in service is what pre-training on a version would make again."""
    challenger = service.design.arms[service.challenger]
    return (champion.trained_on, _settings(champion)) == (
        f"{service.dataset}:{version}",
        _settings(challenger),
    )


def is_decided(service: Service, version: str) -> bool:
    """Whether there is a decision on the prior of a version: the chain of flows has ended.

    Another arm, or other terms, make another contest, on which nothing was decided yet.
    """
    line, terms = line_of(service), contest_terms(service, version)
    return line is not None and any(
        {name: each.evidence.get(name) for name in terms} == terms for each in line.history
    )


def line_of(service: Service) -> Line | None:
    """The service's line of priors; None before the first decision."""
    name = service.promotion.line
    if name not in lines(service.priors):
        return None
    return read_line(service.priors, name)


def champion_of(service: Service) -> Arm | None:
    """The arm of the prior in service; None where no prior is in service.

    Raises:
      InvalidInputError: the prior in service cannot be trained again as it was.
    """
    line = line_of(service)
    if line is None or line.current is None:
        return None
    # The newest promotion. A roll back puts back a prior that was promoted before.
    promoted = next(
        each for each in reversed(line.history) if each.prior == line.current and each.action == "promoted"
    )
    try:
        return _arm(promoted.evidence["arm"], promoted.evidence["dataset"], service.path.parent)
    except (KeyError, TypeError, InvalidInputError) as error:
        raise InvalidInputError(
            f"the prior in service cannot be trained again as it was: {error}",
            where=f"{service.priors / service.promotion.line}",
            fix="roll back to another, or begin a new line in the service file",
        ) from error


def _arm(description: dict[str, Any], dataset: str, folder: Path) -> Arm:
    settings = dict(description)
    method = configured(settings.pop("method"), dataset, folder=folder)
    where = "settings of the prior in service"
    filled = validated(type(method), settings.pop("configuration"), where, default=method)
    settings.pop("source_sha256", None)
    return Arm(filled, **{**settings, "trained_on": dataset})


def _settings(arm: Arm) -> dict[str, Any]:
    return {name: value for name, value in described(arm).items() if name != "trained_on"}


def described(arm: Arm) -> dict[str, Any]:
    """An arm's description as a JSON file gives it back: with lists for tuples."""
    return json.loads(json.dumps(arm.description()))


def contest_terms(service: Service, version: str) -> dict[str, Any]:
    """The terms by which a service decides on the prior of a version."""
    design = service.design
    return {
        "dataset": f"{service.dataset}:{version}",
        "arm": _settings(design.arms[service.challenger]),
        "experiment": {
            "preparation": design.preparation,
            "protocol": design.protocol,
            "not_tested": list(design.not_tested),
            "seeds": list(design.seeds),
            "iterations": design.iterations,
            "repeats": design.repeats,
            "train": list(design.train),
            "test": list(design.test),
            "budget": service.promotion.budget or design.iterations,
        },
    }


def evidence_of(service: Service, version: str) -> dict[str, Any]:
    """What a decision on the prior of a version rests on, beside the comparison."""
    return {**contest_terms(service, version), "code_version": evaluation_code()}


@contextmanager
def failure_recorded(service: Service, version: str) -> Iterator[None]:
    """If a step of a contest fails, record it, so that it is not tried again with the same inputs.

    Raises:
      NumericalError: the step raised it; it is recorded first.
    """
    try:
        yield
    except NumericalError as error:
        ledger.finish(
            service.design.runs,
            _failure_identity(service, version),
            lambda folder: None,
            {"reason": str(error)},
        )
        raise


def failure_of(service: Service, version: str) -> str | None:
    """Why the contest of a version failed with these settings, champion, code and libraries; None if not."""
    folder = ledger.find(service.design.runs, _failure_identity(service, version))
    return None if folder is None else str(ledger.facts(folder)["reason"])


def is_open(service: Service, version: str) -> bool:
    """Whether the chain is to be started for a version: nothing is decided, and no attempt failed.

    Where an attempt failed, a line says so, and what to do about it.
    """
    if is_decided(service, version):
        return False
    reason = failure_of(service, version)
    if reason is not None:
        say(
            f"{service.promotion.line}: no decision on the prior of {version}: {reason}. It is tried again "
            "when the service file, the prior in service or the code changes, or by: "
            f"hyperbo flows run retrain --service {service.path}"
        )
    return reason is None


def _failure_identity(service: Service, version: str) -> dict[str, Any]:
    champion = champion_of(service)
    return {
        "kind": "contest_failure",
        **evidence_of(service, version),
        "line": service.promotion.line,
        "champion": None if champion is None else described(champion),
        "libraries": libraries(),
    }
