"""Simulations of an experiment, mapped over methods and folds by whatever task runner the flow has."""

from __future__ import annotations

from prefect import flow

from flows.evaluate import simulate_arm
from flows.experiment import Experiment
from flows.identities import Failures


@flow(name="simulate", flow_run_name="{experiment.dataset}", validate_parameters=False)
def simulate_mapped(experiment: Experiment, failures: Failures) -> Failures:
    """Simulate what is missing of every arm, fold by fold.

    Args:
      experiment: what is compared.
      failures: runs that are not to be tried.

    Returns:
      The runs that failed here, and why.

    Raises:
      HyperBOError: as `flows.evaluate.simulate_arm`, of the first part that raised.
    """
    folds = experiment.test_bed().folds
    futures = [
        simulate_arm.submit(experiment, label, failures, held_out)
        for label in experiment.arms
        for held_out in folds
    ]
    failed = {}
    for future in futures:
        failed |= future.result()
    return failed
