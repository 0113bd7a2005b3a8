"""What the fields of a manifest may hold: it may come from anyone, and its names become paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

MANIFEST_NAME = "manifest.json"
# Beside the manifest, where it is signed; no file of the version.
SIGNATURE_NAME = f"{MANIFEST_NAME}.minisig"
DATASET = re.compile(r"[a-z0-9_]+/[a-z0-9_]+")
VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)")
SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_FILES = 10_000
_LONGEST_NAME = 200
_LONGEST_PATH = 1_000


def check_fields(fields: Mapping[str, Any]) -> None:
    """Check types and ranges of the fields of a manifest; what it states is checked by `verification`.

    Raises:
      ValueError: a field holds what it must not; says which.
      KeyError: a field is missing.
    """
    require(_is(fields["dataset"], DATASET), "dataset")
    require(_is(fields["version"], VERSION), "version")
    require(fields["parent"] is None or _is(fields["parent"], VERSION), "parent")
    require(_is(fields["content_hash"], SHA256), "content_hash")
    require(isinstance(fields["code_version"], str), "code_version")
    for name in ("duplicates", "rejects"):
        require(is_count(fields[name]), name)
    for name in ("raw_files", "files"):
        require(isinstance(fields[name], list) and len(fields[name]) <= _MOST_FILES, name)
        for file in fields[name]:
            require(isinstance(file, dict) and isinstance(file["name"], str), name)
            require(is_count(file["size"]) and _is(file["sha256"], SHA256), f"{name}: {file['name']!r}")
            require(file["rows"] is None or is_count(file["rows"]), f"{name}: {file['name']!r}")
    names = [file["name"] for file in fields["files"]]
    _check_names(names)
    _check_counts(fields["counts"], names)
    for name in ("search_space", "blocks"):
        require(isinstance(fields[name], list) and all(isinstance(each, dict) for each in fields[name]), name)
    parameters = fields["parameters"]
    require(isinstance(parameters, dict), "parameters")
    require(all(isinstance(parameters.get(name), str) for name in ("objective", "warping")), "parameters")
    for block in fields["blocks"]:
        require(isinstance(block["id"], str) and is_count(block["inputs"]), "blocks")
        require(
            isinstance(block["tasks"], list) and all(isinstance(t, str) for t in block["tasks"]), "blocks"
        )


def check_name(name: str) -> None:
    """Check that a name is that of a file inside a folder.

    Raises:
      ValueError: it is not.

    >>> check_name("raw/trials.csv")
    >>> check_name("../trials.csv")
    Traceback (most recent call last):
    ValueError: '../trials.csv' is no name of a file of this folder
    """
    parts = name.split("/")
    is_safe = (
        len(name) <= _LONGEST_PATH
        and not PurePosixPath(name).is_absolute()
        and "\\" not in name
        and name.isprintable()
        and all(part not in ("", ".", "..") and len(part.encode()) <= _LONGEST_NAME for part in parts)
    )
    if not is_safe:
        raise ValueError(f"{name!r} is no name of a file of this folder")


def is_count(value: object) -> bool:
    """Whether a value of JSON is a whole number that counts something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def require(holds: bool, field: str) -> None:
    """Refuse what does not hold of a field.

    Raises:
      ValueError: it does not.
    """
    if not holds:
        raise ValueError(f"the field {field} holds what it must not")


def _is(value: object, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _check_names(names: list[str]) -> None:
    for name in names:
        check_name(name)
    folders = {parent.as_posix() for name in names for parent in PurePosixPath(name).parents}
    taken = {MANIFEST_NAME, SIGNATURE_NAME}
    require(not folders & taken, "files")
    taken |= folders
    for name in names:
        require(name not in taken, f"files: {name!r}")
        taken.add(name)


def _check_counts(counts: Any, names: list[str]) -> None:
    require(isinstance(counts, dict) and len(counts) > 0, "counts")
    for split, tasks in counts.items():
        check_name(split)
        require(f"{split}.parquet" in names and "/" not in split and isinstance(tasks, dict), "counts")
        for statuses in tasks.values():
            require(isinstance(statuses, dict) and all(map(is_count, statuses.values())), "counts")
