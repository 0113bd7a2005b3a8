"""TFDS: what a dataset version is, where versions are, and how one is read.

Importing this package, loading and comparing versions need neither TFDS nor Beam nor TensorFlow; building
does.
"""

from pd1_builder.additions import add
from pd1_builder.diff import Diff, diff
from pd1_builder.load import load
from pd1_builder.manifest import Manifest
from pd1_builder.releases import build, verify

__all__ = ["Diff", "Manifest", "add", "build", "diff", "load", "verify"]
