"""Promote: a prior takes the place of the one in service only where it is better."""

from __future__ import annotations

from hyperbo_flows.service import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

from prefect import flow
from prefect.artifacts import create_markdown_artifact

from hyperbo.errors import InvalidInputError, NumericalError
from hyperbo.evaluation.measures.promotion import PromotionDecision, decide_promotion
from hyperbo.evaluation.measures.regret import regrets_of_priors, simple_regrets
from hyperbo.evaluation.records.metadata import EvaluationMetadata
from hyperbo.priors.catalog import add_prior, hold_back
from hyperbo.priors.catalog import promote as put_into_service
from hyperbo.storage.printable import count
from hyperbo_flows.experiments import evaluation_folder
from hyperbo_flows.experiments.plan import Plan, make_plan
from hyperbo_flows.experiments.pretrain import find_prior_for_use
from hyperbo_flows.process.progress import say
from hyperbo_flows.service.artifacts import artifact_key
from hyperbo_flows.service.contest import (
    IN_SERVICE,
    champion_of,
    described,
    evidence_of,
    failure_recorded,
    is_challenger,
    is_decided,
    line_of,
)
from hyperbo_flows.service.events import tell
from hyperbo_flows.service.settings import read_service


@flow(name="promote", timeout_seconds=3600, **surroundings.OPTIONS)
def promote(service: str, version: str, evaluation: str) -> bool:
    """Compare the new prior with the one in service, and decide. The decision is recorded once.

    Args:
      service: path of the service file.
      version: version of its dataset.
      evaluation: folder of the evaluation of that version, made by the flow `evaluate`.

    Returns:
      Whether there is a decision. There is none where another prior came into service than the one in the
      evaluation: the new prior has to be compared with that.

    Raises:
      InvalidInputError: the evaluation cannot be read, or is of another version or other settings.
      NotAvailableError: the prior to promote is not in the ledger.
      NumericalError: runs of one of the two failed; that there is no decision is recorded.
      VersionConflictError: somebody else changed what is in service meanwhile.
    """
    settings = read_service(Path(service))
    plan = make_plan(settings.experiment(version))
    found = evaluation_folder.read(Path(evaluation))
    _require_same(plan, settings.challenger, found.metadata, evaluation)
    line = settings.promotion.line
    if is_decided(settings, version):
        say(f"{line}: decided on the prior of {version} before; nothing to do")
        return True
    before, champion = line_of(settings), champion_of(settings)
    itself = champion is not None and is_challenger(champion, settings, version)
    tested = found.metadata["methods"].get(IN_SERVICE)
    if champion is not None and not itself and described(champion) != tested:
        say(f"{line}: another prior is in service than the one compared with; comparing again")
        tell("dataset.published", settings, version)
        return False
    iteration = settings.promotion.budget or settings.design.iterations
    if itself:
        reason = (
            f"{settings.challenger} trained on {version} is in service already: there is nothing to compare."
        )
        decision = PromotionDecision(False, reason, settings.challenger, IN_SERVICE, iteration, (), None)
    else:
        with failure_recorded(settings, version):
            _require_whole(line, found.metadata, (settings.challenger, IN_SERVICE))
        regrets = regrets_of_priors(simple_regrets(found.records, found.metadata), found.metadata)
        against = IN_SERVICE if champion is not None else None
        decision = decide_promotion(regrets, settings.challenger, against, iteration)
    prior = add_prior(settings.priors, line, find_prior_for_use(plan, settings.challenger))
    record = put_into_service if decision.promoted else hold_back
    evidence = {**evidence_of(settings, version), **decision.evidence()}
    record(settings.priors, line, prior, decision.reason, evidence, since=before)
    done = "promoted" if decision.promoted else "held back"
    say(f"{line}: {prior} {done}: {decision.reason}")
    create_markdown_artifact(
        key=artifact_key("promotion", line),
        markdown=f"**{done}** `{prior}`\n\n{decision.reason}",
        description=f"{settings.dataset}:{version}",
    )
    event = "prior.promoted" if decision.promoted else "prior.held_back"
    tell(event, settings, version, line=line, prior=prior)
    return True


def _require_whole(line: str, metadata: EvaluationMetadata, labels: tuple[str, ...]) -> None:
    """Refuse to decide where runs of one of the two failed."""
    failed = [each for each in metadata.get("failures", []) if each["method"] in labels]
    if failed:
        raise NumericalError(
            f"{line}: no decision: {count(len(failed), 'run')} failed, the first: {failed[0]['reason']}"
        )


def _require_same(plan: Plan, challenger: str, metadata: EvaluationMetadata, evaluation: str) -> None:
    """Refuse an evaluation of another version or of other settings: it says nothing about the prior."""
    experiment, test_bed = plan.experiment, plan.test_bed
    asked = {
        "dataset": experiment.dataset,
        "preparation": test_bed.data.provenance.preparation,
        "protocol": test_bed.protocol,
        "settings of the challenger": described(experiment.arms[challenger]),
        "tasks": [task.name for task in test_bed.tests],
        "iterations": experiment.iterations,
        "seeds": [run_seed for seed in experiment.seeds for run_seed in test_bed.run_seeds(seed)],
    }
    found = {
        **{name: metadata[name] for name in asked if name in metadata},
        "settings of the challenger": metadata["methods"].get(challenger),
    }
    for name, value in asked.items():
        if found.get(name) != value:
            raise InvalidInputError(
                f"{name}: {found.get(name)!r}, and not {value!r}",
                where=evaluation,
                fix=f"evaluate {experiment.dataset} by this service",
            )
