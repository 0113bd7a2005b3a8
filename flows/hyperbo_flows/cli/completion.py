"""What a shell completes: names of priors and of dataset versions."""

from __future__ import annotations

from contextlib import suppress

import typer


def prior_names(incomplete: str) -> list[str]:
    """The lines of priors that begin so: the user's own, and those shipped with the package."""
    from hyperbo.priors.names import catalogs, lines

    with suppress(OSError):
        known = {name for root in catalogs() for name in lines(root)}
        return sorted(name for name in known if name.startswith(incomplete))
    return []


def references(context: typer.Context, incomplete: str) -> list[str]:
    """The versions in the data folder that begin so."""
    from pd1_builder.version.catalog import versions

    with suppress(OSError):
        known = (f"{each.dataset}:{each.version}" for each in versions(context.params.get("data")))
        return [name for name in known if name.startswith(incomplete)]
    return []
