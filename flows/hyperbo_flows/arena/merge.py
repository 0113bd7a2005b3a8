"""Merge bundles of one protocol: the methods of several people, in one leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from hyperbo.errors import InvalidInputError
from hyperbo.evaluation.records.join import join_evaluations
from hyperbo.storage.printable import printable
from hyperbo_flows.arena.bundle import Bundle

_LONGEST_SHOWN = 500


def merge_bundles(bundles: Mapping[str, Bundle]) -> Bundle:
    """Put the results of several bundles together. Times stay with the machine that they were taken on.

    A run that two bundles hold must be the same in both: so the simplest baselines, which every bundle has,
    show that two machines did the same.

    Args:
      bundles: by a name for messages, such as their files.

    Raises:
      InvalidInputError: there is none, they are of different protocols, or the same method or run differs
        in two: its source, its settings in any part, where it applies, or an outcome; the message has both.
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
    for (one, held), (other, given) in combinations(bundles.items(), 2):
        _check_methods(one, held, other, given)
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


def _check_methods(first: str, expected: Bundle, name: str, given: Bundle) -> None:
    """Refuse a method that two bundles have otherwise, also where they have no part in common."""
    differing = [
        f"the source of {method}"
        for method in expected.sources.keys() & given.sources.keys()
        if expected.sources[method] != given.sources[method]
    ]
    ours, theirs = settings_of(expected), settings_of(given)
    differing += [
        f"the settings of {method}{f' on {kind}' if kind else ''}"
        for method, kind in ours.keys() & theirs.keys()
        if ours[method, kind] != theirs[method, kind]
    ]
    for part in dict.fromkeys((*expected.parts, *given.parts)):
        without, theirs_without = expected.does_not_apply.get(part, {}), given.does_not_apply.get(part, {})
        ran, theirs_ran = _methods(expected, part), _methods(given, part)
        differing += [
            f"whether {method} applies to {part}, and why not"
            for method in (*without, *theirs_without)
            if method in ran.keys() | theirs_ran.keys()
            or (method in without and method in theirs_without and without[method] != theirs_without[method])
        ]
    if differing:
        raise InvalidInputError(
            printable(f"differ in {'; '.join(sorted(set(differing)))}", _LONGEST_SHOWN),
            where=f"{first} and {name}",
            fix="report them apart; a method that was changed needs a name of its own",
        )


def _methods(bundle: Bundle, part: str) -> Mapping[str, Mapping[str, Any]]:
    return bundle.parts[part].metadata["methods"] if part in bundle.parts else {}


def settings_of(bundle: Bundle) -> dict[tuple[str, str], list[Any]]:
    """The settings of each method, all different ones: on each kind of data, and, for the kind "", on all.

    On HPO-B networks have other hidden layers by default, so these are left out of what all data share.
    """
    found: dict[tuple[str, str], list[Any]] = {}
    for evaluation in bundle.parts.values():
        kind = "HPO-B" if evaluation.metadata["dataset"].startswith("hpob/") else "other data"
        for method, settings in evaluation.metadata["methods"].items():
            for key, value in (((method, kind), settings), ((method, ""), _without_hidden(settings))):
                if value not in found.setdefault(key, []):
                    found[key].append(value)
    return found


def _without_hidden(settings: Mapping[str, Any]) -> dict[str, Any]:
    configuration = settings.get("configuration")
    if not isinstance(configuration, dict) or not isinstance(configuration.get("architecture"), dict):
        return dict(settings)
    architecture = {name: value for name, value in configuration["architecture"].items() if name != "hidden"}
    return {**settings, "configuration": {**configuration, "architecture": architecture}}
