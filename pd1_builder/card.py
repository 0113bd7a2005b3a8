"""The card of a version: a page for people, under a header that Hugging Face reads."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hyperbo.trial import STATUSES
from pd1_builder.manifest import Manifest
from pd1_builder.markdown import code, plain, section, table
from pipelines.columns import Column, Kind

CARD_NAME = "README.md"
# What the Hugging Face Hub calls a licence, by its address.
HUB_LICENCES = {
    "https://www.apache.org/licenses/LICENSE-2.0": "apache-2.0",
    "https://creativecommons.org/licenses/by/4.0/": "cc-by-4.0",
    "https://creativecommons.org/licenses/by-nc/4.0/": "cc-by-nc-4.0",
    "https://creativecommons.org/licenses/by-sa/4.0/": "cc-by-sa-4.0",
    "https://creativecommons.org/publicdomain/zero/1.0/": "cc0-1.0",
    "https://opensource.org/license/mit": "mit",
}
_TAGS = ("bayesian-optimization", "hyperparameter-optimization", "tabular")
_BOUNDS = [10**power for power in range(3, 10)]
_SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B", "1B<n<10B")
_TYPES: dict[Kind, str] = {
    "text": "string",
    "texts": "list of string",
    "integer": "int64",
    "boolean": "bool",
    "real": "float64",
    "reals": "list of float64",
}
# Sections of a dataset's card that say how to add trials to it, not what its records are.
_ON_ADDING = ("Files", "The space file", "An Optuna study")


def card(
    manifest: Manifest,
    columns: Sequence[Column],
    *,
    description: str,
    citation: str,
    licence: str,
    foreword: str = "",
) -> str:
    """The card of a version, as Markdown; equal arguments give equal texts.

    Args:
      manifest: of the version; its `files`, of which the card is to be one, do not matter.
      columns: of the records.
      description: the card of the dataset, which holds of all its versions.
      citation: how to cite it, as BibTeX; empty where it is not known.
      licence: address of the licence; empty where it is not known.
      foreword: what whoever made the trials says that they are, as Markdown; empty where they say nothing.

    Source: the header is that of https://huggingface.co/docs/hub/datasets-cards.
    """
    rows = sum(manifest.rows(split) for split in manifest.counts)
    tasks = {task for of_split in manifest.counts.values() for task in of_split}
    name = manifest.dataset.partition("/")[0]
    lines = [
        *_header(manifest, rows, licence),
        f"# {manifest.dataset} {manifest.version}",
        "",
        *_quote(foreword),
        f"Tuning trials as a versioned dataset (records: {rows:,}; tasks: {len(tasks):,}), made from the raw "
        "files listed below. `manifest.json` says the same for machines, with counts by task.",
        *("", "## Records", "", *_records(manifest)),
        *("", "## Search space and objective", "", *_search_space(manifest)),
        *("", "## Reading", "", *_reading(manifest)),
        *("", "## Columns", ""),
        *table(
            ("column", "type", "meaning"),
            ((code(column.name), _TYPES[column.kind], plain(column.doc)) for column in columns),
        ),
        *("", "## Lineage", "", *_lineage(manifest)),
        *("", "## Licence and citation", ""),
        f"<{licence}>" if licence else "No licence is recorded: ask whoever made the trials.",
        *(("", *_fenced(citation)) if citation else ()),
        *("", f"## About {name}", "", f"What follows holds of every configuration and version of `{name}`."),
        *section(description, _ON_ADDING),
    ]
    return "\n".join(lines) + "\n"


def _quote(text: str) -> list[str]:
    """Lines of a quotation: whatever Markdown it is, what follows it is not a part of it."""
    return [*(f"> {line}" if line else ">" for line in text.strip().splitlines()), ""] if text else []


def _fenced(citation: str) -> list[str]:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", citation)), default=0))
    return [f"{fence}bibtex", citation.strip(), fence]


def _header(manifest: Manifest, rows: int, licence: str) -> list[str]:
    """YAML in which every value is JSON, which YAML contains."""
    known = HUB_LICENCES.get(licence)
    other = {"license": "other", "license_name": licence, "license_link": licence}
    fields: dict[str, Any] = {
        "pretty_name": f"{manifest.dataset} {manifest.version}",
        **({} if not licence else {"license": known} if known else other),
        "tags": _TAGS,
        "size_categories": [_SIZES[bisect(_BOUNDS, rows)]],
        # Without it, raw files kept beside the records would be read as records too.
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": f"{split}.parquet"} for split in manifest.counts],
            }
        ],
    }
    return ["---", *(f"{name}: {json.dumps(value)}" for name, value in fields.items()), "---", ""]


def _records(manifest: Manifest) -> list[str]:
    by_split: dict[str, Counter[str]] = {split: Counter() for split in manifest.counts}
    for split, tasks in manifest.counts.items():
        for statuses in tasks.values():
            by_split[split].update(statuses)
    present = [status for status in STATUSES if any(status in counts for counts in by_split.values())]
    numbers = {
        split: (len(manifest.counts[split]), counts.total(), *(counts[status] for status in present))
        for split, counts in by_split.items()
    }
    return table(
        ("split", "file", "tasks", "records", *present),
        ((split, f"`{split}.parquet`", *(f"{n:,}" for n in of_split)) for split, of_split in numbers.items()),
    )


def _search_space(manifest: Manifest) -> list[str]:
    objective, warping = manifest.parameters["objective"], manifest.parameters["warping"]
    outcome = [
        "`y` is the objective, warped, and is to be maximised:",
        "",
        *table(("objective", "warping"), [(code(f"metrics.{objective}"), code(warping))]),
    ]
    if not manifest.search_space:
        text = "The records are of several search spaces: `parameters` in `manifest.json` describe each."
        return [text, "", *outcome]
    parameters = (
        (code(each["name"]), repr(each["lower"]), repr(each["upper"]), each["scaling"])
        for each in manifest.search_space
    )
    return [
        "Declared bounds and scalings, by which `x.*` are the `hyperparameters.*` in the unit cube:",
        "",
        *table(("hyperparameter", "from", "to", "scaling"), parameters),
        "",
        *outcome,
    ]


def _reading(manifest: Manifest) -> list[str]:
    split, whole = next(iter(manifest.counts)), "" if manifest.search_space else ', as_="dataframe"'
    query = f"SELECT task, max(y) AS best FROM '{split}.parquet' WHERE NOT isnan(y) GROUP BY task"
    examples = (
        ("import pandas", f'records = pandas.read_parquet("{split}.parquet")'),
        ("import polars", f'records = polars.read_parquet("{split}.parquet")'),
        ("import duckdb", f'best = duckdb.sql("{query}").fetchall()'),
        ("import os", "import datasets", f'records = datasets.load_dataset(os.getcwd(), split="{split}")'),
        ("import mlcroissant", f'records = mlcroissant.Dataset("croissant.json").records("{split}")'),
        (
            "import tensorflow_datasets as tfds",
            f'records = tfds.builder_from_directory(".").as_data_source("{split}")',
        ),
        (
            "from pathlib import Path",
            "import pd1_builder",
            f'trials = pd1_builder.load("{manifest.reference}", data_dir=Path("../../.."){whole})',
        ),
    )
    return [
        "In this folder:",
        *(line for example in examples for line in ("", "```python", *example, "```")),
        "",
        f"The last one wants this folder to be `{manifest.dataset}/{manifest.version}` of a data folder. So "
        f'does `tfds.data_source("{manifest.reference}", data_dir=...)`. `tfds.load` and tf.data read '
        f"TFRecord files only, which `hyperbo data export {manifest.reference} --out FOLDER` writes.",
        "",
        "- What has no value is NaN, an empty text or an empty list; nothing is null. mlcroissant makes "
        "None of a NaN, and bytes of texts.",
        "- DuckDB, and polars where it compares, take NaN for the largest number: leave it out first.",
        "- Names have dots, and may have slashes: quote them in SQL. TFDS makes a nested dictionary of the "
        "part before the first dot.",
    ]


def _lineage(manifest: Manifest) -> list[str]:
    facts = [
        ("content hash", f"`{manifest.content_hash}`"),
        ("parent", manifest.parent or "none: it is the first version"),
        ("code version", code(manifest.code_version)),
        ("rows that became no record, in `rejects.jsonl`", f"{manifest.rejects:,}"),
        ("records whose task ran the same input more than once", f"{manifest.duplicates:,}"),
        ("matched blocks", f"{len(manifest.blocks):,}"),
    ]
    raw = (
        (code(file.name), "" if file.rows is None else f"{file.rows:,}", f"{file.size:,}", f"`{file.sha256}`")
        for file in manifest.raw_files
    )
    return [
        *table(("of the version", "is"), facts),
        "",
        *table(("raw file", "rows", "bytes", "SHA-256"), raw),
    ]
