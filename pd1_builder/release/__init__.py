"""Making a version: from raw files of a known layout, from a new release of them, or by adding trials."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from pd1_builder.release.build_version import build, build_from_recipe
    from pd1_builder.release.datasets import DATASETS
    from pd1_builder.release.next_version import add, next_release

__all__ = ["DATASETS", "add", "build", "build_from_recipe", "next_release"]
# Imported when they are used: the parsers of raw files are needed only to build a version.
__getattr__, __dir__ = attach(
    __name__,
    {
        "build_version": ["build", "build_from_recipe"],
        "datasets": ["DATASETS"],
        "next_version": ["add", "next_release"],
    },
)
