"""What makes PD1's records from the files of its release, or of a collection in the same layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hyperbo.search_space import PD1_SEARCH_SPACE
from pd1_builder.recipe import Recipe
from pipelines.pd1_layout import ERROR_RATES, pd1_layout
from pipelines.raw_files import describe_raw_files, find_raw_files

PARAMETERS = {"objective": "best_valid/error_rate", "warping": "negative_log"}
_APACHE = "https://www.apache.org/licenses/LICENSE-2.0"
_CC_BY = "https://creativecommons.org/licenses/by/4.0/"


class Configuration(NamedTuple):
    """A configuration of the dataset: where its trials come from, and whether their curves are kept."""

    origin: str
    curves: bool
    licence: str
    description: str


CONFIGURATIONS = {
    "mini": Configuration("collected", True, _APACHE, "Small tasks, collected by pipelines/collect."),
    "mini_without_curves": Configuration("collected", False, _APACHE, "PD1 mini without its curves."),
    "release": Configuration("release", True, _CC_BY, "The official release, 24 tasks."),
    "release_without_curves": Configuration(
        "release", False, _CC_BY, "The official release without its curves."
    ),
}


def pd1_recipe(config: str, raw: Path, added: Sequence[Path] = ()) -> Recipe:
    """Find raw files of the release's layout, and say what makes records of them.

    Args:
      config: one of `CONFIGURATIONS`.
      raw: folder of the files.
      added: further files of that layout. Where there are some, the version keeps all files, for it cannot be
        made again of those of the release.

    Raises:
      InvalidInputError: the files cannot be used.
    """
    raw_files = find_raw_files(raw)
    if added:
        raw_files = describe_raw_files([*(file.path for file in raw_files), *added], str(raw))
    configuration = CONFIGURATIONS[config]
    layout = pd1_layout(curves=configuration.curves)

    def curate(folder: Path) -> Any:
        from pipelines.build import CurateTrials, Objective
        from pipelines.parse import ParseTrials

        objective = Objective(PARAMETERS["objective"], PARAMETERS["warping"])
        read = ParseTrials(PD1_SEARCH_SPACE, configuration.origin, layout.curves)
        return CurateTrials(read, layout, objective, ("matched",), folder, shares=ERROR_RATES)

    return Recipe(
        raw_files=raw_files,
        columns=layout.columns,
        search_space=PD1_SEARCH_SPACE,
        parameters={"origin": configuration.origin, **PARAMETERS},
        curate=curate,
        kept={file.path.name: file.path for file in raw_files} if added else {},
        licence=configuration.licence,
    )
