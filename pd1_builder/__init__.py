"""Dataset versions: building them with TFDS, comparing, verifying and reading them.

Importing this package, and loading, comparing and verifying versions, need neither TFDS nor Beam nor
TensorFlow, nor anything else of the `build` extra. Only building does.
"""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from pd1_builder.bo_runs.recipe import record_runs
    from pd1_builder.compare.diff import Diff, diff
    from pd1_builder.read.load import load, load_frame
    from pd1_builder.release.build_version import build
    from pd1_builder.release.next_version import add
    from pd1_builder.version.manifest import Manifest
    from pd1_builder.version.verification import verify

__all__ = ["Diff", "Manifest", "add", "build", "diff", "load", "load_frame", "record_runs", "verify"]
# Imported when they are used: the parsers of raw files are needed only to build a version.
__getattr__, __dir__ = attach(
    __name__,
    {
        "bo_runs.recipe": ["record_runs"],
        "compare.diff": ["Diff", "diff"],
        "read.load": ["load", "load_frame"],
        "release.build_version": ["build"],
        "release.next_version": ["add"],
        "version.manifest": ["Manifest"],
        "version.verification": ["verify"],
    },
)
