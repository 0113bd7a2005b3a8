"""TFDS: what a dataset version is, where versions are, and how one is read.

Importing this package, and loading a version, imports neither TFDS nor Beam nor TensorFlow; building does.
"""

from pd1_builder.load import load
from pd1_builder.manifest import Manifest
from pd1_builder.releases import build, verify

__all__ = ["Manifest", "build", "load", "verify"]
