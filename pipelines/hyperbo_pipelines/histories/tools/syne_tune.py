"""Experiments of Syne Tune: the folder of a tuner, with its results and its metadata."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hyperbo.data.warping import Direction
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.curate.fields import json_object
from hyperbo_pipelines.histories.draft import ParameterDraft
from hyperbo_pipelines.histories.files import (
    LARGEST_DOCUMENT,
    csv_rows,
    literal,
    member,
    name_text,
    number,
    read_bytes,
    read_json,
)
from hyperbo_pipelines.histories.guess import guess_role
from hyperbo_pipelines.histories.history import Objective, Run, RunStatus, Study

RESULTS = "results.csv.zip"
_CONFIG = "config_"
_STATUSES: Mapping[str, RunStatus] = {"completed": "done", "stopped": "pruned", "failed": "failed"}
_DIRECTIONS: Mapping[str, Direction] = {"min": "minimize", "max": "maximize"}


def read_syne_tune(folder: Path) -> list[Study]:
    """Read the folder of a tuner: `results.csv.zip`, `metadata.json`, and the trials' `config.json`.

    The name of the study is that of the tuner, without the time that Syne Tune adds. A trial that Syne Tune
    stopped before its last resource level is pruned; one that it stopped there is done.

    Raises:
      InvalidInputError: a file cannot be read, or is not as Syne Tune 0.16 writes it.
    """
    where = str(folder / RESULTS)
    metadata = read_json(folder / "metadata.json")
    names = member(metadata, "metric_names", list, str(folder / "metadata.json"))
    modes = metadata.get("metric_mode")
    modes = modes if isinstance(modes, list) else [modes] * len(names)
    rows: dict[str, list[dict[str, str]]] = {}
    for row in csv_rows(_unzipped(folder / RESULTS), where):
        rows.setdefault(member(row, "trial_id", str, where), []).append(row)
    last = (metadata.get("scheduler_kwargs") or {}).get("max_t")
    runs = [_run(identifier, found, names, metadata, last) for identifier, found in rows.items()]
    # A trial that failed before it reported has no row.
    for path in sorted(folder.glob("*/config.json")):
        if path.parent.name not in rows:
            has_ended = (path.parent / "end").is_file()
            values = json_object(read_bytes(path))
            runs.append(Run(path.parent.name, "failed" if has_ended else "running", values))
    return [
        Study(
            "Syne Tune",
            "",
            name_text(_without_time(folder.absolute().name), "the tuner", where),
            tuple(runs),
            tuple(
                Objective(name_text(name, "a metric", where), _DIRECTIONS.get(mode))
                for name, mode in zip(names, modes, strict=False)
            ),
            tuple(_drafts(metadata.get("config_space"), str(folder / "metadata.json"))),
            source=str(folder),
        )
    ]


def _without_time(name: str) -> str:
    """A tuner's name without the time of its start, of which Syne Tune adds seven numbers."""
    parts = name.rsplit("-", 7)
    return parts[0] if len(parts) == 8 and all(part.isdigit() for part in parts[1:]) else name


def _unzipped(path: Path) -> str:
    """The one CSV file of an archive, as text."""
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes(path))) as archive:
            (entry,) = archive.infolist()
            if entry.file_size > LARGEST_DOCUMENT:
                raise InvalidInputError(
                    f"the file in it has {entry.file_size} bytes, and at most {LARGEST_DOCUMENT} are read",
                    where=str(path),
                    fix="export fewer trials at once",
                )
            return archive.read(entry).decode("utf-8")
    except (zipfile.BadZipFile, zlib.error, ValueError, RuntimeError, NotImplementedError, EOFError) as error:
        raise InvalidInputError(
            f"is not a ZIP archive of one CSV file: {error}", where=str(path), fix="export it again"
        ) from error


def _run(
    identifier: str, rows: list[dict[str, str]], names: list[str], metadata: Mapping[str, Any], last: Any
) -> Run:
    final = rows[-1]
    values = {
        name.removeprefix(_CONFIG): literal(cell)
        for name, cell in final.items()
        if name.startswith(_CONFIG) and cell
    }
    reported = [name for name in final if not name.startswith((_CONFIG, "st_")) and name != "trial_id"]
    numbers = {name: [number(row[name]) for row in rows] for name in reported}
    metrics = {name: found[-1] for name, found in numbers.items() if not all(map(math.isnan, found))}
    status = _STATUSES.get(final.get("st_status", "").lower(), "running")
    has_all = last is not None and any(
        number(row.get(str(_resource(metadata)))) >= number(last) for row in rows
    )
    if final.get("st_decision") == "STOP" and status != "failed":
        status = "done" if has_all else "pruned"
    steps = [float(place) for place in range(1, len(rows) + 1)]
    seconds = number(final.get("st_worker_time"))
    ended = number(final.get("st_worker_timestamp"))
    return Run(
        identifier,
        status,
        values,
        metrics,
        {name: dict(zip(steps, numbers[name], strict=True)) for name in metrics if len(rows) > 1},
        ended - seconds,
        seconds,
    )


def _resource(metadata: Mapping[str, Any]) -> Any:
    return (metadata.get("scheduler_kwargs") or {}).get("time_attr")


def _drafts(text: Any, where: str) -> Iterator[ParameterDraft]:
    if not isinstance(text, str):
        return
    for name, domain in json_object(text.encode()).items():
        role = guess_role(name_text(name, "a parameter", where))
        if not isinstance(domain, dict):
            yield ParameterDraft(name, "constant", levels=(domain,), role=role)
            continue
        kind = member(domain, "domain_cls", str, where)
        given = member(domain, "domain_kwargs", dict, where)
        if kind in ("Categorical", "Ordinal", "OrdinalNearestNeighbor", "FiniteRange"):
            levels = tuple(given.get("categories") or ())
            if levels:
                named = "choice" if kind == "Categorical" else "ordinal"
                yield ParameterDraft(name, named if len(levels) > 1 else "constant", levels=levels, role=role)
        elif kind in ("Float", "Integer"):
            sampler = str(domain.get("sampler_cls"))
            scaling = "log" if sampler == "LogUniform" else "linear"
            notes = ("Syne Tune searched it on a reverse log scale.",) if "Reverse" in sampler else ()
            lower, upper = number(given.get("lower")), number(given.get("upper"))
            named = "integer" if kind == "Integer" else "real"
            yield ParameterDraft(name, named, lower, upper, scaling, role=role, notes=notes)
