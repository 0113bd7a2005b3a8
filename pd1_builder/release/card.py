"""The card of a version: a Markdown page for people, with a header for the Hugging Face Hub."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hyperbo_pipelines.curate.columns import Column, Kind

from hyperbo.data.search_space import SearchSpace
from hyperbo.data.trial import STATUSES
from pd1_builder.release.markdown import code, plain, section, table
from pd1_builder.version.manifest import Manifest

CARD_NAME = "README.md"
# Names of licences on the Hugging Face Hub, by the address of the licence.
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
# Sections of a dataset's card about adding trials to it. They do not describe its records.
_ON_ADDING = (
    *("Files", "Exports that grow", "The space file"),
    *("Histories of other tools", "An Optuna study as a table"),
)


def card(
    manifest: Manifest,
    columns: Sequence[Column],
    *,
    description: str,
    citation: str,
    licence: str,
    foreword: str = "",
) -> str:
    """The card of a version, as Markdown. Equal arguments give equal texts.

    The manifest's `files` are not used, because the card is one of them. `description` is the card of the
    dataset, and `foreword` what the person who made the trials says of them, both as Markdown. `citation` is
    BibTeX, `licence` an address. What is not known is empty.

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
        "files listed below. `manifest.json` states the same in a form for programs, with counts by task.",
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
        f"<{licence}>" if licence else "No licence is recorded. Ask the person who made the trials.",
        *(("", *_fenced(citation)) if citation else ()),
        *("", f"## About {name}", "", f"This section is about every configuration and version of `{name}`."),
        *section(description, _ON_ADDING),
    ]
    return "\n".join(lines) + "\n"


def _quote(text: str) -> list[str]:
    """Lines of a quotation. Its Markdown cannot change the Markdown after it."""
    return [*(f"> {line}" if line else ">" for line in text.strip().splitlines()), ""] if text else []


def _fenced(citation: str) -> list[str]:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", citation)), default=0))
    return [f"{fence}bibtex", citation.strip(), fence]


def _header(manifest: Manifest, rows: int, licence: str) -> list[str]:
    """The header, as YAML whose values are all JSON. JSON is valid YAML."""
    known = HUB_LICENCES.get(licence)
    other = {"license": "other", "license_name": licence, "license_link": licence}
    fields: dict[str, Any] = {
        "pretty_name": f"{manifest.dataset} {manifest.version}",
        **({} if not licence else {"license": known} if known else other),
        "tags": _TAGS,
        "size_categories": [_SIZES[bisect(_BOUNDS, rows)]],
        # Otherwise the Hub would read the raw files beside the records as records too.
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
        "`y` is the warped objective. Larger is better.",
        "",
        *table(("objective", "warping"), [(code(f"metrics.{objective}"), code(warping))]),
    ]
    space = manifest.space
    if space is None:
        text = "The records are of several search spaces. `parameters` in `manifest.json` describes each."
        return [text, "", *outcome]
    return [
        "`x.*` are the `hyperparameters.*`, mapped to the unit cube by these bounds, scalings and levels:",
        "",
        *table(("hyperparameter", "type", "values"), _parameters(space)),
        "",
        *([] if space.is_real else [*_COLUMNS_OF_X, ""]),
        *outcome,
    ]


def _parameters(space: SearchSpace) -> Iterator[tuple[str, str, str]]:
    for each in space.parameters:
        yield code(each.name), each.type, plain(each.summary)


_COLUMNS_OF_X = (
    "A choice of more than two levels has one column of `x` for each level, 1 where it is chosen. An ordinal "
    "or a choice of two has one column, the place among the levels. A constant has none. A parameter with a "
    "condition has one column more, `x.<name>:active`; where it is 0, the raw value is NULL or empty, and "
    "the other columns hold their centre.",
)


def _reading(manifest: Manifest) -> list[str]:
    split, whole = next(iter(manifest.counts)), "" if manifest.search_space else ', as_="dataframe"'
    query = f"SELECT task, max(y) AS best FROM '{split}.parquet' GROUP BY task"
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
        f"The last example needs this folder to be `{manifest.dataset}/{manifest.version}` of a data folder, "
        f'as does `tfds.data_source("{manifest.reference}", data_dir=...)`. `tfds.load` and tf.data read '
        f"only TFRecord files. `hyperbo data export {manifest.reference} --out FOLDER` writes them.",
        "",
        "- A missing number is NULL, also in a list; a missing text or list is empty. No number is NaN. "
        "pandas, TFDS and `pd1_builder` show NULL as NaN. mlcroissant turns texts into bytes.",
        "- A trial that diverged has NULL where its training has NaN; `status` says that it diverged.",
        "- Column names contain dots and may contain slashes. Quote them in SQL. TFDS groups the columns by "
        "the part of the name before the first dot, in nested dictionaries.",
    ]


def _lineage(manifest: Manifest) -> list[str]:
    facts = [
        ("content hash", f"`{manifest.content_hash}`"),
        ("parent", manifest.parent or "none, this is the first version"),
        ("code version", code(manifest.code_version)),
        ("rejected rows, listed in `rejects.jsonl`", f"{manifest.rejects:,}"),
        ("records whose input occurs more than once in their task", f"{manifest.duplicates:,}"),
        ("matched blocks", f"{len(manifest.blocks):,}"),
    ]
    if manifest.rounded:
        facts.append(
            (
                "records with a raw value a rounding outside of its range, where `x` is clipped",
                f"{manifest.rounded:,}",
            )
        )
    raw = (
        (code(file.name), "" if file.rows is None else f"{file.rows:,}", f"{file.size:,}", f"`{file.sha256}`")
        for file in manifest.raw_files
    )
    return [
        *table(("property", "value"), facts),
        "",
        *table(("raw file", "rows", "bytes", "SHA-256"), raw),
        *_exports(manifest),
    ]


def _exports(manifest: Manifest) -> list[str]:
    if not manifest.exports:
        return []
    cells = (
        (
            code(each.name),
            f"{each.known:,}",
            f"{each.new:,}",
            code(each.raw_file) if each.raw_file else "",
            f"`{each.sha256}`",
        )
        for each in manifest.exports
    )
    return [
        "",
        "Of these files, rows that were known were skipped, and the raw file holds the new ones:",
        "",
        *table(("file added", "rows known", "rows new", "raw file", "SHA-256"), cells),
    ]
