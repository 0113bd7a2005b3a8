"""How records hold raw hyperparameters: a column for each, of the type of its values.

In memory, columns have no nulls. Where a parameter is inactive, a column of numbers has NaN and one of text
is empty; therefore a conditional integer is stored as a real, and a conditional boolean as a text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float64

from hyperbo.data.choice import Choice
from hyperbo.data.parameter import Parameter, Value
from hyperbo.data.search_space import SearchSpace
from hyperbo_pipelines.curate.columns import Column, Kind


def raw_column(parameter: Parameter | Choice) -> Column:
    """The column of records that holds a parameter's raw values.

    >>> raw_column(Choice("optimizer", ("sgd", "adam")))
    Column(name='hyperparameters.optimizer', kind='text', doc='raw optimizer, one of sgd, adam')
    """
    doc = f"raw {parameter.name}, as recorded"
    if isinstance(parameter, Choice) and not parameter.is_boolean:
        doc = f"raw {parameter.name}, one of {', '.join(map(str, parameter.levels))}"
    kind = _kind(parameter)
    if parameter.condition is not None:
        doc += f"; {'empty' if kind == 'text' else 'missing'} unless {parameter.condition}"
    return Column(f"hyperparameters.{parameter.name}", kind, doc)


def raw_array(parameter: Parameter | Choice, values: Iterable[Value | None]) -> pa.Array:
    """A parameter's raw values as a column, None where it is inactive."""
    match _kind(parameter):
        case "text":
            return pa.array([_as_text(value) for value in values], pa.string())
        case "boolean":
            return pa.array(list(values), pa.bool_())
        case "integer":
            return pa.array(list(values), pa.int64())
        case _:
            # Through NumPy: Arrow would turn NaN into null.
            return pa.array(np.fromiter((np.nan if each is None else each for each in values), np.float64))


def codes_of(table: pa.Table, space: SearchSpace) -> Float64[np.ndarray, "n p"]:
    """The codes of the raw values of records; NaN where a parameter is inactive, or a text is no level."""
    columns = [_codes(table[f"hyperparameters.{each.name}"], each) for each in space.parameters]
    return np.stack(columns, axis=1)


def _kind(parameter: Parameter | Choice) -> Kind:
    is_conditional = parameter.condition is not None
    if isinstance(parameter, Parameter):
        return "integer" if parameter.integer and not is_conditional else "real"
    if parameter.is_boolean:
        return "text" if is_conditional else "boolean"
    if parameter.is_text:
        return "text"
    is_whole = all(isinstance(level, int) for level in parameter.levels)
    return "integer" if is_whole and not is_conditional else "real"


def _as_text(value: Value | None) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _codes(stored: Any, parameter: Parameter | Choice) -> Float64[np.ndarray, " n"]:
    if isinstance(parameter, Parameter):
        return stored.to_numpy().astype(np.float64)
    match _kind(parameter):
        case "text":
            levels: Any = pa.array([_as_text(level) for level in parameter.levels], pa.string())
        case "boolean":
            levels = pa.array(parameter.levels, pa.bool_())
        case "integer":
            levels = pa.array(parameter.levels, pa.int64())
        case _:
            # Adding 0.0 makes the two zeros one, which Arrow takes for two.
            levels = pa.array([float(level) + 0.0 for level in parameter.levels], pa.float64())
            stored = pa.array(stored.to_numpy() + 0.0)
    # A value that is no level has no index: null, which becomes NaN.
    places = pc.call_function("index_in", [stored], pc.SetLookupOptions(levels))
    return places.to_numpy().astype(np.float64)
