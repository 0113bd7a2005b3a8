"""Promote: a prior takes the place of the one in service only where it is better."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

from prefect import flow
from prefect.artifacts import create_markdown_artifact

from flows import evaluation_folder
from flows.artifacts import artifact_key
from flows.champion import (
    IN_SERVICE,
    champion_of,
    described,
    evidence_of,
    is_challenger,
    is_decided,
    line_of,
)
from flows.contest_failures import failure_recorded
from flows.events import tell
from flows.pretrain import find_prior_for_use
from flows.progress import say
from flows.service import Service, read_service
from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.evaluation.findings import count
from hyperbo.evaluation.metadata import EvaluationMetadata
from hyperbo.evaluation.promotion import Promotion, verdict
from hyperbo.evaluation.regret import regrets_of_priors, simple_regrets
from hyperbo.prior_catalog import add_prior, hold_back
from hyperbo.prior_catalog import promote as put_into_service


@flow(name="promote", timeout_seconds=3600, **surroundings.options())
def promote(service: str, version: str, evaluation: str) -> bool:
    """Compare the new prior with the one in service, and decide; the decision is recorded once.

    Args:
      service: the service file.
      version: of its dataset.
      evaluation: folder of the evaluation of that version, made by the flow `evaluate`.

    Returns:
      Whether it is decided; False where another prior is in service than the one evaluated, so that the new
      one has to be compared with that.

    Raises:
      InvalidInputError: the evaluation cannot be read, or is of another version or other settings.
      NotAvailableError: the prior to promote is not in the ledger.
      NumericalError: runs of one of the two failed; there is no decision, which is recorded.
      VersionConflictError: somebody else changed what is in service meanwhile.
    """
    of = read_service(Path(service))
    found = evaluation_folder.read(Path(evaluation))
    _require_same(of, version, found.metadata, evaluation)
    line = of.promotion.line
    if is_decided(of, version):
        say(f"{line}: decided on the prior of {version} before; nothing to do")
        return True
    before, champion = line_of(of), champion_of(of)
    itself = champion is not None and is_challenger(champion, of, version)
    tested = found.metadata["methods"].get(IN_SERVICE)
    if champion is not None and not itself and described(champion) != tested:
        say(f"{line}: another prior is in service than the one compared with; comparing again")
        tell("dataset.published", of, version)
        return False
    iteration = of.promotion.budget or of.design.iterations
    if itself:
        reason = f"{of.challenger} trained on {version} is in service already: there is nothing to compare."
        decision = Promotion(False, reason, of.challenger, IN_SERVICE, iteration, (), None)
    else:
        with failure_recorded(of, version):
            _require_whole(line, found.metadata, (of.challenger, IN_SERVICE))
        regrets = regrets_of_priors(simple_regrets(found.records, found.metadata), found.metadata)
        decision = verdict(regrets, of.challenger, IN_SERVICE if champion is not None else None, iteration)
    prior = add_prior(of.priors, line, find_prior_for_use(of.for_use(version), of.challenger))
    decide = put_into_service if decision.promoted else hold_back
    evidence = {**evidence_of(of, version), **decision.evidence()}
    decide(of.priors, line, prior, decision.reason, evidence, since=before)
    done = "promoted" if decision.promoted else "held back"
    say(f"{line}: {prior} {done}: {decision.reason}")
    create_markdown_artifact(
        key=artifact_key("promotion", line),
        markdown=f"**{done}** `{prior}`\n\n{decision.reason}",
        description=f"{of.dataset}:{version}",
    )
    tell("prior.promoted" if decision.promoted else "prior.held_back", of, version, line=line, prior=prior)
    return True


def _require_whole(line: str, metadata: EvaluationMetadata, labels: tuple[str, ...]) -> None:
    """Refuse to decide where runs of one of the two failed."""
    failed = [each for each in metadata.get("failures", []) if each["method"] in labels]
    if failed:
        raise NumericalError(
            f"{line}: no decision, for {count(len(failed), 'run')} failed, the first: {failed[0]['reason']}"
        )


def _require_same(service: Service, version: str, metadata: EvaluationMetadata, evaluation: str) -> None:
    """Refuse an evaluation that says nothing about the prior: of another version, or of other settings."""
    experiment = service.experiment(version)
    bed = experiment.test_bed()
    asked = {
        "dataset": experiment.dataset,
        "preparation": bed.data.provenance.preparation,
        "protocol": bed.protocol,
        "settings of the challenger": described(experiment.arms[service.challenger]),
        "tasks": [task.name for task in bed.tests],
        "iterations": experiment.iterations,
        "seeds": [run_seed for seed in experiment.seeds for run_seed in bed.run_seeds(seed)],
    }
    found = {
        **{name: metadata[name] for name in asked if name in metadata},
        "settings of the challenger": metadata["methods"].get(service.challenger),
    }
    for name, value in asked.items():
        if found.get(name) != value:
            raise InvalidInputError(
                f"{name}: {found.get(name)!r}, and not {value!r}",
                where=evaluation,
                fix=f"evaluate {experiment.dataset} by this service",
            )
