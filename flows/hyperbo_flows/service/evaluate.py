"""Evaluate: offline Bayesian optimization with the priors of a version, spread over arms and folds."""

from __future__ import annotations

from hyperbo_flows.service import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

from prefect import flow
from prefect.artifacts import create_link_artifact, create_markdown_artifact

from hyperbo.evaluation.measures.findings import budgets_of_findings, headline, simplest_ahead
from hyperbo.evaluation.measures.regret import simple_regrets
from hyperbo.evaluation.records.metadata import run_unit
from hyperbo.evaluation.records.run_array import any_comparable
from hyperbo_flows.experiments import evaluation_folder
from hyperbo_flows.experiments.evaluate import simulate, untrained
from hyperbo_flows.experiments.plan import make_plan
from hyperbo_flows.experiments.write_evaluation import write_evaluation
from hyperbo_flows.service.artifacts import artifact_key
from hyperbo_flows.service.contest import contest, failure_recorded
from hyperbo_flows.service.events import tell
from hyperbo_flows.service.runner import spread
from hyperbo_flows.service.settings import Service, read_service


@flow(name="evaluate", timeout_seconds=7 * 24 * 3600, **surroundings.OPTIONS)
def evaluate(service: str, version: str) -> str:
    """Simulate what is missing of every arm, write the report, and tell that it is there.

    Args:
      service: path of the service file.
      version: version of its dataset.

    Returns:
      The folder of the evaluation.

    Raises:
      NotAvailableError: no prior of an arm is in the ledger.
      NumericalError: every run failed; that is recorded.
      HyperBOError: the service file or the version cannot be read.
    """
    settings = read_service(Path(service))
    plan = make_plan(contest(settings, version))
    not_trained = untrained(plan)
    runner = spread("simulate", plan.experiment.dataset, settings.compute)
    failures = {**not_trained, **simulate(plan, not_trained, runner)}
    command = f"hyperbo flows run evaluate --service {settings.path} --version {version}"
    with failure_recorded(settings, version):
        folder = write_evaluation(plan, command, failures)
    _show(settings, version, folder)
    tell("prior.evaluated", settings, version, evaluation=str(folder), failed=len(failures))
    return str(folder)


def _show(service: Service, version: str, folder: Path) -> None:
    evaluation = evaluation_folder.read(folder)
    regrets = simple_regrets(evaluation.records, evaluation.metadata)
    report = (folder / evaluation_folder.REPORT_NAME).absolute()
    create_link_artifact(
        key=artifact_key("report", service.dataset, version),
        link=report.as_uri(),
        link_text=f"report {service.dataset}:{version}",
    )
    if any_comparable(regrets):
        unit = run_unit(evaluation.metadata)
        found = [headline(regrets, each, unit) for each in budgets_of_findings(service.design.iterations)]
        simplest = simplest_ahead(regrets, evaluation.metadata)
        create_markdown_artifact(
            key=artifact_key("evaluation", service.dataset, version),
            markdown="\n\n".join([*([simplest] if simplest else []), *found, f"Report: `{report}`"]),
            description="regret",
        )
