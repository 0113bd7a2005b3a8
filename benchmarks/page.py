"""The page of all recorded benchmarks: `make benchmark-page` writes docs/benchmarks.md.

python -m benchmarks.page FILE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent / "recorded"
_HEAD = """# Benchmarks

This page is written by `make benchmark-page` from the records in `benchmarks/recorded/`. A record is what one
run of a benchmark printed; the option `--record FILE` writes it.

A time depends on the machine, and on what else runs there. The load is the mean number of processes that
wanted to run. Where it is above the number of cores, all clock times are too long. **Compare numbers of one
table only**, and prefer ratios.
"""


def page(records: Path = RECORDS) -> str:
    """The page, in Markdown.

    Args:
      records: folder of the records.
    """
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(records.glob("*.json"))]
    return "\n".join([_HEAD, *(_section(record) for record in found)])


def _section(record: dict[str, Any]) -> str:
    lines = [f"## {record['title']}", "", f"    {record['command']}", "", *_conditions(record), ""]
    for said in record["said"]:
        lines += [said, ""]
    for table in record["tables"]:
        if table["title"]:
            lines += [f"### {table['title']}", ""]
        lines += [_row(table["columns"]), _row(["---"] * len(table["columns"]))]
        lines += [*map(_row, table["rows"]), ""]
    return "\n".join(lines)


def _conditions(record: dict[str, Any]) -> list[str]:
    """Where and when; what was measured before there were records names the page it is copied from."""
    if "copied_from" in record:
        source = record["copied_from"]
        return [
            f"**Not a recorded run**: copied from [{source}]({source}), with what is known of the machine."
        ]
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    return [
        f"{record['date']}; {record['machine']}; load {record['load_at_start']} at the start, "
        f"{record['load_at_end']} at the end.",
        f"Versions: {versions}.",
    ]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
