"""Versions with files large enough that bringing one takes more than one read: for tests only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from version_folders import record, write_version

from pd1_builder.version.manifest import MANIFEST_NAME, digest_file, read_manifest

# By size: large and middle files, one of a few bytes, in a folder, and one of none.
FILES = {
    "large.bin": 700_000,
    "middle.bin": 300_000,
    "raw/a file.csv": 1_000,
    "rejects.jsonl": 0,
}


def write_large_version(
    data_dir: Path,
    reference: str,
    *,
    seed: int = 0,
    parent: str | None = None,
    sizes: Mapping[str, int] = FILES,
) -> Path:
    """Write a version of a few records and of files of random bytes, and return its folder."""
    folder = write_version(data_dir, reference, {"one": [record("a", f"a/{seed}")]}, parent=parent)
    generator = np.random.default_rng(seed)
    for name, size in sizes.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(generator.bytes(size))
    manifest = read_manifest(folder)
    files = (*manifest.files, *(digest_file(folder / name, folder) for name in sizes))
    (folder / MANIFEST_NAME).write_text(replace(manifest, files=files).to_json())
    return folder
