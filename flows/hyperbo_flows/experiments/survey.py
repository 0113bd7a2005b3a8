"""The survey of a dataset version: a page and a heat map, made from its records and an evaluation."""

from __future__ import annotations

from pathlib import Path

import pd1_builder
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.figures.diagnostics import heat_map
from hyperbo.evaluation.measures.survey import gains, rank_correlations, survey_markdown, survey_tasks
from hyperbo.storage.atomic import write_atomically
from hyperbo_flows.experiments import evaluation_folder
from pd1_builder.version.catalog import find


def write_survey(reference: str, out: Path, evaluation: Path | None, data_dir: Path | None) -> str:
    """Survey a version, and write the page and the heat map.

    Args:
      reference: the version.
      out: folder for both files.
      evaluation: folder of an evaluation of H-NLL and STBO on the version, which shows what priors gain; or
        None.
      data_dir: folder of dataset versions.

    Returns:
      The page.

    Raises:
      InvalidInputError: the evaluation is of another version, or lacks one of the two methods.
      NotAvailableError: there is no such version.
    """
    version = find(reference, data_dir)
    found_as = f"{version.dataset}:{version.version}"
    data = pd1_builder.load(found_as, data_dir=data_dir, skip_empty_tasks=True)
    tasks = survey_tasks(pd1_builder.load(found_as, as_="dataframe", data_dir=data_dir), data)
    if evaluation is not None:
        found = evaluation_folder.read(evaluation)
        if found.metadata["manifest_hash"] != data.provenance.manifest_hash:
            raise InvalidInputError(
                f"the evaluation is of {found.metadata['dataset']} with another content than {found_as}",
                where=str(evaluation),
                fix="evaluate this version",
            )
        tasks = tasks.join(gains(found.records, found.metadata, "H-NLL", "STBO"))
    correlations = rank_correlations(data)
    page = survey_markdown(tasks, correlations)
    write_atomically(out / "survey.md", page.encode())
    write_atomically(out / "rank_correlations.svg", heat_map(correlations).encode())
    return page
