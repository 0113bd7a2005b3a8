"""The arena: methods compared by a frozen protocol, with results that another machine verifies and merges."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from flows.arena.bundle import Bundle, read_bundle, write_bundle
    from flows.arena.merge import merge_bundles
    from flows.arena.protocol import PROTOCOL
    from flows.arena.run import run_divisions
    from flows.arena.verify import verify_bundle

__all__ = [
    "PROTOCOL",
    "Bundle",
    "merge_bundles",
    "read_bundle",
    "run_divisions",
    "verify_bundle",
    "write_bundle",
]
# Imported when they are used: they need JAX.
__getattr__, __dir__, _ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "bundle": ["Bundle", "read_bundle", "write_bundle"],
        "merge": ["merge_bundles"],
        "protocol": ["PROTOCOL"],
        "run": ["run_divisions"],
        "verify": ["verify_bundle"],
    },
)
