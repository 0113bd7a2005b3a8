"""Recording runs: an evaluation becomes the first version of a dataset of runs, or is added to the next."""

from __future__ import annotations

import logging
from pathlib import Path

from hyperbo.errors import NotAvailableError
from pd1_builder.bo_runs.recipe import bo_runs_recipe, evaluations_in
from pd1_builder.catalog import find
from pd1_builder.manifest import Manifest
from pd1_builder.releases import KEPT_FOLDER, release
from pd1_builder.semver import next_version
from pd1_builder.verification import verify
from pipelines.bo_runs.evaluation import read_evaluation
from pipelines.execution import Execution

_LOGGER = logging.getLogger(__name__)


def record_runs(
    name: str,
    evaluation: Path,
    *,
    version: str | None = None,
    data_dir: Path | None = None,
    max_reject_share: float = 0.001,
    execution: Execution | None = None,
) -> Manifest:
    """Make a version of the dataset `bo_runs/<name>` of an evaluation, added to those it has already.

    A version keeps the evaluations it was made from: the next is made of them and the new one together.

    Args:
      name: of the dataset: small letters, digits and underscores.
      evaluation: folder of the evaluation: `records.parquet` and `metadata.json`.
      version: semantic version to make; None for 1.0.0, or the next after the newest that adds records.
      data_dir: where versions are kept, also those that evaluations observed; None for
        `catalog.default_data_dir`.
      max_reject_share: largest share of rows that may be rejected.
      execution: where Beam runs; None for this process.

    Returns:
      The manifest of the version made; of the newest, where it holds the evaluation already.

    Raises:
      InvalidInputError: the evaluation cannot be used, or not together with those of the newest version.
      NotAvailableError: the dataset version that it observed is not there.
      VersionConflictError: that version is another than the one observed; or as `releases.build`.
    """
    dataset = f"bo_runs/{name}"
    try:
        newest = find(dataset, data_dir)
    except NotAvailableError:
        newest = None
    kept = evaluations_in(newest.folder / KEPT_FOLDER) if newest else ()
    if newest and read_evaluation(evaluation).evaluation_id in {folder.name for folder in kept}:
        _LOGGER.info("%s:%s holds the evaluation already; nothing to do", dataset, newest.version)
        return verify(f"{dataset}:{newest.version}", data_dir)
    return release(
        dataset,
        version or (next_version(newest.version, "minor") if newest else "1.0.0"),
        bo_runs_recipe([*kept, evaluation], data_dir),
        data_dir=data_dir,
        parent=newest.version if newest else None,
        max_reject_share=max_reject_share,
        execution=execution,
    )
