"""Synthetic files in HPO-B's official layout, made up by formula and written as a stream: never shipped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

SPLITS = ("train", "validation", "test")
INITIALISATIONS = 5


def write_hpob(
    folder: Path,
    rows_per_dataset: int = 20,
    datasets: int = 2,
    dimensions: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Path:
    """Write the five files; each split has `datasets` datasets of each search space, numbered through.

    Values have six decimals, as in the release. Memory is that of one dataset.
    """
    folder.mkdir(parents=True, exist_ok=True)
    spaces = {"4796": 3, "5636": 6} if dimensions is None else dimensions
    for number, split in enumerate(SPLITS):
        ids = range(100 * number, 100 * number + datasets)
        with (folder / f"meta-{split}-dataset.json").open("w") as stream:
            stream.write("{")
            for index, (space, dimension) in enumerate(spaces.items()):
                stream.write(f'{", " if index else ""}"{space}": {{')
                for dataset in ids:
                    stream.write(f'{", " if dataset > ids[0] else ""}"{dataset}": ')
                    _write_dataset(stream, rows_per_dataset, dimension, [seed, dataset, dimension])
                stream.write("}")
            stream.write("}")
    tests = range(200, 200 + datasets)
    draw = np.random.default_rng(seed)
    starts = {
        space: {
            str(dataset): {
                f"test{i}": draw.choice(rows_per_dataset, INITIALISATIONS, replace=False).tolist()
                for i in range(5)
            }
            for dataset in tests
        }
        for space in spaces
    }
    (folder / "bo-initializations.json").write_text(json.dumps(starts))
    descriptors = {space: describe(dimension) for space, dimension in spaces.items()}
    (folder / "meta-dataset-descriptors.json").write_text(json.dumps(descriptors))
    return folder


def _write_dataset(stream: IO[str], rows: int, dimension: int, seed: list[int]) -> None:
    draw = np.random.default_rng(seed)
    x = np.round(draw.uniform(size=(rows, dimension)), 6)
    y = np.round(np.clip(1 - ((x - 0.4) ** 2).mean(axis=1, keepdims=True), 0, 1), 6)
    stream.write(f'{{"X": {json.dumps(x.tolist())}, "y": {json.dumps(y.tolist())}}}')


def describe(dimension: int) -> dict[str, object]:
    """The descriptors of a search space of `dimension` columns: numbers, every second one on a log scale."""
    names = [f"p{column}" for column in range(dimension)]
    number = {"min": 0.0, "max": 1.0, "min_before_tf": 0.0, "max_before_tf": 1.0}
    return {
        "variables": dict.fromkeys(names, number),
        "variables_order": names,
        "variables_to_apply_log": names[::2],
    }
