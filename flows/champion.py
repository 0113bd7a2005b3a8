"""Champion and challenger: the experiment that says whether a new prior is better than the one in service."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from flows.arms import configured
from flows.experiment import Arm, Experiment
from flows.fill import fill
from flows.identities import running_code
from flows.service import Service
from hyperbo.errors import InvalidInputError
from hyperbo.prior_catalog import Line, lines, read_line

# Label of the prior in service among the arms of a service.
IN_SERVICE = "the prior in service"


def contest(service: Service, version: str) -> Experiment:
    """The service's experiment on a version, with the prior in service as a further arm.

    That prior's method is pre-trained on the version that it was promoted with, held-out sets left out, and
    tested on the same tasks with the same seeds. Where there is none, or it was made of the same version by
    the same settings, there is no further arm.

    Raises:
      InvalidInputError: what is in service cannot be trained again as it was.
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
    """Whether it was decided on the prior of a version: the chain that its publication began has ended.

    Another arm, or other terms of the contest, make another contest, on which nothing was decided yet.
    """
    line, asked = line_of(service), contest_terms(service, version)
    return line is not None and any(
        {name: each.evidence.get(name) for name in asked} == asked for each in line.history
    )


def line_of(service: Service) -> Line | None:
    """The service's line of priors; None before the first decision."""
    name = service.promotion.line
    if name not in lines(service.priors):
        return None
    return read_line(service.priors, name)


def champion_of(service: Service) -> Arm | None:
    """The arm that the prior in service is of; None where there is none."""
    line = line_of(service)
    if line is None or line.current is None:
        return None
    # The newest decision that put it there; one that was rolled back to was promoted before.
    made = next(
        each for each in reversed(line.history) if each.prior == line.current and each.action == "promoted"
    )
    try:
        return _arm(made.evidence["arm"], made.evidence["dataset"], service.path.parent)
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
    filled = fill(type(method), settings.pop("configuration"), where, default=method)
    settings.pop("source_sha256", None)
    return Arm(filled, **{**settings, "trained_on": dataset})


def _settings(arm: Arm) -> dict[str, Any]:
    return {name: value for name, value in described(arm).items() if name != "trained_on"}


def described(arm: Arm) -> dict[str, Any]:
    """An arm's description as it comes back from a JSON file, where tuples are lists."""
    return json.loads(json.dumps(arm.description()))


def contest_terms(service: Service, version: str) -> dict[str, Any]:
    """What a service asks for where the prior of a version is to be decided on."""
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
            "budget": service.promotion.budget or design.iterations,
        },
    }


def evidence_of(service: Service, version: str) -> dict[str, Any]:
    """What a decision on the prior of a version rests on, beside the comparison."""
    return {**contest_terms(service, version), "code_version": running_code()}
