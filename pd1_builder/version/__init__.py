"""What a version is on disk: manifest, content hash, catalog of a data folder, verification."""

from pd1_builder.version.catalog import Version, default_data_dir, find, versions
from pd1_builder.version.manifest import Manifest, read_manifest
from pd1_builder.version.pull_record import revision_of
from pd1_builder.version.stored_records import StoredRecords
from pd1_builder.version.verification import verify

__all__ = [
    "Manifest",
    "StoredRecords",
    "Version",
    "default_data_dir",
    "find",
    "read_manifest",
    "revision_of",
    "verify",
    "versions",
]
