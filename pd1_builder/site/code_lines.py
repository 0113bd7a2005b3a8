"""Lines of code for those who want a published version: to be copied, and to work as they are."""

from __future__ import annotations

import json
import shlex
from typing import Any
from urllib.parse import quote

from pd1_builder.distribution.index import Entry
from pd1_builder.manifest import Manifest


def is_web(address: str) -> bool:
    """Whether an address is one of a web server, that a browser can follow."""
    return address.lower().startswith(("http://", "https://"))


def code_lines(entry: Entry, manifest: Manifest, address: str) -> tuple[tuple[str, str], ...]:
    """Lines of code that bring or read a version, each after what it is for.

    Args:
      entry: of the version.
      manifest: of the version.
      address: of the place, as readers are to type it.
    """
    splits = tuple(manifest.counts)
    # No arrays hold the records of several search spaces.
    whole = "" if manifest.search_space else ', as_="dataframe"'
    paths = {split: f"{entry.folder}/{split}.parquet" for split in splits}
    files = {split: f"{address}/{quote(path) if is_web(address) else path}" for split, path in paths.items()}
    return (
        (
            "On the command line, every byte checked",
            f"hyperbo data pull {entry.reference} --from {shlex.quote(address)} --revision {entry.revision}",
        ),
        (
            "In Python, pulled at first use and checked",
            f"pd1_builder.load({_text(entry.reference)}, source={_text(address)}{whole})",
        ),
        *(
            ("pandas, one split, unchecked", f"pandas.read_parquet({_text(files[split])})")
            for split in splits[:1]
        ),
        (
            "Hugging Face datasets, unchecked",
            f'datasets.load_dataset("parquet", data_files={_text(files)})',
        ),
    )


def _text(value: Any) -> str:
    """A value as Python code: of texts and dictionaries of them, JSON is."""
    return json.dumps(value, ensure_ascii=False)
