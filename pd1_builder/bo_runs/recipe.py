"""What makes records of Bayesian-optimization runs: evaluations, and the dataset versions they observed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, VersionConflictError
from pd1_builder.catalog import find, remedy
from pd1_builder.manifest import Manifest, declared, digest_file, read_manifest
from pd1_builder.recipe import Recipe
from pipelines.bo_runs.evaluation import IDENTITY, Evaluation, read_evaluation
from pipelines.bo_runs.layout import OBJECTIVE, ORIGIN, bo_runs_layout


def bo_runs_recipe(folders: Sequence[Path], data_dir: Path | None = None) -> Recipe:
    """Read evaluations, find the dataset versions they observed, and say what makes records of them.

    Args:
      folders: of the evaluations: `records.parquet` and `metadata.json`. One given twice counts once.
      data_dir: where versions are kept; None for `catalog.default_data_dir`.

    Raises:
      InvalidInputError: an evaluation cannot be used, or two observed datasets of different search spaces,
        objectives or warpings.
      NotAvailableError: a dataset version that was observed is not there.
      VersionConflictError: it is not the one that was observed.
    """
    by_id = {evaluation.evaluation_id: evaluation for evaluation in map(read_evaluation, folders)}
    evaluations = [evaluation for _, evaluation in sorted(by_id.items())]
    if not evaluations:
        raise InvalidInputError("there is no evaluation", fix="give the folder of one")
    found = [_observed_dataset(evaluation, data_dir) for evaluation in evaluations]
    candidates = [files for _, files in found]
    manifest = found[0][0]
    for (other, _), evaluation in zip(found[1:], evaluations[1:], strict=True):
        _require_same(manifest, other, evaluation)
    space, warping = manifest.space, manifest.parameters["warping"]
    if space is None:
        raise InvalidInputError(
            f"{manifest.reference} spans several search spaces", fix="evaluate on a dataset of one"
        )

    def curate(folder: Path) -> Any:
        from pipelines.bo_runs.parse import Observed, ParseBoRuns
        from pipelines.build import SpillCurated

        observed = [Observed(*each) for each in zip(evaluations, candidates, strict=True)]
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


def evaluations_in(folder: Path) -> tuple[Path, ...]:
    """The folders of evaluations in a folder, such as the one that a version keeps."""
    return tuple(sorted(path for path in folder.iterdir() if path.is_dir()))


def _observed_dataset(evaluation: Evaluation, data_dir: Path | None) -> tuple[Manifest, tuple[Path, ...]]:
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


def _require_same(first: Manifest, other: Manifest, evaluation: Evaluation) -> None:
    """Refuse to mix records whose inputs or values mean different things."""
    expected, found = (declared(each.space, each.parameters) for each in (first, other))
    differing = [name.replace("_", " ") for name in expected if expected[name] != found[name]]
    if differing:
        raise InvalidInputError(
            f"observed {other.reference}, of another {' and '.join(differing)} than {first.reference}",
            where=str(evaluation.metadata_file.path),
            fix="record it under another name",
        )
