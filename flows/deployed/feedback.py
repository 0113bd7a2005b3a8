"""Feed back: traces of evaluations become a version of runs; real new trials go to the inbox."""

from __future__ import annotations

from flows.deployed import surroundings  # isort: skip - before anything that imports JAX

from pathlib import Path

# While it is imported, no other thread can import anything; so it is, before Prefect has threads.
import tensorflow_datasets  # noqa: F401
from prefect import flow

from flows.feedback import new_trials_to_inbox, runs_name, unrecorded
from flows.progress import say
from flows.service import read_service
from pd1_builder.bo_runs.record import record_runs


@flow(name="feedback", timeout_seconds=12 * 3600, **surroundings.options())
def feedback(service: str, evaluation: str = "") -> None:
    """Record an evaluation as runs; or all that are not, and put new trials of tuning runs into the inbox.

    What an evaluation observed is offline: it repeats trials that the dataset has, and never enters it.
    Trials that were trained for a tuning run are new: the next refresh makes a version of them.

    Args:
      service: the service file.
      evaluation: folder of the evaluation to record; empty: those of the ledger that are not recorded.

    Raises:
      HyperBOError: as `pd1_builder.bo_runs.record.record_runs` and `flows.feedback.new_trials_to_inbox`.
    """
    of = read_service(Path(service))
    for each in [Path(evaluation)] if evaluation else unrecorded(of):
        manifest = record_runs(runs_name(of), each, data_dir=of.design.data_dir)
        say(f"{manifest.reference}: content {manifest.content_hash[:12]}")
    if of.source.tuning_runs and not evaluation:
        added = new_trials_to_inbox(of)
        say(f"{of.dataset}: {added or 'no'} new trials of tuning runs for the inbox")
