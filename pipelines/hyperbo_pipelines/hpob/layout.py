"""The search spaces of HPO-B, read from its descriptors, and the columns of its records."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.columns import IDENTITY, OBJECTIVE, RELATIONS, Column
from hyperbo_pipelines.curate.layout import Layout

DESCRIPTORS = "meta-dataset-descriptors.json"
# HPO-B-v3.
SEARCH_SPACES = (
    *("4796", "5527", "5636", "5859", "5860", "5889", "5891", "5906"),
    *("5965", "5970", "5971", "6766", "6767", "6794", "7607", "7609"),
)
METRIC = "accuracy"
SPLIT = Column("split", "text", "train, validation or test, by the file the row was read from")
SEARCH_SPACE = Column("search_space", "text", "id of the search space")
INITIALISATIONS = Column(
    "initialisations", "texts", "initialisations the row belongs to, as <name>:<position from 0>"
)


@dataclass(frozen=True)
class Variable:
    """One column of X and the range that its values in [0, 1] were scaled from.

    A value v was recorded as ln(v + 1e-4) if `log` is set, else as v; then it was scaled to [0, 1] by
    `minimum` and `maximum` and rounded to six decimals. A categorical variable has one column for each
    category: 1 for this category, 0 for the others, with the ranges 0 to 1.

    Attributes:
      name: the column, `<variable>`, or `<variable>.ohe._<category>`.
      minimum: smallest value over all datasets, after the logarithm.
      maximum: largest value over all datasets, after the logarithm.
      minimum_before_log: smallest value over all datasets, before the logarithm.
      maximum_before_log: largest value over all datasets, before the logarithm.
      log: whether the logarithm was taken.
      category: the category of the column; empty if the variable is a number.
    """

    name: str
    minimum: float
    maximum: float
    minimum_before_log: float
    maximum_before_log: float
    log: bool = False
    category: str = ""


@dataclass(frozen=True)
class SpaceDescription:
    """A search space: its id and its variables in the order of the columns of X."""

    name: str
    variables: tuple[Variable, ...]

    @property
    def search_space(self) -> SearchSpace:
        """The unit cube with the variables' names: HPO-B records scaled inputs."""
        return SearchSpace(tuple(Parameter(variable.name, 0.0, 1.0) for variable in self.variables))

    @property
    def layout(self) -> Layout:
        """The columns of a dataset of this search space alone."""
        return Layout(self.search_space, metrics=(METRIC,), extra=(INITIALISATIONS,))

    def to_json(self) -> dict[str, Any]:
        """The description as plain JSON values."""
        return {"name": self.name, "variables": [vars(variable).copy() for variable in self.variables]}


def mixed_columns() -> tuple[Column, ...]:
    """The columns of a dataset of several search spaces, with inputs of different lengths."""
    return (
        *IDENTITY,
        *RELATIONS,
        SEARCH_SPACE,
        INITIALISATIONS,
        OBJECTIVE,
        Column("hyperparameters", "reals", "raw values, in the order of the search space's variables"),
        Column("x", "reals", "the input in [0, 1], in the same order"),
        Column(f"metrics.{METRIC}", "real", METRIC),
    )


def read_descriptors(folder: Path) -> dict[str, SpaceDescription]:
    """Read the descriptions of all search spaces by their ids, from `meta-dataset-descriptors.json`.

    Raises:
      InvalidInputError: the file is absent, is not JSON, or lacks a part of a search space.
    """
    content = read_json(folder / DESCRIPTORS)
    return {name: _space(name, fields) for name, fields in content.items()}


def read_json(path: Path) -> dict[str, Any]:
    """Read a small file that holds one JSON object.

    Raises:
      InvalidInputError: the file is absent, cannot be read, or does not hold a JSON object.
    """
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise InvalidInputError(
            f"{path.name} is missing", where=str(path.parent), fix="copy it from the HPO-B archive"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"cannot be read as JSON: {error}", where=path.name) from error
    if not isinstance(content, dict):
        raise InvalidInputError(f"is a JSON {type(content).__name__}, not an object", where=path.name)
    return content


def _space(name: str, fields: Any) -> SpaceDescription:
    where = f"{DESCRIPTORS}#{name}"
    try:
        variables, logs = fields["variables"], fields["variables_to_apply_log"]
        described = tuple(
            _variable(column, variables, column in logs) for column in fields["variables_order"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"cannot be read: {type(error).__name__} {error}",
            where=where,
            fix="give variables (min, max, min_before_tf, max_before_tf, or categories), variables_order, "
            "variables_to_apply_log",
        ) from error
    description = SpaceDescription(name, described)
    try:
        description.search_space  # noqa: B018 - repeated or absent names fail here, before any data is read.
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where=where) from error
    return description


def _variable(column: str, variables: Mapping[str, Any], log: bool) -> Variable:
    if column in variables:
        fields = variables[column]
        minimum, maximum, minimum_before_log, maximum_before_log = (
            float(fields[key]) for key in ("min", "max", "min_before_tf", "max_before_tf")
        )
        for low, high in ((minimum, maximum), (minimum_before_log, maximum_before_log)):
            if not -math.inf < low <= high < math.inf:
                raise ValueError(f"{column} ranges from {low} to {high}")
        return Variable(column, minimum, maximum, minimum_before_log, maximum_before_log, log)
    variable, _, category = column.partition(".ohe._")
    if category not in variables[variable]["categories"]:
        raise ValueError(f"{column} names none of the categories {variables[variable]['categories']}")
    return Variable(column, 0.0, 1.0, 0.0, 1.0, category=category)
