"""The survey of a dataset version, from its records and an evaluation, as files."""

from __future__ import annotations

from pathlib import Path

import pd1_builder
from flows import evaluation_folder
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.survey import gains, rank_correlations, survey_tasks
from hyperbo.evaluation.survey_figure import heat_map
from hyperbo.evaluation.survey_page import survey_markdown
from hyperbo.files import write_atomically
from pd1_builder.catalog import find

PAGE_NAME = "survey.md"
HEAT_MAP_NAME = "rank_correlations.svg"


def write_survey(reference: str, out: Path, evaluation: Path | None, data_dir: Path | None) -> str:
    """Survey a version, and write the page and the heat map.

    Args:
      reference: the version.
      out: folder for both.
      evaluation: folder of an evaluation of H-NLL and STBO on the version, or None; tells what priors gain.
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
    write_atomically(out / PAGE_NAME, page.encode())
    write_atomically(out / HEAT_MAP_NAME, heat_map(correlations).encode())
    return page
