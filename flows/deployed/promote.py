"""Promote: a prior takes the place of the one in service only where it is better."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

from prefect import flow
from prefect.artifacts import create_markdown_artifact

from flows import evaluation_folder
from flows.champion import IN_SERVICE, champion_of, described, evidence_of, is_decided, line_of
from flows.events import tell
from flows.pretrain import find_prior_for_use
from flows.progress import say
from flows.service import Service, read_service
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.evaluation.findings import count
from hyperbo.evaluation.metadata import EvaluationMetadata
from hyperbo.evaluation.promotion import verdict
from hyperbo.evaluation.regret import regrets_of_priors, simple_regrets
from hyperbo.prior_catalog import add_prior, hold_back
from hyperbo.prior_catalog import promote as put_into_service


@flow(name="promote", timeout_seconds=3600, **surroundings.options())
def promote(service: str, version: str, evaluation: str) -> None:
    """Compare the new prior with the one in service, and decide; the decision is recorded once.

    Args:
      service: the service file.
      version: of its dataset.
      evaluation: folder of the evaluation of that version, made by the flow `evaluate`.

    Raises:
      InvalidInputError: the evaluation cannot be read, or is of another version or other settings.
      NotAvailableError: the prior to promote is not in the ledger.
      NumericalError: runs of one of the two failed; there is no decision.
      VersionConflictError: somebody else changed what is in service meanwhile.
    """
    of = read_service(Path(service))
    found = evaluation_folder.read(Path(evaluation))
    _require_same(of, version, found.metadata, evaluation)
    line = of.promotion.line
    if is_decided(of, version):
        say(f"{line}: decided on the prior of {version} before; nothing to do")
        return
    before, champion = line_of(of), champion_of(of)
    tested = found.metadata["methods"].get(IN_SERVICE)
    if champion is not None and described(champion) != tested:
        say(f"{line}: another prior is in service than the one compared with; comparing again")
        tell("dataset.published", of, version)
        return
    missing = [
        each for each in found.metadata.get("failures", []) if each["method"] in (of.challenger, IN_SERVICE)
    ]
    if missing:
        raise NumericalError(
            f"{line}: no decision, for {count(len(missing), 'run')} failed, the first: {missing[0]['reason']}"
        )
    regrets = regrets_of_priors(simple_regrets(found.records, found.metadata), found.metadata)
    iteration = of.promotion.budget or of.design.iterations
    decision = verdict(regrets, of.challenger, IN_SERVICE if champion is not None else None, iteration)
    prior = add_prior(of.priors, line, find_prior_for_use(of.for_use(version), of.challenger))
    decide = put_into_service if decision.promoted else hold_back
    evidence = {**evidence_of(of, version), **decision.evidence()}
    decide(of.priors, line, prior, decision.reason, evidence, since=before)
    done = "promoted" if decision.promoted else "held back"
    say(f"{line}: {prior} {done}: {decision.reason}")
    create_markdown_artifact(
        key=surroundings.artifact_key("promotion", line),
        markdown=f"**{done}** `{prior}`\n\n{decision.reason}",
        description=f"{of.dataset}:{version}",
    )
    tell("prior.promoted" if decision.promoted else "prior.held_back", of, version, line=line, prior=prior)


def _require_same(service: Service, version: str, metadata: EvaluationMetadata, evaluation: str) -> None:
    """Refuse an evaluation that says nothing about the prior: of another version, or of other settings."""
    experiment = service.experiment(version)
    asked = {
        "dataset": experiment.dataset,
        "settings of the challenger": described(experiment.arms[service.challenger]),
        "iterations": experiment.iterations,
        "seeds": len(experiment.seeds),
    }
    found = {
        "dataset": metadata["dataset"],
        "settings of the challenger": metadata["methods"].get(service.challenger),
        "iterations": metadata["iterations"],
        "seeds": len(metadata["seeds"]) // metadata.get("runs_per_prior", 1),
    }
    for name, value in asked.items():
        if found[name] != value:
            raise InvalidInputError(
                f"{name}: {found[name]!r}, and not {value!r}",
                where=evaluation,
                fix=f"evaluate {experiment.dataset} by this service",
            )
