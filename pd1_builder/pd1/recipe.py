"""The recipe of PD1, for the files of its release or of a collection in the same layout."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hyperbo_pipelines.pd1.layout import ERROR_RATES, describe_raw_files, find_raw_files, pd1_layout

from hyperbo.data.search_space import PD1_SEARCH_SPACE
from pd1_builder.builder.recipe import Recipe

PARAMETERS = {"objective": "best_valid/error_rate", "warping": "negative_log"}
_APACHE = "https://www.apache.org/licenses/LICENSE-2.0"
_CC_BY = "https://creativecommons.org/licenses/by/4.0/"


class Configuration(NamedTuple):
    """A configuration of the dataset: the origin of its trials, and whether it has their curves."""

    origin: str
    curves: bool
    licence: str
    description: str


CONFIGURATIONS = {
    "mini": Configuration("collected", True, _APACHE, "Small tasks, collected by `hyperbo collect`."),
    "mini_without_curves": Configuration("collected", False, _APACHE, "PD1 mini without its curves."),
    "release": Configuration("release", True, _CC_BY, "The official release, 24 tasks."),
    "release_without_curves": Configuration(
        "release", False, _CC_BY, "The official release without its curves."
    ),
}


def pd1_recipe(config: str, raw: Path, added: Sequence[Path] = ()) -> Recipe:
    """Find raw files in the layout of the release, and return the recipe of their records.

    Args:
      config: one of `CONFIGURATIONS`.
      raw: folder of the files.
      added: further files in that layout. If there are any, the version keeps all of its files, because it
        cannot be made again from those of the release alone.

    Raises:
      InvalidInputError: a file is missing or cannot be used.
    """
    raw_files = find_raw_files(raw)
    if added:
        raw_files = describe_raw_files([*(file.path for file in raw_files), *added], str(raw))
    configuration = CONFIGURATIONS[config]
    layout = pd1_layout(curves=configuration.curves)

    def curate(folder: Path) -> Any:
        from hyperbo_pipelines.curate.build import CurateTrials, WarpedMetric
        from hyperbo_pipelines.pd1.parse import ParseTrials

        objective = WarpedMetric(PARAMETERS["objective"], PARAMETERS["warping"])
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
