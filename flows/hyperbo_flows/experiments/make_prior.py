"""Priors for tuning: trained on all that a dataset version holds, or pulled from another catalogue."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from hyperbo.bayesopt.online_methods import Retrained
from hyperbo.bayesopt.propose import OnlineMethod
from hyperbo.data.tuning_data import TuningData
from hyperbo.data.warping import output_warping
from hyperbo.errors import InvalidInputError, NotAvailableError, NumericalError
from hyperbo.evaluation.measures.worth import Worth
from hyperbo.methods import HNLL
from hyperbo.pretrain import Job, Pretrained, all_trained, outcomes_of
from hyperbo.priors.catalog import add_prior, promote
from hyperbo.priors.file import PRIOR_FILES, Prior, save_prior, trained_prior
from hyperbo.priors.history import from_json
from hyperbo.priors.names import LINE_NAME, content_id, listed, read_line
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.code_version import NUMERIC, code_version
from hyperbo.storage.printable import count
from hyperbo_flows.experiments.arms import at_most_steps
from hyperbo_flows.experiments.choose_training import choose_method, few_trials, usable_tasks
from hyperbo_flows.experiments.worth import LeftOut, left_out, worth_of
from hyperbo_flows.process.progress import progress_line, say
from pd1_builder.read.load import load
from pd1_builder.version.catalog import find
from pd1_builder.version.manifest import read_manifest

# What online tuning trains on: values mapped to [-2, 2].
PREPARATION = "online"
# In bytes. A prior has some thousand numbers; a much larger file is no prior.
_LARGEST_FILE = 64 << 20


def with_steps(method: OnlineMethod, steps: int | None) -> OnlineMethod:
    """A method with another number of Adam steps at most; unchanged if it takes none or `steps` is None."""
    if steps is None or not isinstance(method, Retrained) or not isinstance(method.method, HNLL):
        return method
    training = at_most_steps(method.method.training, steps)
    return replace(method, method=replace(method.method, training=training))


def warping_of(dataset: str, data_dir: Path | None) -> str:
    """Name of the output warping of a dataset version."""
    return str(read_manifest(find(dataset, data_dir).folder).parameters["warping"])


def prior_of_job(
    label: str, method: Retrained, job: Job, held_out: str, warping: str, trained: Pretrained
) -> Prior:
    """A prior that an online method has trained, with its description.

    Args:
      label: name of the method.
      method: its settings.
      job: what it was trained on.
      held_out: task dataset that was held out; empty where none was.
      warping: name of the output warping of the training data.
      trained: result of the pre-training.
    """
    return trained_prior(
        trained,
        job,
        label,
        method.method.architecture,
        method.method.training,
        held_out=held_out,
        output_warping=warping,
        code_version=code_version(*NUMERIC),
    )


def train_prior(
    catalog: Path,
    line: str,
    dataset: str,
    method: str | None = None,
    steps: int | None = None,
    seed: int = 0,
    data_dir: Path | None = None,
    *,
    worth: int = 0,
) -> str:
    """Pre-train a prior on all tasks of a version, measure what it is worth, and put it in service.

    Lines say which tasks are used, by which method and why, and what the prior is worth. The prior goes into
    service whatever it is worth; a warning says where it does not help.

    Args:
      catalog: the catalogue's folder.
      line: the line that the prior is for.
      dataset: `<name>/<config>:<version>`; by the preparation `online` its values are mapped to [-2, 2].
      method: H-EKL or H-NLL, at the settings of the online experiments; None: `choose_method` decides.
      steps: Adam steps of H-NLL, at most; None: those of its settings.
      seed: of the model, of the points drawn and of the folds of the measurement.
      data_dir: folder of dataset versions; None: the default one.
      worth: how many tasks, or task datasets, are left out at most to measure what the prior is worth; 0: it
        is not measured. A prior is trained without each.

    Returns:
      The prior's identifier in the catalogue.

    Raises:
      InvalidInputError: the method or the line is unknown, the version has no matched inputs for H-EKL, no
        task can be used, a single one cannot be measured, or the catalogue cannot be written.
      NotAvailableError: there is no such version.
      TrainingError: the training gave no usable prior.
    """
    data, left_aside = usable_tasks(load(dataset, PREPARATION, data_dir=data_dir, skip_empty_tasks=True))
    for said in (*left_aside, *few_trials(data)):
        say(said)
    chosen = choose_method(data, method)
    tested = left_out(data, worth, seed) if worth else None
    say(chosen.reason)
    settings = with_steps(chosen.method, steps)
    assert isinstance(settings, Retrained)
    warping = warping_of(dataset, data_dir)
    job, trained, measured = _trained(data, chosen.name, settings, warping, tested, seed)
    prior = prior_of_job(chosen.name, settings, job, "", warping, trained)
    evidence: dict[str, Any] = {
        "dataset": data.provenance.dataset,
        "method": chosen.name,
        "chosen": chosen.reason,
    }
    if measured is not None:
        evidence["worth"] = measured.evidence()
    with tempfile.TemporaryDirectory() as folder:
        save_prior(Path(folder), prior)
        reason = f"Trained by hand on {data.provenance.dataset}."
        identifier = _put_into_service(catalog, line, Path(folder), reason, evidence)
    for said in measured.lines() if measured is not None else ():
        say(said)
    if measured is not None and measured.verdict == "does not help":
        say("warning: it is in service all the same; tune by Optuna's TPE, or train again with more tasks")
    return identifier


def _trained(
    data: TuningData, name: str, settings: Retrained, warping: str, tested: LeftOut | None, seed: int
) -> tuple[Job, Pretrained, Worth | None]:
    """The prior of all tasks, and what priors like it are worth; they are trained as one batch."""
    folds = tested.folds if tested is not None else ()
    if not isinstance(settings.method, HNLL):
        folds = tuple(fold for fold in folds if fold.training.complete_blocks)
    jobs = [Job(data, seed), *(Job(fold.training, seed) for fold in folds)]
    label = f"train {name}" + (f", and {count(len(folds), 'prior')} to measure it" if folds else "")
    with progress_line(label, "steps") as progress:
        outcomes = outcomes_of(lambda: settings.pretrain(jobs, progress))
    trained = all_trained(outcomes[:1])[0]
    if tested is None:
        return jobs[0], trained, None
    usable = [
        (fold, outcome.gp)
        for fold, outcome in zip(folds, outcomes[1:], strict=True)
        if not isinstance(outcome, NumericalError)
    ]
    if not usable:
        say("its worth cannot be measured: no prior could be trained with a part left out")
        return jobs[0], trained, None
    left = replace(tested, folds=tuple(fold for fold, _ in usable))
    with progress_line("measure what it is worth", "runs") as progress:
        measured = worth_of(left, [gp for _, gp in usable], output_warping(warping), progress)
    return jobs[0], trained, measured


def pull_prior(catalog: Path, reference: str, source: str) -> str:
    """Copy a prior from another catalogue, check its content, and put it in service here.

    Args:
      catalog: the catalogue's folder.
      reference: a line, for its prior in service there; or `<line>@<identifier>`.
      source: the other catalogue: a folder, or any URL of fsspec, such as that of a folder on a web server.

    Returns:
      The prior's identifier.

    Raises:
      NotAvailableError: there is no such line or prior, or the source cannot be reached.
      InvalidInputError: the reference is malformed, or the files are not those that the identifier names.
      VersionConflictError: a file has another format.
    """
    line, at, wanted = reference.partition("@")
    if not LINE_NAME.fullmatch(line):
        raise InvalidInputError(
            f"{reference!r} is no name of a prior", fix="write <name>/<name>, such as pd1-mini/h-ekl"
        )
    where = f"{source.rstrip('/')}/{line}/current.json"
    found = from_json(line, _fetched(where), where=where)
    known = list(dict.fromkeys(each.prior for each in found.history))
    fitting = [each for each in known if each.startswith(wanted)] if at else [found.current or ""]
    if len(fitting) != 1 or not fitting[0]:
        raise NotAvailableError(f"no prior {reference} in {source}; priors of the line: {listed(known)}")
    (prior_id,) = fitting
    contents = [_fetched(f"{source.rstrip('/')}/{line}/{prior_id}/{name}") for name in PRIOR_FILES]
    if content_id(contents) != prior_id:
        raise InvalidInputError(
            f"the files have another content than prior {prior_id}",
            where=f"{source.rstrip('/')}/{line}/{prior_id}",
            fix="pull again, or ask the owner of the catalogue",
        )
    with tempfile.TemporaryDirectory() as folder:
        for name, content in zip(PRIOR_FILES, contents, strict=True):
            write_atomically(Path(folder) / name, content)
        return _put_into_service(catalog, line, Path(folder), f"Pulled from {source}.", {"source": source})


def _put_into_service(
    catalog: Path, line: str, folder: Path, reason: str, evidence: Mapping[str, Any]
) -> str:
    prior_id, found = add_prior(catalog, line, folder), read_line(catalog, line)
    if found.current != prior_id:
        # A prior may come back into service. The number makes this decision differ from the first one.
        promote(
            catalog, line, prior_id, reason, {**evidence, "decision": len(found.history) + 1}, since=found
        )
    return prior_id


def _fetched(url: str) -> bytes:
    """The content of a file; a file larger than a prior can be is refused."""
    import fsspec

    try:
        filesystem, path = fsspec.url_to_fs(url)
        with filesystem.open(path, "rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except (OSError, ValueError, ImportError) as error:
        raise NotAvailableError(f"{url}: cannot be read: {error!r}") from error
    if len(content) > _LARGEST_FILE:
        raise InvalidInputError(f"{PurePosixPath(path).name} is larger than a prior can be", where=url)
    return content
