"""Priors to take: trained on all that a dataset version holds, or pulled from another catalogue."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from flows.online import PREPARATION, describe, with_steps
from flows.progress import progress_line
from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.files import write_atomically
from hyperbo.online import ONLINE_METHODS, Retrained
from hyperbo.pretrain import Job
from hyperbo.prior import Prior, save_prior
from hyperbo.prior_catalog import add_prior, promote, read_line
from hyperbo.prior_entries import LINE_NAME, PRIOR_FILES, content_id, listed
from hyperbo.prior_history import from_json
from pd1_builder.catalog import find
from pd1_builder.load import load
from pd1_builder.manifest import read_manifest

# A prior has some thousand numbers; what is much larger is none.
_LARGEST_FILE = 64 << 20


def train_prior(
    catalog: Path,
    line: str,
    dataset: str,
    method: str = "H-EKL",
    steps: int | None = None,
    seed: int = 0,
    data_dir: Path | None = None,
) -> str:
    """Pre-train a prior on all tasks of a version, with nothing held out, and put it in service.

    Args:
      catalog: the catalogue's folder.
      line: the line that the prior is for.
      dataset: `<name>/<config>:<version>`; by the preparation `online` its values are mapped to [-2, 2].
      method: H-EKL or H-NLL, at the settings of the online experiments.
      steps: Adam steps of H-NLL; None: the paper's.
      seed: of the model and of the points drawn.
      data_dir: folder of dataset versions; None: the default one.

    Returns:
      The prior's identifier in the catalogue.

    Raises:
      HyperBOError: the method or the version is unknown, the version has no matched inputs for H-EKL, or the
        catalogue cannot be written.
      TrainingError: the training came to no usable prior.
    """
    known = ONLINE_METHODS.get(method)
    if not isinstance(known, Retrained):
        names = [name for name, each in ONLINE_METHODS.items() if isinstance(each, Retrained)]
        raise InvalidInputError(f"{method} trains no prior", fix=f"use {' or '.join(names)}")
    chosen = with_steps(known, steps)
    assert isinstance(chosen, Retrained)
    data = load(dataset, PREPARATION, data_dir=data_dir)
    warping = str(read_manifest(find(dataset, data_dir).folder).parameters["warping"])
    job = Job(data, seed)
    with progress_line(f"pretrain {method}", "steps") as progress:
        (trained,) = chosen.pretrain([job], progress)
    description = replace(describe(method, chosen, job, "", trained), output_warping=warping)
    with tempfile.TemporaryDirectory() as folder:
        save_prior(Path(folder), Prior(trained.gp, description))
        prior_id = add_prior(catalog, line, Path(folder))
    reason = f"Trained by hand on {data.provenance.dataset}."
    _put_into_service(catalog, line, prior_id, reason, {"dataset": data.provenance.dataset, "method": method})
    return prior_id


def pull_prior(catalog: Path, reference: str, source: str) -> str:
    """Copy a prior of another catalogue, checked by its content, and put it in service here.

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
        raise InvalidInputError(f"prior {reference!r}", fix="write a line such as pd1-mini/h-ekl")
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
            "these are not the files that the identifier names",
            where=f"{source.rstrip('/')}/{line}/{prior_id}",
            fix="pull again, or ask who publishes them",
        )
    with tempfile.TemporaryDirectory() as folder:
        for name, content in zip(PRIOR_FILES, contents, strict=True):
            write_atomically(Path(folder) / name, content)
        add_prior(catalog, line, Path(folder))
    _put_into_service(catalog, line, prior_id, f"Pulled from {source}.", {"source": source})
    return prior_id


def _put_into_service(
    catalog: Path, line: str, prior_id: str, reason: str, evidence: Mapping[str, Any]
) -> None:
    found = read_line(catalog, line)
    if found.current != prior_id:
        # A prior may come back: the decision is another one than that of the first time.
        promote(
            catalog, line, prior_id, reason, {**evidence, "decision": len(found.history) + 1}, since=found
        )


def _fetched(url: str) -> bytes:
    """The content of a file, which must be small."""
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
