"""Raw files that come with this package."""

from __future__ import annotations

from pathlib import Path


def shipped_raw(dataset: str, version: str) -> Path | None:
    """The folder of raw files shipped for a version, such as `pd1/raw/mini-1.0.0`; None where none are."""
    name, _, config = dataset.removesuffix("_without_curves").partition("/")
    folder = Path(__file__).parent / name / "raw" / f"{config}-{version}"
    return folder if folder.is_dir() else None
