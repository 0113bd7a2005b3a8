"""The arena: methods compared by a frozen protocol, with results that another machine verifies and merges."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo_flows.arena.bundle import Bundle, read_bundle, write_bundle
    from hyperbo_flows.arena.merge import merge_bundles
    from hyperbo_flows.arena.protocol import PROTOCOL
    from hyperbo_flows.arena.run import run_divisions
    from hyperbo_flows.arena.verify import verify_bundle

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
__getattr__, __dir__ = attach(
    __name__,
    {
        "bundle": ["Bundle", "read_bundle", "write_bundle"],
        "merge": ["merge_bundles"],
        "protocol": ["PROTOCOL"],
        "run": ["run_divisions"],
        "verify": ["verify_bundle"],
    },
)
