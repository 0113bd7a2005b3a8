"""The recipe of HPO-B, for the files of its archive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hyperbo_pipelines.hpob.layout import METRIC, SEARCH_SPACES, mixed_columns, read_descriptors
from hyperbo_pipelines.hpob.raw_files import find_hpob_files, read_initialisations

from pd1_builder.builder.recipe import Recipe

ALL = "all"
CONFIGURATIONS = (*SEARCH_SPACES, ALL)
_MIT = "https://opensource.org/license/mit"


def hpob_recipe(config: str, raw: Path) -> Recipe:
    """Find HPO-B's files, and return the recipe of their records.

    Args:
      config: id of a search space, or `all`.
      raw: folder of the files.

    Raises:
      InvalidInputError: a file is missing or cannot be used.
    """
    search_space = None if config == ALL else config
    files = find_hpob_files(raw, search_space)
    descriptions = read_descriptors(raw)
    initialisations = read_initialisations(files.initialisations.path)
    description = descriptions[search_space] if search_space else None
    described = [description] if description else [descriptions[name] for name in sorted(descriptions)]

    def curate(folder: Path) -> Any:
        from hyperbo_pipelines.curate.build import SpillCurated
        from hyperbo_pipelines.hpob.parse import ParseHpob

        return ParseHpob(descriptions, initialisations, search_space) | SpillCurated(folder)

    return Recipe(
        raw_files=files.data,
        companions=(files.initialisations, files.descriptors),
        columns=description.layout.columns if description else mixed_columns(),
        search_space=description.search_space if description else None,
        parameters={
            "origin": "hpob",
            "objective": METRIC,
            "warping": "identity",
            "search_spaces": [each.to_json() for each in described],
        },
        curate=curate,
        licence=_MIT,
    )
