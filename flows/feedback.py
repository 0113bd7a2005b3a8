"""Feedback: trials that were trained for tuning runs, on their way into the inbox of a service."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fsspec.core import url_to_fs

from flows.service import Service
from flows.sources import fetched, listing
from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.search_space import PD1_SEARCH_SPACE
from pd1_builder.bo_runs.recipe import evaluations_in
from pd1_builder.catalog import find
from pd1_builder.releases import KEPT_FOLDER
from pd1_builder.staging import lock_version
from pd1_builder.stored_records import StoredRecords
from pipelines.bo_runs.evaluation import read_evaluation
from pipelines.parse import parse_trial
from pipelines.raw_files import describe_raw_files, is_raw_file, read_lines

# What the trials of a tuning run are called in the inbox; the number is a hash of their content.
_NAME = "pd1_unmatched_phase0_results-tuning-{digest}.jsonl.gz"


def runs_name(service: Service) -> str:
    """Name of the dataset `bo_runs/<name>` that evaluations of a service are recorded in."""
    return service.dataset.replace("/", "_")


def unrecorded(service: Service) -> list[Path]:
    """Folders of the ledger's evaluations on a service's dataset that are not in the dataset of runs.

    Raises:
      HyperBOError: an evaluation, or the version of the dataset of runs, cannot be read.
    """
    try:
        version = find(f"bo_runs/{runs_name(service)}", service.design.data_dir)
        held = {folder.name for folder in evaluations_in(version.folder / KEPT_FOLDER)}
    except NotAvailableError:
        held = set()
    found = []
    for folder in sorted((service.design.runs / "evaluation").glob("[0-9a-f]*")):
        evaluation = read_evaluation(folder)
        of_service = evaluation.metadata["dataset"].startswith(f"{service.dataset}:")
        if of_service and evaluation.evaluation_id not in held:
            found.append(folder)
    return found


def new_trials_to_inbox(service: Service) -> int:
    """Put the trials of tuning runs that the dataset has not, and the inbox neither, into the inbox.

    Every row is read as a build reads it before anything is written, and a run with a row that cannot be
    read is left out. The file appears in the inbox when it is complete. Of two processes one waits.

    Returns:
      How many trials are new.

    Raises:
      InvalidInputError: a row of a tuning run cannot be read; names file and line. The others are put there.
      NotAvailableError: the inbox cannot be read or written.
    """
    with lock_version(service.design.runs / "sources" / "feedback", lambda: None):
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
    except Exception as error:  # Every file system has errors of its own.
        raise NotAvailableError(f"{inbox} cannot be written: {type(error).__name__}: {error}") from error
