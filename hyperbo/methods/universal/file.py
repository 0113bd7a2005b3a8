"""A hyper-prior as a JSON file: some numbers for each role, and what they were learned from."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.methods.universal.columns import KINDS
from hyperbo.methods.universal.hyperprior import HyperPrior
from hyperbo.storage.atomic import write_atomically
from hyperbo.storage.validation import validated, without_format

FORMAT = 1


def write_hyperprior(path: Path, learned: HyperPrior) -> None:
    """Write a hyper-prior, its numbers with six digits."""
    fields = {"format": FORMAT, **asdict(learned)}
    write_atomically(path, (json.dumps(_rounded(fields), indent=1, allow_nan=False) + "\n").encode())


def read_hyperprior(path: Path) -> HyperPrior:
    """Read what `write_hyperprior` wrote.

    Raises:
      NotAvailableError: there is no such file.
      InvalidInputError: it cannot be read, lacks a field or a kind of columns, or a number is out of its
        domain.
      VersionConflictError: the format is another.
    """
    if not path.is_file():
        raise NotAvailableError(f"there is no {path}: the universal prior is missing")
    try:
        learned = validated(HyperPrior, without_format(json.loads(path.read_text()), FORMAT, str(path)), "")
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"cannot be read: {error}", where=str(path), fix="install the package again, or fit it again"
        ) from error
    missing = [kind for kind in KINDS if kind not in learned.groups]
    deviations = [learned.noise[1], *(each.lengthscale[1] for each in learned.groups.values())]
    variances = [value for each in learned.groups.values() for value in each.effect_variance]
    if missing or min(deviations) <= 0.0 or min(variances) < 0.0:
        raise InvalidInputError(
            f"no group {missing[0]!r}" if missing else "a deviation or variance is not positive",
            where=str(path),
            fix="install the package again, or fit it again",
        )
    return learned


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value
