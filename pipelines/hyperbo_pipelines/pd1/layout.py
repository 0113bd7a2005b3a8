"""The layout of the PD1 release: the names of its files, the columns of its rows, and its records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hyperbo.data.search_space import PD1_SEARCH_SPACE
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.elements import RawFile
from hyperbo_pipelines.curate.layout import Layout
from hyperbo_pipelines.curate.raw_files import describe_file

# An added file has a suffix behind `results`, so that files of several sources have different names.
_NAME = re.compile(r"pd1_(matched|unmatched)_phase([01])_results(-[A-Za-z0-9_.-]+?)?\.jsonl(\.gz)?")
_EXPECTED = "expected pd1_{matched,unmatched}_phase{0,1}_results.jsonl, or .jsonl.gz"
# The column of each parameter of the PD1 search space. Momentum is beta, not 1 - beta.
HYPERPARAMETER_COLUMNS = {
    "learning_rate": "hps.lr_hparams.initial_value",
    "power": "hps.lr_hparams.power",
    "momentum": "hps.opt_hparams.momentum",
    "decay_steps_factor": "hps.lr_hparams.decay_steps_factor",
}

_MEASURED = (
    "train_cost",
    *(f"{part}/{metric}" for part in ("train", "valid", "test") for metric in ("error_rate", "ce_loss")),
)
METRICS = tuple(f"best_{name}{suffix}" for name in _MEASURED for suffix in ("", "_index", "_step"))
ERROR_RATES = tuple(name for name in METRICS if name.endswith("/error_rate"))
CURVES = ("global_step", "epoch", "eval_time", "learning_rate", *_MEASURED)


def pd1_layout(*, curves: bool) -> Layout:
    """The layout of PD1's records, with curves or without."""
    return Layout(PD1_SEARCH_SPACE, METRICS, CURVES if curves else (), model=True)


def find_raw_files(folder: Path) -> tuple[RawFile, ...]:
    """Find the files of the PD1 release's layout in a folder and describe them.

    Other files of the folder are left alone.

    Args:
      folder: holds `pd1_{matched,unmatched}_phase{0,1}_results.jsonl[.gz]`; some may be absent.

    Returns:
      The files, sorted by name.

    Raises:
      InvalidInputError: there is no such folder or no such file, a file comes twice, or a file is unreadable
        or cut short.
    """
    if not folder.is_dir():
        raise InvalidInputError(
            "no such folder of raw files", where=str(folder), fix="give a folder that exists"
        )
    return describe_raw_files([path for path in sorted(folder.iterdir()) if is_raw_file(path)], str(folder))


def is_raw_file(path: Path) -> bool:
    """Whether the name of a file is one of the PD1 release's layout.

    `pd1_unmatched_phase0_results-online.jsonl` is such a name too: the file adds trials to a release.
    """
    return _NAME.fullmatch(path.name) is not None


def is_addition(path: Path) -> bool:
    """Whether the name of a file is that of trials added to a release, not of the release itself."""
    name = _NAME.fullmatch(path.name)
    return name is not None and name[3] is not None


def describe_raw_files(paths: Sequence[Path], where: str) -> tuple[RawFile, ...]:
    """Read each file of the PD1 release's layout once, and describe it.

    This happens before any pipeline runs: an unreadable file stops a build early, and rows are counted
    independently of the parser.

    Args:
      paths: the files.
      where: where they come from, for messages.

    Returns:
      The files, sorted by name.

    Raises:
      InvalidInputError: there is no file, a file comes twice, or one is unreadable or cut short.
    """
    files, seen = [], dict[str, Path]()
    for path in sorted(paths, key=lambda path: path.name):
        name = _NAME.fullmatch(path.name)
        if name is None:
            raise InvalidInputError("not named as raw files are", where=str(path), fix=_EXPECTED)
        other = seen.setdefault(path.name.removesuffix(".gz"), path)
        if other != path:
            raise InvalidInputError(
                f"the same trials come twice, as {other.name} and {path.name}",
                where=where,
                fix="remove one of the two",
            )
        files.append(describe_file(path, name[1], int(name[2])))
    if not files:
        raise InvalidInputError("no raw file found", where=where, fix=_EXPECTED)
    if not any(file.rows for file in files):
        raise InvalidInputError("the raw files have no rows", where=where)
    return tuple(files)
