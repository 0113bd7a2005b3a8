"""What makes records of anyone's own trials: their files, and the space file that says what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pd1_builder.recipe import Recipe
from pipelines.columns import Layout
from pipelines.raw_files import sha256_of
from pipelines.records import RawFile
from pipelines.trials.raw_files import SPLIT, find_trial_files
from pipelines.trials.space_file import read_space_file

SPACE_FILE = "space.toml"
ORIGIN = "added"


def trials_recipe(files: Sequence[Path], space: Path) -> Recipe:
    """Find files of trials, and say what makes records of them.

    Args:
      files: JSON lines, CSV or Parquet.
      space: the space file.

    Raises:
      InvalidInputError: a file cannot be used.
    """
    # Absolute, for a worker may run in another folder.
    files, space = [path.absolute() for path in files], space.absolute()
    description = read_space_file(space)
    raw_files = find_trial_files(files, description)
    layout = Layout(description.space, description.metric_names, description.curves)

    def curate(folder: Path) -> Any:
        from pipelines.build import CurateTrials, Objective
        from pipelines.trials.parse import ParseTrialFiles

        objective = Objective(description.objective, description.warping)
        return CurateTrials(ParseTrialFiles(description, ORIGIN), layout, objective, (SPLIT,), folder)

    return Recipe(
        raw_files=raw_files,
        companions=(RawFile(space, "", 0, sha256_of(space), space.stat().st_size, 0),),
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
    """The files of trials and the space file in a folder, such as the one that a version keeps."""
    files = tuple(path for path in sorted(folder.iterdir()) if path.name != SPACE_FILE)
    return files, folder / SPACE_FILE
