"""ParseBoRuns: run records of evaluations become tables of curated records and rejects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jaxtyping import Float64, Int64

from hyperbo.data.search_space import SearchSpace
from hyperbo.data.warping import output_warping
from hyperbo.evaluation.measures.regret import simple_regrets
from hyperbo.evaluation.records.metadata import EvaluationMetadata
from hyperbo.evaluation.records.runs import read_records
from hyperbo_pipelines.bo_runs.evaluation import (
    OBJECTIVE,
    ORIGIN,
    RECORDS_NAME,
    SPLIT,
    EvaluationFiles,
    bo_runs_layout,
)
from hyperbo_pipelines.curate.build import with_rejects
from hyperbo_pipelines.curate.columns import Column, schema
from hyperbo_pipelines.curate.elements import RawFile, Reject
from hyperbo_pipelines.curate.parquet import without_nulls
from hyperbo_pipelines.curate.tables import warp_table

# Logarithms of two platforms may differ by so much.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class ObservedVersion:
    """An evaluation, and the Parquet files of the dataset version that its runs observed."""

    evaluation: EvaluationFiles
    candidates: tuple[Path, ...]


class ParseBoRuns(beam.PTransform):
    """PCollection[RawFile] -> (PCollection[pa.Table], PCollection[Reject]).

    One table for each file of run records, with the column `split` and those of `bo_runs_layout`.

    Args:
      space: declared search space of the observed datasets.
      warping: their output warping.
      evaluations: the evaluations whose run records are read.
    """

    def __init__(self, space: SearchSpace, warping: str, evaluations: Sequence[ObservedVersion]) -> None:
        super().__init__()
        by_path = {observed.evaluation.records.path: observed for observed in evaluations}
        self._arguments = (by_path, space, warping)

    def expand(self, input_or_inputs: Any) -> Any:
        """Spread the files over the workers; each is read by one."""
        files = input_or_inputs | "Spread" >> beam.Reshuffle()
        return with_rejects(files, "ParseFile", _parse_file, *self._arguments)


def _parse_file(
    file: RawFile, evaluations: dict[Path, ObservedVersion], space: SearchSpace, warping: str
) -> Iterator[pa.Table | Reject]:
    return curate_evaluation(evaluations[file.path], space, warping)


def curate_evaluation(
    observed: ObservedVersion, space: SearchSpace, warping: str
) -> Iterator[pa.Table | Reject]:
    """Make the rejects, in the order of the rows, and then the records of one evaluation.

    Regret is that of the evaluation: it is computed from all rows of a run, rejected ones too. Search space
    and warping are those of the version that its runs observed.

    Raises:
      InvalidInputError: the run records are invalid.
    """
    evaluation = observed.evaluation
    source = f"{evaluation.evaluation_id}/{RECORDS_NAME}"
    records = read_records(evaluation.records.path)
    records["regret"] = _regret(records, evaluation.metadata)
    trials = _observed_trials(observed.candidates, records["trial_id"], space)
    ids = pa.array(records["trial_id"], pa.string())
    found: Any = pc.call_function("index_in", [ids], pc.SetLookupOptions(trials["trial_id"].combine_chunks()))
    rows = found.fill_null(-1).to_numpy()
    reasons = _reasons(records, trials, rows, warping, evaluation.metadata["dataset"])
    for row in sorted(reasons):
        yield Reject(source, row + 1, reasons[row])
    kept = np.ones(len(records), bool)
    kept[list(reasons)] = False
    if kept.any():
        chosen = trials.take(pa.array(rows[kept]))
        yield _table(records[kept], chosen, np.flatnonzero(kept) + 1, evaluation, space, warping)


def _regret(records: pd.DataFrame, metadata: EvaluationMetadata) -> Float64[np.ndarray, " n"]:
    """Simple regret after the iteration of every row."""
    regrets = simple_regrets(records, metadata)
    place = (
        pd.Index(regrets.methods).get_indexer(pd.Index(records["method"])),
        pd.Index(regrets.tasks).get_indexer(pd.Index(records["task"])),
        pd.Index(regrets.seeds).get_indexer(pd.Index(records["seed"])),
        records["iteration"].to_numpy() - 1,
    )
    return regrets.values[place]


def _observed_trials(paths: Sequence[Path], trial_ids: pd.Series, space: SearchSpace) -> pa.Table:
    """Identity and raw hyperparameters of the trials with these ids."""
    wanted = pc.SetLookupOptions(pa.array(trial_ids.unique(), pa.string()))
    columns = ["trial_id", "task", "task_dataset", "input_id", *_inputs(space)]
    pieces = []
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=columns):
                pieces.append(batch.filter(pc.call_function("is_in", [batch["trial_id"]], wanted)))
    return without_nulls(pa.Table.from_batches(pieces))


def _inputs(space: SearchSpace) -> list[str]:
    return [f"hyperparameters.{name}" for name in space.names]


def _reasons(
    records: pd.DataFrame, trials: pa.Table, rows: Int64[np.ndarray, " n"], warping: str, dataset: str
) -> dict[int, str]:
    """By row, the reason why it cannot become a record; if there are several, the last one found."""
    reasons: dict[int, str] = {}
    with np.errstate(all="ignore"):
        y = output_warping(warping).warp(records["objective"].to_numpy())
    differs = ~np.isclose(records["y"].to_numpy(), y, rtol=_TOLERANCE, atol=_TOLERANCE)
    for row in np.flatnonzero(differs).tolist():
        stated, objective = float(records["y"].iloc[row]), float(records["objective"].iloc[row])
        reasons[row] = f"y = {stated!r} is not the objective {objective!r} under the warping {warping}"
    known = np.flatnonzero(rows >= 0)
    for name in ("task_dataset", "task"):
        stated = pa.array(records[name], pa.string()).take(pa.array(known))
        actual = trials[name].take(pa.array(rows[known])).combine_chunks()
        for place in np.flatnonzero(pc.call_function("not_equal", [stated, actual]).to_numpy(False)).tolist():
            row = int(known[place])
            reasons[row] = (
                f"{name} is {stated[place].as_py()!r}, but that of the trial "
                f"{records['trial_id'].iloc[row]!r} of {dataset} is {actual[place].as_py()!r}"
            )
    for row in np.flatnonzero(rows < 0).tolist():
        reasons[row] = f"the trial {records['trial_id'].iloc[row]!r} is not in {dataset}"
    return reasons


def _table(
    records: pd.DataFrame,
    trials: pa.Table,
    numbers: Int64[np.ndarray, " n"],
    evaluation: EvaluationFiles,
    space: SearchSpace,
    warping: str,
) -> pa.Table:
    """Records of the valid rows; `trials` holds the trial of each row, `numbers` its number in the file."""
    name = evaluation.evaluation_id
    run = records["method"] + "/" + records["task"] + "/" + records["seed"].astype(str).str.zfill(4)
    # Many methods and seeds observe the same input on purpose: no record is a duplicate.
    constants: dict[str, Any] = {
        "split": SPLIT,
        "phase": 0,
        "origin": ORIGIN,
        "status": "done",
        "diverged": False,
        "duplicates": [],
        "block": "",
        "dataset": evaluation.metadata["dataset"],
        "evaluation": name,
    }
    columns = schema((Column("split", "text", "the one split of all runs"), *bo_runs_layout(space).columns))
    arrays: dict[str, Any] = {
        "trial_id": name + "/" + run + "/" + records["iteration"].astype(str).str.zfill(6),
        "source": [f"{name}/{RECORDS_NAME}:{number}" for number in numbers.tolist()],
        "observed_trial": records["trial_id"],
        "prior": records["prior"].fillna("") if "prior" in records else [""] * len(records),
        **{column: records[column] for column in ("task", "task_dataset", "method", "seed", "iteration")},
        **{f"metrics.{metric}": records[metric].to_numpy() for metric in (OBJECTIVE, "regret", "y_max")},
        **{column: trials[column] for column in ("input_id", *_inputs(space))},
        **{
            column: pa.repeat(pa.scalar(value, columns.field(column).type), len(records))
            for column, value in constants.items()
        },
    }
    return warp_table(pa.table(arrays), space, OBJECTIVE, warping).select(columns.names).cast(columns)
