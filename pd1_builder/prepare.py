"""Writing the records of a version: raw files curated by Beam, merged, stored as Parquet, hashed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import apache_beam as beam
import pyarrow as pa

from hyperbo.errors import HyperBOError, InvalidInputError
from pd1_builder.content_hash import content_hash
from pd1_builder.derived import count_duplicates, count_records
from pd1_builder.manifest import declared
from pd1_builder.recipe import Recipe
from pipelines.assemble import Assembly, assemble
from pipelines.build import SUMMARY_NAME
from pipelines.execution import Execution
from pipelines.parquet import write_row_groups
from pipelines.records import Block
from pipelines.summarize import Summary, read_summary

REJECTS_NAME = "rejects.jsonl"
_REJECTS_SHOWN = 5


@dataclass(frozen=True)
class Prepared:
    """What the records of a version are: for its manifest.

    Attributes:
      content_hash: `content_hash.content_hash` over the records.
      counts: records by split, task and status.
      rejects: number of rows that became no record.
      duplicates: number of records whose task ran the same input more than once.
      blocks: the matched blocks.
    """

    content_hash: str
    counts: Mapping[str, Mapping[str, Mapping[str, int]]]
    rejects: int
    duplicates: int
    blocks: tuple[Block, ...]


def write_records(
    recipe: Recipe, folder: Path, work: Path, execution: Execution, max_reject_share: float
) -> Prepared:
    """Curate raw files into `<split>.parquet` and `rejects.jsonl`.

    Args:
      recipe: what makes the records.
      folder: where the files go.
      work: an empty folder for what is put aside meanwhile; every worker must see it.
      execution: where Beam runs.
      max_reject_share: largest share of rows that may be rejected.

    Raises:
      InvalidInputError: too many rows are rejected, or all rows of a split.
      HyperBOError: rows were lost on the way.
    """
    execution.run(
        lambda pipeline: (
            pipeline | "RawFiles" >> beam.Create(list(recipe.raw_files)) | "Curate" >> recipe.curate(work)
        )
    )
    summary = read_summary(work / SUMMARY_NAME)
    assembly = assemble(work, summary, recipe.columns)
    _check(summary, assembly, recipe, max_reject_share)
    lines = [json.dumps(asdict(reject)) + "\n" for reject in summary.rejects]
    (folder / REJECTS_NAME).write_text("".join(lines), encoding="utf-8")
    counts: dict[str, dict[str, dict[str, int]]] = {split: {} for split in assembly.splits}
    repeats: list[int] = []

    def written(split: str) -> Iterator[pa.Table]:
        for table in write_row_groups(assembly.read(split), folder / f"{split}.parquet"):
            count_records(table, counts[split])
            repeats.append(count_duplicates(table))
            yield table

    identity = declared(recipe.search_space, recipe.parameters)
    hashed = content_hash(identity, {split: written(split) for split in assembly.splits})
    shutil.rmtree(work)
    return Prepared(hashed, counts, len(summary.rejects), sum(repeats), summary.blocks)


def _check(summary: Summary, assembly: Assembly, recipe: Recipe, max_reject_share: float) -> None:
    records, rejects = sum(map(len, assembly.splits.values())), summary.rejects
    if records + len(rejects) != recipe.rows:
        raise HyperBOError(
            f"rows were lost: of {recipe.rows}, {records} became records, {len(rejects)} rejects"
        )
    if len(rejects) > max_reject_share * recipe.rows:
        first = "; ".join(f"{each.file}:{each.line}: {each.reason}" for each in rejects[:_REJECTS_SHOWN])
        raise InvalidInputError(
            f"{len(rejects)} of {recipe.rows} rows rejected, over the share of {max_reject_share:g}; {first}",
            fix="mend the rows, or allow a larger share: max_reject_share, or --max-reject-share",
        )
    for split in recipe.splits:
        if split not in assembly.splits:
            raise InvalidInputError(
                f"every row of the split {split!r} was rejected", fix="mend or remove its files"
            )
