"""Merge bundles of one protocol: the methods of several people, in one leaderboard."""

from __future__ import annotations

from collections.abc import Mapping

from flows.arena.bundle import Bundle
from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.join import join_evaluations


def merge_bundles(bundles: Mapping[str, Bundle]) -> Bundle:
    """Put the results of several bundles together. Times stay with the machine that they were taken on.

    A run that two bundles hold must be the same in both: so the simplest baselines, which every bundle has,
    show that two machines did the same.

    Args:
      bundles: by a name for messages, such as their files.

    Raises:
      InvalidInputError: there is none, they are of different protocols, or the same method or run differs
        in two; the message has both outcomes.
    """
    if not bundles:
        raise InvalidInputError("no bundle to merge", fix="name at least one")
    (first, reference), *others = bundles.items()
    for name, bundle in others:
        if bundle.protocol != reference.protocol:
            raise InvalidInputError(
                f"protocols {reference.protocol['number']} ({reference.protocol['sha256'][:12]}) and "
                f"{bundle.protocol['number']} ({bundle.protocol['sha256'][:12]}) differ",
                where=f"{first} and {name}",
                fix="run one of them again by the protocol of the other",
            )
    names = dict.fromkeys(part for bundle in bundles.values() for part in bundle.parts)
    parts = {
        part: join_evaluations(
            {
                f"{name}: {part}": bundle.parts[part]
                for name, bundle in bundles.items()
                if part in bundle.parts
            }
        )
        for part in names
    }
    # Equal sources of one name: else the configurations would differ, which name the hash.
    sources = {method: source for bundle in bundles.values() for method, source in bundle.sources.items()}
    machines = [machine for bundle in bundles.values() for machine in bundle.machines]
    return Bundle(
        reference.protocol,
        tuple(machine for place, machine in enumerate(machines) if machine not in machines[:place]),
        parts,
        {
            part: {
                method: reason
                for bundle in bundles.values()
                for method, reason in bundle.does_not_apply.get(part, {}).items()
            }
            for part in names
        },
        sources,
    )
