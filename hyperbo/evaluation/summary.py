"""The short table of an evaluation, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from hyperbo.evaluation.findings import count
from hyperbo.evaluation.profiles import performance_profile
from hyperbo.evaluation.ranks import rank_methods
from hyperbo.evaluation.regret import regret_curves
from hyperbo.evaluation.run_array import RunArray, comparable

if TYPE_CHECKING:
    from rich.table import Table

CRITERION = 0.01
_BUDGETS = (1, 10)


def summary_frame(regrets: RunArray) -> pd.DataFrame:
    """Regret at iterations 1, 10 and the last, rank, and share solved, for each method.

    Args:
      regrets: regrets as run, missing runs included; all numbers are over `comparable(regrets)`.

    Returns:
      One row per method in the order of `regrets`, indexed by method: `regret_<t>` (median over seeds of the
      mean over tasks), `rank` (mean over seeds) and `solved` (regret below 0.01), both after the last
      iteration. All NaN for a method that completed no task.

    Raises:
      InvalidInputError: no task was completed by all methods.
    """
    compared = comparable(regrets)
    median = regret_curves(compared).median
    budgets = sorted({t for t in _BUDGETS if t <= compared.iterations} | {compared.iterations})
    columns = {f"regret_{t}": median[:, t - 1] for t in budgets}
    columns["rank"] = rank_methods(compared).mean[:, -1]
    columns["solved"] = performance_profile(compared, CRITERION)[:, -1]
    return pd.DataFrame(columns, index=list(compared.methods)).reindex(list(regrets.methods))


def summary_table(regrets: RunArray, unit: str = "seed") -> Table:
    """The summary as a table for the terminal; `missing` where a method completed no task.

    Args:
      regrets: as in `summary_frame`.
      unit: what one of their seeds is to a reader (`hyperbo.evaluation.metadata.run_unit`).

    Raises:
      InvalidInputError: no task was completed by all methods.
    """
    from rich.markup import escape
    from rich.table import Table

    frame = summary_frame(regrets)
    compared = comparable(regrets)
    table = Table(
        title=f"Mean simple regret, {len(compared.tasks)} of {len(regrets.tasks)} tasks, "
        f"median over {count(len(regrets.seeds), unit)}"
    )
    table.add_column("method")
    for column in frame.columns:
        name = column.replace("regret_", "regret at ")
        table.add_column(f"solved at {CRITERION}" if name == "solved" else name, justify="right")
    for method, row in frame.iterrows():
        if row.isna().all():
            cells = ["missing"] * len(row)
        else:
            cells = [
                f"{value:.0%}"
                if column == "solved"
                else f"{value:.2f}"
                if column == "rank"
                else f"{value:.3g}"
                for column, value in row.items()
            ]
        table.add_row(escape(str(method)), *cells)
    return table
