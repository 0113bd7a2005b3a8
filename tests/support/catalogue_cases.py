"""Places of published versions on disk: a small one, and one whose every text is hostile."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from version_folders import record, write_version

from pd1_builder.compare.diff import Changes
from pd1_builder.distribution.index import Entry, create_entry, list_entries
from pd1_builder.distribution.writable_places import FolderPlace
from pd1_builder.version.manifest import FileDigest, read_manifest
from pd1_builder.version.verification import files_of

CARD = """---
license: "apache-2.0"
---

# pd1/mini 1.1.0

Trials, with [a link](https://example.org/).

| column | meaning |
| --- | ---: |
| `y` | warped |

## Reading

```python
import pandas
```
"""
RAW = (FileDigest("rows.jsonl", 1200, "ab" * 32, 3), FileDigest("columns.json", 80, "cd" * 32))

ATTACK = '"\'><script>window.hacked = 1</script><img src="https://evil.example/i.png" onerror="hacked = 1">'
HOSTILE_CARD = f"""---
title: {ATTACK}
---
{ATTACK}

<style>body {{ display: none }}</style> <iframe src="https://evil.example/"></iframe>

![picture](https://evil.example/p.png) ![inline](data:image/svg+xml,<svg/>)
[run](javascript:hacked=1) [see](data:text/html,<script>hacked=1</script>) [up](../../index.json)
[site](https://evil.example/ "a\\" onmouseover=\\"hacked=1") <https://evil.example/a>

| {ATTACK} | b |
| :-- | --: |
| {"very_long_name_" * 20} | 1 |

```"><script>window.hacked=1</script>
{ATTACK}
```

{"word" * 200}
"""


def add_release(
    place: Path,
    reference: str,
    splits: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    card: str = "",
    changes: Changes | None = None,
    parent: str | None = None,
    published: str = "2026-11-22T10:00:00Z",
    is_signed: bool = False,
    **fields: Any,
) -> Entry:
    """Write a version into a place, with other fields of its manifest, and make it exist there."""
    folder = write_version(place, reference, splits, parent=parent)
    if card:
        (folder / "README.md").write_text(card, encoding="utf-8")
    manifest = read_manifest(folder)
    (folder / "manifest.json").unlink()
    manifest = replace(manifest, files=files_of(folder), **fields)
    (folder / "manifest.json").write_text(manifest.to_json())
    content = (folder / "manifest.json").read_bytes()
    if is_signed:
        (folder / "manifest.json.minisig").write_text("untrusted comment: none\n")
    entry = Entry(
        dataset=manifest.dataset,
        version=manifest.version,
        revision=hashlib.sha256(content).hexdigest(),
        parent=parent,
        content_hash=manifest.content_hash,
        records={split: manifest.rows(split) for split in manifest.counts},
        tasks=len({task for tasks in manifest.counts.values() for task in tasks}),
        size=sum(path.stat().st_size for path in folder.iterdir()),
        published=published,
    )
    target = FolderPlace(place)
    create_entry(target, entry, changes)
    list_entries(target)
    return entry


def write_place(place: Path) -> Path:
    """Two versions of pd1/mini and one of trials/mine."""
    first, second = record("a-cnn", "a/0"), record("a-cnn", "a/1", a=0.5, value=None, status="diverged")
    add_release(place, "pd1/mini:1.0.0", {"matched": [first]}, raw_files=RAW[:1])
    add_release(
        place,
        "pd1/mini:1.1.0",
        {"matched": [first, second], "unmatched": [record("b-mlp", "b/0")]},
        parent="1.0.0",
        card=CARD,
        changes=Changes(additions=("2 records added (matched a-cnn 1, unmatched b-mlp 1)",)),
        raw_files=RAW,
        is_signed=True,
    )
    add_release(place, "trials/mine:1.0.0", {"all_of_it": [first]})
    return place


def write_hostile_place(place: Path) -> Path:
    """A version whose names, phrases and card are attacks, or longer than any screen."""
    task, unseen, long = f"{ATTACK}-cnn", "evil\u202egnp.exe", "long_name_" * 30
    add_release(
        place,
        "trials/hostile:1.0.0",
        {"one": [record(task, "t/0"), record(long, "t/1")]},
        card=HOSTILE_CARD,
        parent="0.9.0",
        changes=Changes((f"field {ATTACK} removed", long, unseen), (ATTACK,)),
        raw_files=tuple(FileDigest(name, 1, "ef" * 32) for name in (ATTACK, unseen, long)),
        code_version=ATTACK,
        parameters={"objective": ATTACK, "warping": long},
        search_space=(
            {"name": ATTACK, "lower": 0.0, "upper": 1.0, "scaling": "linear"},
            {"name": long, "lower": 0.0, "upper": 1.0, "scaling": "linear"},
        ),
    )
    return place
