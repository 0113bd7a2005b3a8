"""Raw files that come with this package."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent


def shipped_raw(dataset: str, version: str) -> Path | None:
    """The folder of raw files shipped for a version, such as `pd1/raw/mini-1.0.0`; None where none are."""
    name, _, config = dataset.removesuffix("_without_curves").partition("/")
    folder = _HERE / name / "raw" / f"{config}-{version}"
    return folder if folder.is_dir() else None


def newest_shipped(dataset: str) -> str | None:
    """The newest version of a dataset whose raw files are shipped; None where none are."""
    name, _, config = dataset.removesuffix("_without_curves").partition("/")
    found = [folder.name.removeprefix(f"{config}-") for folder in (_HERE / name / "raw").glob(f"{config}-*")]
    return max(found, key=lambda version: tuple(map(int, version.split("."))), default=None)
