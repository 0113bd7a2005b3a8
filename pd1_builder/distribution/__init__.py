"""Places: publishing versions where others can read them, and pulling versions from there.

A place is a folder: on this machine, on any static web server, or in an object store. It holds

    index.json                              the index: all entries
    index/<name>/<config>/<version>.json    the entry of one version; created last, and never changed
    index/<name>/<config>/<version>.claim   reserves the version for one revision while it is published
    <name>/<config>/<version>/...           the files of the version, as in a data folder

All bytes are checked by SHA-256: the files against the manifest, the manifest against the entry, or against a
revision or a signature that the reader has from elsewhere.
"""

from pd1_builder.distribution.addresses import place_at, writable_place_at
from pd1_builder.distribution.index import Entry, find_entry, read_index
from pd1_builder.distribution.places import Place, WritablePlace
from pd1_builder.distribution.prune import prune
from pd1_builder.distribution.publish import publish
from pd1_builder.distribution.pull import pull
from pd1_builder.distribution.transfer import RetryPolicy

__all__ = [
    "Entry",
    "Place",
    "RetryPolicy",
    "WritablePlace",
    "find_entry",
    "place_at",
    "prune",
    "publish",
    "pull",
    "read_index",
    "writable_place_at",
]
