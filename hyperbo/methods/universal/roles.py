"""What a parameter is for, guessed from its name: the role that the universal prior knows it by."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

GENERIC = "generic"
# Role, and words that a name of that role has. The first role that fits is taken.
_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "schedule",
        ("decay steps", "linear decay", "exponential decay", "power", "warmup", "gamma lr", "power t"),
    ),
    ("weight_decay", ("weight decay", "wd", "l2", "l1", "alpha", "lambda", "reg", "regularization", "ridge")),
    ("momentum", ("momentum", "beta", "beta1", "beta2", "beta 1", "beta 2", "betas")),
    ("learning_rate", ("learning rate", "lr", "eta", "eta0", "step size", "stepsize", "shrinkage")),
    ("epsilon", ("eps", "epsilon", "tol", "tolerance", "cp", "min impurity decrease")),
    ("batch_size", ("batch", "batch size", "minibatch")),
    ("dropout", ("dropout", "drop rate", "droprate", "keep prob")),
    (
        "share",
        ("subsample", "max samples", "max features", "colsample", "fraction", "ratio", "components"),
    ),
    (
        "iterations",
        (
            "iterations",
            "max iter",
            "n iter",
            "epochs",
            "steps",
            "estimators",
            "rounds",
            "trees",
            "boost round",
        ),
    ),
    (
        "min_samples",
        ("min samples", "min child", "minsplit", "minbucket", "min data", "neighbors", "neighbours"),
    ),
    ("depth", ("depth", "maxdepth", "layers", "num layers", "n layers", "degree")),
    (
        "width",
        ("width", "hidden", "units", "size", "dim", "neurons", "channels", "filters", "leaves", "leaf nodes"),
    ),
    ("capacity", ("c", "cost", "gamma", "bandwidth", "length scale", "sigma")),
)
ROLES: tuple[str, ...] = (*(role for role, _ in _WORDS), GENERIC)


def role_of(name: str) -> str:
    """The role that a parameter's name tells; `generic` where it tells none.

    A name is cut into words at capitals, digits' ends and signs. It has a role if one of the role's words, or
    a sequence of them, is in it.

    >>> role_of("learning_rate_init"), role_of("l2_regularization"), role_of("optimizer.momentum")
    ('learning_rate', 'weight_decay', 'momentum')
    >>> role_of("maxDepth"), role_of("C"), role_of("colour")
    ('depth', 'capacity', 'generic')
    """
    words = " ".join(re.findall(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*", name)).lower()
    for role, known in _WORDS:
        if any(f" {each} " in f" {words} " for each in known):
            return role
    return GENERIC


def meant_by(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant: one spelt alike, or the only one of its role; None: there is none.

    >>> meant_by("lr", ["learning_rate", "momentum"]), meant_by("rates", ["rate"]), meant_by("x", ["y"])
    ('learning_rate', 'rate', None)
    """
    near = difflib.get_close_matches(name, list(names), n=1, cutoff=0.8)
    role = role_of(name)
    alike = near or [each for each in names if role_of(each) == role != GENERIC]
    return alike[0] if len(alike) == 1 else None
