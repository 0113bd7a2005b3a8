"""The recipe of users' own trials, for files and the space file that says what their columns mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hyperbo_pipelines.curate.layout import Layout
from hyperbo_pipelines.curate.raw_files import raw_file
from hyperbo_pipelines.trials.rows import SPLIT, find_trial_files
from hyperbo_pipelines.trials.space_file import read_space_file

from pd1_builder.builder.recipe import Recipe

SPACE_FILE = "space.toml"
ORIGIN = "added"


def trials_recipe(files: Sequence[Path], space: Path) -> Recipe:
    """Read the space file and the files of trials, and return the recipe of their records.

    Args:
      files: JSON lines, CSV or Parquet.
      space: the space file.

    Raises:
      InvalidInputError: a file cannot be used.
    """
    # Absolute, because a worker may run in another folder.
    files, space = [path.absolute() for path in files], space.absolute()
    description = read_space_file(space)
    raw_files = find_trial_files(files, description)
    layout = Layout(description.space, description.metric_names, description.curves)

    def curate(folder: Path) -> Any:
        from hyperbo_pipelines.curate.build import CurateTrials, WarpedMetric
        from hyperbo_pipelines.trials.parse import ParseTrialFiles

        objective = WarpedMetric(description.objective, description.warping)
        return CurateTrials(ParseTrialFiles(description, ORIGIN), layout, objective, (SPLIT,), folder)

    return Recipe(
        raw_files=raw_files,
        companions=(raw_file(space),),
        columns=layout.columns,
        search_space=description.space,
        parameters={"origin": ORIGIN, **description.to_json()},
        curate=curate,
        kept={file.path.name: file.path for file in raw_files} | {SPACE_FILE: space},
        licence=description.about.licence,
        description=description.about.description,
        citation=description.about.citation,
    )


def raw_in(folder: Path) -> tuple[tuple[Path, ...], Path]:
    """The files of trials and the space file in a folder, such as the folder of kept files of a version."""
    files = tuple(path for path in sorted(folder.iterdir()) if path.name != SPACE_FILE)
    return files, folder / SPACE_FILE
