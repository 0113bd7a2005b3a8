from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow_datasets as tfds
from etils import epath
from hyperbo_pipelines.curate.columns import Column, schema
from hyperbo_pipelines.run.execution import Execution
from hypothesis import given
from hypothesis import strategies as st

import pd1_builder.builder.shards
from hyperbo.errors import HyperBOError
from pd1_builder.builder.shards import plan_shards, write_shards

COLUMNS = (Column("n", "integer", "the number of the row"), Column("y", "real", "a float"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shards")


def parquet(path: Path, groups: list[int]) -> Path:
    """A Parquet file of row groups of so many rows; rows are numbered through."""
    start = 0
    with pq.ParquetWriter(path, schema(COLUMNS), compression="none", use_dictionary=False) as writer:
        for rows in groups:
            numbers = list(range(start, start + rows))
            writer.write_table(pa.table({"n": numbers, "y": [0.1 * n for n in numbers]}, schema(COLUMNS)))
            start += rows
    return path


def template(folder: Path) -> Any:
    return tfds.core.ShardedFileTemplate(
        data_dir=epath.Path(folder), dataset_name="d", split="s", filetype_suffix="array_record"
    )


@given(groups=st.lists(st.integers(1, 40), min_size=1, max_size=12), limit=st.integers(1, 2000))
def test_shards_cover_the_row_groups_in_order_and_reach_the_size_asked_for(
    folder: Path, groups: list[int], limit: int
) -> None:
    path = parquet(folder / "s.parquet", groups)
    metadata = pq.read_metadata(path)
    sizes = [metadata.row_group(index).total_byte_size for index in range(len(groups))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pd1_builder.builder.shards, "_BYTES_OF_SHARD", limit)
        planned = plan_shards("s", path, template(folder), "array_record")
    covered = [index for shard in planned for index in range(shard.first, shard.first + shard.groups)]
    assert covered == list(range(len(groups)))
    for number, shard in enumerate(planned):
        part = slice(shard.first, shard.first + shard.groups)
        assert shard.rows == sum(groups[part])
        assert shard.path.name == f"d-s.array_record-{number:05d}-of-{len(planned):05d}"
        if number + 1 < len(planned):
            # No row group more than it takes to reach the size.
            assert sum(sizes[part]) >= limit > sum(sizes[part][:-1])


def test_the_shards_hold_the_rows_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet(tmp_path / "s.parquet", [3, 1, 5])
    monkeypatch.setattr(pd1_builder.builder.shards, "_BYTES_OF_SHARD", 1)
    arguments = (tmp_path, ("s",), COLUMNS, tmp_path, "d", "array_record")
    (split,) = write_shards(*arguments, Execution())
    assert (split.name, list(split.shard_lengths)) == ("s", [3, 1, 5])
    sizes = [path.stat().st_size for path in tmp_path.glob("*.array_record-*")]
    assert len(sizes) == 3
    assert 0 < split.num_bytes < sum(sizes)
    assert sorted(path.suffix for path in tmp_path.iterdir() if "array_record" not in path.name) == [
        ".parquet"
    ]


def test_a_writer_that_loses_a_row_in_silence_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet(tmp_path / "s.parquet", [3, 4])
    write = pd1_builder.builder.shards.ExampleWriter.write

    def lossy(self: Any, path: Any, examples: Any) -> Any:
        return write(self, path, list(examples)[:-1])

    monkeypatch.setattr(pd1_builder.builder.shards.ExampleWriter, "write", lossy)
    with pytest.raises(HyperBOError, match=r"d-s\.array_record.* does not hold the 7 rows"):
        write_shards(tmp_path, ("s",), COLUMNS, tmp_path, "d", "array_record", Execution())
