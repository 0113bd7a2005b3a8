"""Runs of Weights & Biases: the folder `wandb` that its client writes, offline or not."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.histories import wire
from hyperbo_pipelines.histories.files import LARGEST_DOCUMENT, name_text, number, read_bytes
from hyperbo_pipelines.histories.flat import flattened
from hyperbo_pipelines.histories.history import Run, RunStatus, Study

# The format of the log is that of LevelDB: blocks of records, and each record with checksum, length and kind.
LOGS = "*run-*/run-*.wandb"
_MAGIC = b":W&B"
_HEADER = 7
_BLOCK = 1 << 15
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
# Columns of a history and of a summary that the client adds; they are no results.
_INTERNAL = "_"


def read_wandb(folder: Path) -> list[Study]:
    """Read the runs of a folder, one study for each project: `*run-*/run-*.wandb`.

    A run without an exit record has not ended; one with another exit code than 0 has failed.

    Raises:
      InvalidInputError: a log cannot be read.
    """
    runs: dict[str, list[Run]] = {}
    version = ""
    for path in sorted(folder.glob(LOGS)):
        # `latest-run` is a link to another of the folders.
        if not path.parent.is_symlink():
            project, made_by, run = _run(path)
            runs.setdefault(project, []).append(run)
            version = version or made_by
    return [
        Study("Weights & Biases", version, name_text(name, "the project", str(folder)), tuple(found),
              source=str(folder))
        for name, found in sorted(runs.items())
    ]  # fmt: skip


def _run(path: Path) -> tuple[str, str, Run]:
    config: dict[str, Any] = {}
    summary: dict[str, Any] = {}
    curves: dict[str, dict[float, float]] = {}
    project = name = identifier = version = ""
    started = seconds = math.nan
    status: RunStatus = "running"
    attributes: dict[str, Any] = {}
    try:
        for step, content in enumerate(_records(read_bytes(path, LARGEST_DOCUMENT))):
            record = wire.fields_of(content)
            if 17 in record:
                run = wire.message_of(record, 17)
                identifier, project, name = (wire.text_of(run, place) for place in (1, 3, 8))
                attributes |= {"group": wire.text_of(run, 6), "job_type": wire.text_of(run, 7), "name": name}
                _update(config, wire.message_of(run, 4))
                stamp = wire.message_of(run, 17)
                started = wire.integer_of(stamp, 1) + wire.integer_of(stamp, 2) / 1e9
            if 5 in record:
                _update(config, wire.message_of(record, 5))
            if 3 in record:
                _update(summary, wire.message_of(record, 3))
            if 2 in record:
                _log(curves, wire.message_of(record, 2), step)
            if 21 in record:
                version = wire.text_of(wire.message_of(wire.message_of(record, 21), 1), 1) or version
            if 18 in record:
                ending = wire.message_of(record, 18)
                status = "failed" if wire.integer_of(ending, 1) else "done"
                seconds = float(wire.integer_of(ending, 2)) if 2 in ending else math.nan
    except InvalidInputError as error:
        raise InvalidInputError(error.what, where=error.where or str(path), fix=error.fix) from error
    made_by = (
        (config.get("_wandb") or {}).get("cli_version") if isinstance(config.get("_wandb"), dict) else ""
    )
    finals = {each: list(curve.values())[-1] for each, curve in curves.items()}
    numbers = {
        each: number(value) for each, value in flattened(summary).items() if not each.startswith(_INTERNAL)
    }
    seconds = number(summary.get("_runtime")) if math.isnan(seconds) or not seconds else seconds
    metrics = finals | {each: value for each, value in numbers.items() if not math.isnan(value)}
    values = {each: value for each, value in flattened(config).items() if not each.startswith(_INTERNAL)}
    run_id = identifier or path.stem.removeprefix("run-")
    # The release, without the commit that a development build adds.
    return project, str(made_by or version).partition("+")[0], Run(
        run_id, status, values, metrics, curves, started, seconds, attributes
    )  # fmt: skip


def _update(target: dict[str, Any], record: wire.Fields) -> None:
    """Apply a record of a config or a summary: items that are set, items that are removed."""
    for item in wire.messages_of(record, 1):
        keys = wire.texts_of(item, 2) or [wire.text_of(item, 1)]
        inner = target
        for key in keys[:-1]:
            held = inner.setdefault(key, {})
            inner = held if isinstance(held, dict) else inner.__setitem__(key, {}) or inner[key]
        inner[keys[-1]] = _json(wire.text_of(item, 16))
    for item in wire.messages_of(record, 2):
        target.pop(wire.text_of(item, 1), None)


def _log(curves: dict[str, dict[float, float]], record: wire.Fields, place: int) -> None:
    step = float(wire.integer_of(wire.message_of(record, 2), 1) if 2 in record else place)
    for item in wire.messages_of(record, 1):
        name = ".".join(wire.texts_of(item, 2)) or wire.text_of(item, 1)
        value = math.nan
        if 16 in item:
            found = _json(wire.text_of(item, 16))
            value = math.nan if isinstance(found, str) and found != "Infinity" else number(found)
        elif 6 in item:
            value = wire.double_of(item, 6)
        elif 5 in item:
            coded = wire.integer_of(item, 5)
            # A field of the type sint64 is zigzag-encoded.
            value = float((coded >> 1) ^ -(coded & 1))
        else:
            continue
        if not name.startswith(_INTERNAL):
            curves.setdefault(name, {})[step] = value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"a value is not JSON: {error}", fix="export it again") from error


def _records(content: bytes) -> Iterator[bytes]:
    """The records of a log; one that was not written to its end is the end of the log."""
    if content[: len(_MAGIC)] != _MAGIC:
        raise InvalidInputError("not a log of Weights & Biases", fix="give the tool's own file, unchanged")
    place, parts = _HEADER, list[bytes]()
    while place + _HEADER <= len(content):
        left = _BLOCK - place % _BLOCK
        if left < _HEADER:
            place += left
            continue
        checksum, length, kind = struct.unpack_from("<IHB", content, place)
        data = content[place + _HEADER : place + _HEADER + length]
        if not kind and not length:
            place += left
            continue
        if len(data) < length:
            return
        if zlib.crc32(data, zlib.crc32(bytes([kind]))) != checksum or kind > _LAST:
            raise InvalidInputError("a record of the log is damaged", fix="copy the file again")
        place += _HEADER + length
        if kind in (_FULL, _FIRST):
            parts.clear()
        parts.append(data)
        if kind in (_FULL, _LAST):
            yield b"".join(parts)
