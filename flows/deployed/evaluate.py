"""Evaluate: offline Bayesian optimization with the priors of a version, mapped over methods and folds."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

from prefect import flow
from prefect.artifacts import create_link_artifact, create_markdown_artifact

from flows import evaluation_folder
from flows.artifacts import artifact_key
from flows.champion import contest
from flows.contest_failures import failure_recorded
from flows.evaluate import untrained
from flows.events import tell
from flows.mapped import simulate_mapped
from flows.report import write_evaluation
from flows.service import Service, read_service
from flows.task_runners import task_runner
from hyperbo.evaluation.findings import budgets_of_findings, headline
from hyperbo.evaluation.metadata import run_unit
from hyperbo.evaluation.regret import simple_regrets
from hyperbo.evaluation.run_array import any_comparable


@flow(name="evaluate", timeout_seconds=7 * 24 * 3600, **surroundings.options())
def evaluate(service: str, version: str) -> str:
    """Simulate what is missing of every arm, write the report, and tell that it is there.

    Args:
      service: the service file.
      version: of its dataset.

    Returns:
      The folder of the evaluation.

    Raises:
      NotAvailableError: no prior of an arm is in the ledger.
      NumericalError: every run failed; that is recorded.
      HyperBOError: as `flows.evaluate.simulate_arm` and `flows.report.write_evaluation`.
    """
    of = read_service(Path(service))
    experiment = contest(of, version)
    not_trained = untrained(experiment)
    simulate = simulate_mapped.with_options(task_runner=task_runner(of.compute))
    failures = {**not_trained, **simulate(experiment, not_trained)}
    command = f"hyperbo flows run evaluate --service {of.path} --version {version}"
    with failure_recorded(of, version):
        folder = write_evaluation(experiment, command, failures)
    _show(of, version, folder)
    tell("prior.evaluated", of, version, evaluation=str(folder), failed=len(failures))
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
        create_markdown_artifact(
            key=artifact_key("evaluation", service.dataset, version),
            markdown="\n\n".join([*found, f"Report: `{report}`"]),
            description="regret",
        )
