"""TFDS: what a dataset version is, where versions are, and how one is read.

Importing this package, loading, comparing and verifying versions need neither TFDS nor Beam nor TensorFlow,
nor anything else of the `build` extra; building does.
"""

from typing import TYPE_CHECKING, Any

from pd1_builder.diff import Diff, diff
from pd1_builder.load import load
from pd1_builder.manifest import Manifest
from pd1_builder.verification import verify

if TYPE_CHECKING:
    from pd1_builder.additions import add
    from pd1_builder.bo_runs.record import record_runs
    from pd1_builder.releases import build

__all__ = ["Diff", "Manifest", "add", "build", "diff", "load", "record_runs", "verify"]


def __getattr__(name: str) -> Any:
    # Where something is built, and only there, the parsers of raw files are needed.
    match name:
        case "add":
            from pd1_builder.additions import add

            return add
        case "build":
            from pd1_builder.releases import build

            return build
        case "record_runs":
            from pd1_builder.bo_runs.record import record_runs

            return record_runs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
