"""Comparing versions: their differences, version numbers, and checks of a new version against its parent."""

from pd1_builder.compare.diff import Changes, Diff, diff, diff_folders
from pd1_builder.compare.release_checks import ReleaseChecks, check_number, check_release, next_number

__all__ = [
    "Changes",
    "Diff",
    "ReleaseChecks",
    "check_number",
    "check_release",
    "diff",
    "diff_folders",
    "next_number",
]
