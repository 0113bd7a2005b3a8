"""What to do about a version that is not there, or that is damaged: commands that can be pasted."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from pd1_builder.version.makeable import DATASETS, can_be_made, how_to_make
from pd1_builder.version.pull_record import was_pulled

SOURCES_VARIABLE = "HYPERBO_DATA_SOURCES"


def data_option(data_dir: Path) -> str:
    """The option that names a data folder on a command line.

    >>> data_option(Path("my data"))
    "--data 'my data'"
    """
    return f"--data {shlex.quote(str(data_dir))}"


def not_here(
    dataset: str,
    version: str,
    root: Path,
    there: Sequence[tuple[str, str]],
    option: str,
    elsewhere: Path | None,
) -> str:
    """Why a version cannot be found, and what to do: no advice that cannot work.

    Args:
      dataset: the dataset that was asked for.
      version: its version; empty for the newest.
      root: the data folder.
      there: the versions that the data folder holds, by dataset and number, oldest first.
      option: what names the data folder on a command line; empty for the default one.
      elsewhere: another data folder that holds the version, if there is one.
    """
    reference = f"{dataset}:{version}" if version else dataset
    what = f"{reference} is not in {root}"
    if not root.is_dir():
        what += ", a folder that does not exist"
    of_dataset = [number for name, number in there if name == dataset]
    if of_dataset:
        what += f" ({_versions(dataset, version, of_dataset)})"
    if elsewhere is not None:
        return f"{what}; it is in {elsewhere}: give {data_option(elsewhere)} (in Python: data_dir)"
    advice = [] if of_dataset else _similar(dataset, version, there, option)
    if not advice and (made := how_to_make(dataset, version, option)):
        advice.append(made)
    if os.environ.get(SOURCES_VARIABLE, "").strip():
        pull = " ".join(filter(None, ("hyperbo data pull", reference, option)))
        advice.append(f"pull it, if a place of {SOURCES_VARIABLE} has it: {pull}")
    if not advice:
        advice.append("see what is there: " + " ".join(filter(None, ("hyperbo data list", option))))
    return f"{what}; {'; or '.join(advice)}"


def _versions(dataset: str, version: str, numbers: Sequence[str]) -> str:
    newest = numbers[-1]
    near = get_close_matches(version, numbers, n=1, cutoff=0.0)[0]
    told = f"the newest there is {dataset}:{newest}"
    return told if near == newest else f"{told}, the nearest {dataset}:{near}"


def _similar(dataset: str, version: str, there: Sequence[tuple[str, str]], option: str) -> list[str]:
    """The question whether a dataset of a similar name is meant; empty where there is none."""
    if dataset in DATASETS:
        return []
    newest = dict(there)  # The last version of a dataset is the newest.
    names = [*newest, *(name for name in DATASETS if name not in newest)]
    family, _, config = dataset.partition("/")
    # Names of one family begin alike; they are compared without that.
    configs = [each.partition("/")[2] for each in names if each.startswith(f"{family}/")]
    if near := get_close_matches(config, configs, n=1):
        name = f"{family}/{near[0]}"
    elif near := get_close_matches(dataset, names, n=1, cutoff=0.85):
        (name,) = near
    else:
        return []
    if name in newest:
        return [f"did you mean {name}:{newest[name]}, which is there?"]
    known = version if can_be_made(name, version) else ""
    return [f"did you mean {name}? {how_to_make(name, known, option)}"]


def remedy(folder: Path, dataset: str, version: str) -> str:
    """What to do about a damaged version without losing a file that exists nowhere else."""
    name, _, config = dataset.partition("/")
    option, kept = data_option(folder.parents[2]), folder / "raw"
    if was_pulled(folder):
        return f"remove it, hyperbo data prune {dataset}:{version} {option}, and pull it again from its place"
    if name == "trials":
        again = f"hyperbo data add {config} FILES --space SPACE.toml --version {version} {option}"
        return f"copy {kept} elsewhere, remove {folder}, and make it again of those files: {again}"
    if name == "bo_runs":
        again = f"hyperbo data record {config} FOLDER --version {version} {option}"
        return f"copy {kept} elsewhere, remove {folder}, and make it again of those folders: {again}"
    return f"remove {folder}, and build it again: hyperbo data build {dataset}:{version} {option}"
