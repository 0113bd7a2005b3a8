"""Feedback: evaluations become a version of runs; real new trials of tuning runs go to the inbox."""

from __future__ import annotations

from hyperbo_flows.service import surroundings  # isort: skip - before anything that imports JAX

import gzip
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Its import blocks the imports of all other threads; so it comes before Prefect has threads.
import tensorflow_datasets  # noqa: F401
from fsspec.core import url_to_fs
from hyperbo_pipelines.bo_runs.evaluation import find_evaluation_files
from hyperbo_pipelines.curate.raw_files import read_lines
from hyperbo_pipelines.pd1.layout import describe_raw_files, is_raw_file
from hyperbo_pipelines.pd1.parse import parse_trial
from prefect import flow

from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.storage.staging import lock
from hyperbo_flows.process.progress import say
from hyperbo_flows.service.settings import Service, read_service
from hyperbo_flows.service.sources import fetched, listing
from pd1_builder.bo_runs.recipe import evaluations_in, record_runs
from pd1_builder.release.build_version import KEPT_FOLDER
from pd1_builder.version.catalog import find
from pd1_builder.version.stored_records import StoredRecords

# Name of a file of trials in the inbox; the digest is of its content.
_NAME = "pd1_unmatched_phase0_results-tuning-{digest}.jsonl.gz"


@flow(name="feedback", timeout_seconds=12 * 3600, **surroundings.OPTIONS)
def feedback(service: str, evaluation: str = "") -> None:
    """Record evaluations as runs, and put new trials of tuning runs into the inbox.

    What an evaluation observed is offline: it repeats trials that the dataset has, and never enters it.
    Trials that were trained for a tuning run are new: the next refresh makes a version of them.

    Args:
      service: path of the service file.
      evaluation: folder of the only evaluation to record, without trials of tuning runs; empty: all of the
        ledger that are not recorded, and the trials.

    Raises:
      InvalidInputError: an evaluation, or a row of a tuning run, cannot be read.
      NotAvailableError: the inbox cannot be read or written.
    """
    settings = read_service(Path(service))
    for folder in [Path(evaluation)] if evaluation else _unrecorded(settings):
        manifest = record_runs(_runs_name(settings), folder, data_dir=settings.design.data_dir)
        say(f"{manifest.reference}: content {manifest.content_hash[:12]}")
    if settings.source.tuning_runs and not evaluation:
        added = new_trials_to_inbox(settings)
        say(f"{settings.dataset}: {added or 'no'} new trials of tuning runs for the inbox")


def _runs_name(service: Service) -> str:
    """Name of the dataset `bo_runs/<name>` that keeps the evaluations of a service."""
    return service.dataset.replace("/", "_")


def _unrecorded(service: Service) -> list[Path]:
    """Folders of the ledger's evaluations on a service's dataset that are not in the dataset of runs."""
    try:
        version = find(f"bo_runs/{_runs_name(service)}", service.design.data_dir)
        held = {folder.name for folder in evaluations_in(version.folder / KEPT_FOLDER)}
    except NotAvailableError:
        held = set()
    found = []
    for folder in sorted((service.design.runs / "evaluation").glob("[0-9a-f]*")):
        evaluation = find_evaluation_files(folder)
        of_service = evaluation.metadata["dataset"].startswith(f"{service.dataset}:")
        if of_service and evaluation.evaluation_id not in held:
            found.append(folder)
    return found


def new_trials_to_inbox(service: Service) -> int:
    """Put the trials of tuning runs into the inbox that neither the dataset nor the inbox has.

    Every row is first read as a build reads it; a run with a row that cannot be read is left out. The file
    appears in the inbox when it is complete. Of two processes one waits.

    Returns:
      How many trials are new.

    Raises:
      InvalidInputError: a row of a tuning run cannot be read; names file and line. Other runs are put there.
      NotAvailableError: the inbox cannot be read or written.
    """
    with lock(service.design.runs / "sources" / "feedback", lambda: None):
        known = _known(service)
        new: dict[str, bytes] = {}
        damaged: list[InvalidInputError] = []
        for path in sorted(Path(service.source.tuning_runs).rglob("trials/*.jsonl.gz")):
            try:
                trials = dict(_trials(path))
            except InvalidInputError as error:
                damaged.append(error)
            else:
                new |= {each: line for each, line in trials.items() if each not in known and each not in new}
        if new:
            content = b"".join(new[trial_id] for trial_id in sorted(new))
            name = _NAME.format(digest=hashlib.sha256(content).hexdigest()[:12])
            _put(service.source.inbox, name, gzip.compress(content, mtime=0))
        if damaged:
            raise damaged[0]
    return len(new)


def _known(service: Service) -> set[str]:
    """Ids of the trials that are in the newest version, or in the inbox."""
    try:
        version = find(service.dataset, service.design.data_dir)
        known = set(StoredRecords(version.folder).trial_ids.to_pylist())
    except NotAvailableError:
        known = set()
    with tempfile.TemporaryDirectory(prefix="inbox-") as scratch:
        for file in listing(service.source.inbox):
            if is_raw_file(Path(file.name)):
                known |= {trial_id for trial_id, _ in _trials(fetched(file, Path(scratch)))}
    return known


def _trials(path: Path) -> Iterator[tuple[str, bytes]]:
    (file,) = describe_raw_files([path], str(path.parent))
    for number, line in read_lines(path):
        try:
            trial = parse_trial(line, file, number, PD1_SEARCH_SPACE, "")
        except InvalidInputError as error:
            raise InvalidInputError(error.what, where=f"{path}:{number}", fix="remove the row") from error
        if not trial.origin:
            raise InvalidInputError("origin is missing", where=f"{path}:{number}", fix="name the tuning run")
        yield trial.trial_id, line if line.endswith(b"\n") else line + b"\n"


def _put(inbox: str, name: str, content: bytes) -> None:
    system, folder = url_to_fs(inbox)
    # A hidden name is not listed: the file is there when it is complete.
    hidden, final = f"{folder}/.{name}", f"{folder}/{name}"
    try:
        system.makedirs(folder, exist_ok=True)
        system.pipe_file(hidden, content)
        system.mv(hidden, final)
    except Exception as error:  # File systems differ in their errors.
        raise NotAvailableError(f"{inbox} cannot be written: {type(error).__name__}: {error}") from error
