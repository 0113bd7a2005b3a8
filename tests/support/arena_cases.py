"""An arena of two tiny divisions on versions written by hand: for tests only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hpob_records import BEGINNINGS, hpob_records
from hyperbo_flows.arena.protocol import Division, Part, Protocol
from hyperbo_flows.arena.results import bundle_of
from hyperbo_flows.arena.run import run_divisions
from version_folders import record, write_version

from pd1_builder.version.manifest import read_manifest

METHODS = ("Best-average", "Rand", "Portfolio")
BUDGETS = (1, 3, 6)


def write_versions(folder: Path) -> Path:
    """Write the two versions, and return the folder."""
    trials = [
        record(name, f"{name}/{i}", i / 8, 0.1 + ((i + 3 * offset) % 8) / 10)
        for offset, name in enumerate(("one-a", "one-b", "two-a"))
        for i in range(8)
    ]
    write_version(folder, "pd1/mini:1.0.0", {"matched": trials})
    splits = {"train": hpob_records(("s-1", "s-2")), "test": hpob_records(("s-4", "s-5"), BEGINNINGS)}
    write_version(folder, "hpob/4796:1.0.0", splits, warping="identity")
    return folder


def tiny_protocol(data: Path) -> Protocol:
    """A protocol of a division on each version, with the content hashes that these have."""

    def content(reference: str) -> str:
        return read_manifest(data / reference.replace(":", "/")).content_hash

    mini, rows = "pd1/mini:1.0.0", "hpob/4796:1.0.0"
    return Protocol(
        0,
        METHODS,
        METHODS[:2],
        (
            Division(
                "mini",
                "Two folds.",
                (Part("mini", mini, content(mini), "observed", "held-out-related", (0, 1)),),
                BUDGETS,
            ),
            Division(
                "rows", "Rows.", (Part("rows", rows, content(rows), "observed", "hpob", (0, 1)),), BUDGETS
            ),
        ),
    )


def run_tiny(data: Path, runs: Path, methods: Sequence[str] = METHODS):
    """The bundle of a run of the tiny protocol."""
    protocol = tiny_protocol(data)
    results = run_divisions(protocol.divisions, methods, runs, data, "the command")
    return bundle_of(results, (0.5, 0.25), protocol)
