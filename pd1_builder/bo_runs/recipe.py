"""Datasets of Bayesian-optimization runs: their recipe, and recording an evaluation in one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperbo_pipelines.bo_runs.evaluation import (
    IDENTITY,
    OBJECTIVE,
    ORIGIN,
    EvaluationFiles,
    bo_runs_layout,
    find_evaluation_files,
)
from hyperbo_pipelines.run.execution import Execution

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.storage.paths import StrPath, as_path
from pd1_builder.builder.recipe import Recipe
from pd1_builder.compare.release_checks import next_number
from pd1_builder.release.build_version import KEPT_FOLDER, build_from_recipe
from pd1_builder.version.advice import remedy
from pd1_builder.version.catalog import find
from pd1_builder.version.manifest import Manifest, declared, digest_file, read_manifest
from pd1_builder.version.verification import verify

_LOGGER = logging.getLogger(__name__)


def bo_runs_recipe(folders: Sequence[Path], data_dir: StrPath | None = None) -> Recipe:
    """Read evaluations, find the dataset versions that they observed, and return the recipe of their records.

    Args:
      folders: folders of the evaluations, each with `records.parquet` and `metadata.json`. An evaluation that
        is given twice counts once.
      data_dir: the data folder; None for `catalog.default_data_dir`.

    Raises:
      InvalidInputError: an evaluation cannot be used, or two evaluations observed datasets of different
        search spaces, objectives or warpings.
      NotAvailableError: the data folder does not hold a dataset version that was observed.
      VersionConflictError: that version has other records than the one that was observed.
    """
    by_id = {evaluation.evaluation_id: evaluation for evaluation in map(find_evaluation_files, folders)}
    evaluations = [evaluation for _, evaluation in sorted(by_id.items())]
    if not evaluations:
        raise InvalidInputError("no evaluation was given", fix="give the folder of an evaluation")
    found = [_observed_dataset(evaluation, data_dir) for evaluation in evaluations]
    candidates = [files for _, files in found]
    manifest = found[0][0]
    for (other, _), evaluation in zip(found[1:], evaluations[1:], strict=True):
        _require_same(manifest, other, evaluation)
    space, warping = manifest.space, manifest.parameters["warping"]
    if space is None:
        raise InvalidInputError(
            f"{manifest.reference} spans several search spaces",
            fix="evaluate on a dataset of one search space",
        )

    def curate(folder: Path) -> Any:
        from hyperbo_pipelines.bo_runs.parse import ObservedVersion, ParseBoRuns
        from hyperbo_pipelines.curate.build import SpillCurated

        observed = [ObservedVersion(*each) for each in zip(evaluations, candidates, strict=True)]
        return ParseBoRuns(space, warping, observed) | SpillCurated(folder)

    return Recipe(
        raw_files=tuple(evaluation.records for evaluation in evaluations),
        companions=tuple(evaluation.metadata_file for evaluation in evaluations),
        columns=bo_runs_layout(space).columns,
        search_space=space,
        parameters={
            "origin": ORIGIN,
            "objective": OBJECTIVE,
            "observed_objective": manifest.parameters["objective"],
            "warping": warping,
            "evaluations": [
                {"id": each.evaluation_id} | {key: each.metadata[key] for key in IDENTITY}
                for each in evaluations
            ],
        },
        curate=curate,
        kept={
            f"{evaluation.evaluation_id}/{file.path.name}": file.path
            for evaluation in evaluations
            for file in (evaluation.records, evaluation.metadata_file)
        },
    )


def record_runs(
    name: str,
    evaluation: StrPath,
    *,
    version: str | None = None,
    data_dir: StrPath | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
) -> Manifest:
    """Build the next version of the dataset `bo_runs/<name>`, to which an evaluation is added.

    A version keeps the evaluations that it was made from. The next one is made from them and the new one
    together.

    Args:
      name: name of the dataset, of small letters, digits and underscores.
      evaluation: folder of the evaluation, with `records.parquet` and `metadata.json`.
      version: number of the version to build; None for 1.0.0 if it is the first, else for a minor step.
      data_dir: the data folder, which also holds the versions that evaluations observed; None for
        `catalog.default_data_dir`.
      max_reject_share: largest share of rows that may be rejected.
      execution: where Beam runs; None for this process.

    Returns:
      The manifest of the new version; or of the newest one, if it already holds the evaluation.

    Raises:
      InvalidInputError: the evaluation cannot be used, or cannot be combined with those of the newest
        version.
      NotAvailableError: the data folder does not hold the dataset version that was observed.
      VersionConflictError: that version has other records than the one that was observed; or the version to
        build exists and is damaged or was made from other files.
      HyperBOError: the disk is full, or rows were lost.
    """
    dataset, evaluation = f"bo_runs/{name}", as_path(evaluation, "evaluation")
    try:
        newest = find(dataset, data_dir)
    except NotAvailableError:
        newest = None
    kept = evaluations_in(newest.folder / KEPT_FOLDER) if newest else ()
    if newest and find_evaluation_files(evaluation).evaluation_id in {folder.name for folder in kept}:
        _LOGGER.info("%s:%s holds this evaluation already; nothing to do", dataset, newest.version)
        return verify(f"{dataset}:{newest.version}", data_dir)
    return build_from_recipe(
        dataset,
        version or (next_number(newest.version, "minor") if newest else "1.0.0"),
        bo_runs_recipe([*kept, evaluation], data_dir),
        data_dir=data_dir,
        parent=newest.version if newest else None,
        max_reject_share=max_reject_share,
        execution=execution,
    )


def evaluations_in(folder: Path) -> tuple[Path, ...]:
    """The folders of evaluations in a folder, such as the folder of kept files of a version."""
    return tuple(sorted(path for path in folder.iterdir() if path.is_dir()))


def _observed_dataset(
    evaluation: EvaluationFiles, data_dir: StrPath | None
) -> tuple[Manifest, tuple[Path, ...]]:
    """The manifest of the version that an evaluation observed, and its Parquet files."""
    stated = evaluation.metadata["manifest_hash"]
    version = find(evaluation.metadata["dataset"], data_dir)
    manifest = read_manifest(version.folder)
    if manifest.content_hash != stated:
        raise VersionConflictError(
            f"{evaluation.metadata_file.path} observed {evaluation.metadata['dataset']} with the content "
            f"{stated}, but {version.folder} has the content {manifest.content_hash}; "
            "use the data folder that the evaluation was made with"
        )
    paths = tuple(version.folder / f"{split}.parquet" for split in manifest.counts)
    for path in paths:
        if not path.is_file() or digest_file(path, version.folder) not in manifest.files:
            raise VersionConflictError(
                f"{path} is missing or has changed; "
                f"{remedy(version.folder, version.dataset, version.version)}"
            )
    return manifest, paths


def _require_same(first: Manifest, other: Manifest, evaluation: EvaluationFiles) -> None:
    """Check that inputs and values of two evaluations have the same meaning."""
    expected, found = (declared(each.space, each.parameters) for each in (first, other))
    differing = [name.replace("_", " ") for name in expected if expected[name] != found[name]]
    if differing:
        raise InvalidInputError(
            f"observed {other.reference}, of another {' and '.join(differing)} than {first.reference}",
            where=str(evaluation.metadata_file.path),
            fix="record it under another name",
        )
