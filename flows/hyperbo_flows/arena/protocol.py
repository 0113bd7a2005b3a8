"""The protocol of the arena: what every method is asked to do. It is frozen; a change needs a new number.

Settings of methods are not part of it: each is at the defaults of the library, and a bundle holds the
configuration that ran.
"""

# docs/decisions/arena.md says why the protocol is so.

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hyperbo.errors import InvalidInputError
from hyperbo.storage.validation import suggestion
from hyperbo_flows.arena.families import FAMILIES
from hyperbo_flows.arena.synthetic import SYNTHETIC
from hyperbo_flows.experiments.protocols import ProtocolName

# What intervals are clustered by.
Cluster = Literal["task_dataset", "task"]


@dataclass(frozen=True)
class Part:
    """One experiment of a division.

    Attributes:
      name: its name within the arena: letters, digits, hyphens.
      dataset: `<name>/<config>:<version>`.
      content_hash: the content hash that the version must have.
      preparation: named reading of the version.
      protocol: which tasks are held out, and what a run may observe.
      seeds: seeds of what is learned, and of the runs.
      not_tested: tasks that are trained on, not tested.
      train: patterns of the tasks that are trained on; with `test`, in place of the protocol's rule.
      test: patterns of the tasks that are tested.
    """

    name: str
    dataset: str
    content_hash: str
    preparation: str
    protocol: ProtocolName
    seeds: tuple[int, ...]
    not_tested: tuple[str, ...] = ()
    train: tuple[str, ...] = ()
    test: tuple[str, ...] = ()


@dataclass(frozen=True)
class Division:
    """A table of the leaderboard: experiments that are scored together.

    Attributes:
      name: what it is called on the command line.
      words: what is learned from, and what is tested, in one or two sentences.
      parts: its experiments.
      budgets: the observations after which regret is told; runs end with the last.
      cluster: what intervals are clustered by.
    """

    name: str
    words: str
    parts: tuple[Part, ...]
    budgets: tuple[int, ...] = (1, 5, 10, 25, 50, 100)
    cluster: Cluster = "task_dataset"


@dataclass(frozen=True)
class Protocol:
    """All that decides what a bundle must hold.

    Attributes:
      number: of the protocol; another protocol has another number.
      methods: methods of the project, by the names of `hyperbo.methods.METHODS`.
      baselines: those that are run beside any other method.
      divisions: the divisions.
    """

    number: int
    methods: tuple[str, ...]
    baselines: tuple[str, ...]
    divisions: tuple[Division, ...]

    def sha256(self) -> str:
        """The hash of the protocol as canonical JSON: bundles of one hash can be compared."""
        return sha256_of_json(asdict(self))

    def division(self, name: str) -> Division:
        """The division of that name.

        Raises:
          InvalidInputError: there is none.
        """
        for each in self.divisions:
            if each.name == name:
                return each
        fix = suggestion(name, (each.name for each in self.divisions))
        raise InvalidInputError(f"no division {name!r}", where="arena", fix=fix)


def sha256_of_json(value: Any) -> str:
    """The SHA-256 of plain values, whatever the order of their keys.

    >>> sha256_of_json({"a": 1, "b": [2]}) == sha256_of_json({"b": (2,), "a": 1})
    True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


_MINI_1 = "b0b70e0dadb9600e99d6ff046a1b55ab39ec443e9efcf46251dc15a4354a390c"
_MINI_2 = "04e352dfec50b2b609b696bde43b866bc7418010c163a22d60aa0d49afbde97e"
_TASKSET = "e54d891c3b18b65ddbfafc621281a3c63366d219d330f03e2255051c99f5aaaa"
_HPOB_4796 = "cc1219662969486834dfa10eb9c5bc4b79abb949878945c6f7c02d8ee6b2fa48"
_HPOB_5636 = "b66aefe86d4656a4de87d97e24103d534a1e50f00e9a14ce0cac4c405b3994ea"
_SYNTHETIC_HASH = "17ea3044769a3bd3b5c3c9c55d9add51fac608592729f19d5721ff8c5db57431"
# In the quick division these tasks are trained on only.
_DIGITS = ("max_pool_relu", "max_pool_tanh", "simple_cnn")

PROTOCOL = Protocol(
    number=1,
    methods=(
        "H-NLL",
        "H-EKL",
        "H-Mix",
        "H-Add",
        "FSBO",
        "ABLR",
        "RGPE",
        "ScaML-GP",
        "EGP",
        "CGP",
        "CTS",
        "Table",
        "Portfolio",
        "Best-average",
        "Box-Rand",
        "Default-Rand",
        "Mix",
        "STBO",
        "Rand",
    ),
    baselines=("Best-average", "Rand"),
    divisions=(
        Division(
            "quick",
            "Three folds of PD1 mini 1.0.0 with one seed and 25 trials a run: whether a method works at all. "
            "Settings of this project were chosen on these data, so it is no evidence.",
            (
                Part(
                    "mini-1",
                    "pd1/mini:1.0.0",
                    _MINI_1,
                    "paper",
                    "held-out-related",
                    (0,),
                    not_tested=(
                        *(f"digits-{model}-{at}" for model in _DIGITS for at in (20, 60)),
                        *(f"sample_patches-simple_cnn-{at}" for at in (20, 100)),
                        *(f"sample_patches-wide_resnet-{at}" for at in (20, 60)),
                    ),
                ),
            ),
            budgets=(1, 5, 10, 25),
        ),
        Division(
            "pd1-mini",
            "PD1 mini 2.0.0: networks on seven small datasets. No training task shares the dataset of a test "
            "task.",
            (Part("mini-2", "pd1/mini:2.0.0", _MINI_2, "paper", "held-out-related", (0, 1)),),
        ),
        Division(
            "taskset",
            "Eight text classifiers of TaskSet (Metz et al., 2020), trained with Adam of eight "
            "hyperparameters. Each is tested by what was learned from the seven others. All share one "
            "dataset, so the task is the cluster.",
            (Part("taskset", "trials/taskset:1.0.0", _TASKSET, "observed", "all-but-test-task", (0, 1)),),
            cluster="task",
        ),
        Division(
            "hpob",
            "Rows of two search spaces of HPO-B (Pineda-Arango et al., 2021) by the benchmark's own rules: "
            "five given initialisations, regret divided by the range of the task.",
            (
                Part("hpob-4796", "hpob/4796:1.0.0", _HPOB_4796, "observed", "hpob", (0, 1, 2, 3, 4)),
                Part("hpob-5636", "hpob/5636:1.0.0", _HPOB_5636, "observed", "hpob", (0, 1, 2, 3, 4)),
            ),
        ),
        Division(
            "synthetic",
            "Twelve families of functions of three parameters. A method learns from eight functions of a "
            "family and is tested on three others. Observations have noise; regret is that of the functions "
            "without noise.",
            tuple(
                Part(
                    f"synthetic-{family}",
                    SYNTHETIC,
                    _SYNTHETIC_HASH,
                    "observed",
                    "all-but-test-task",
                    (0,),
                    train=(f"{family}-train-*",),
                    test=(f"{family}-test-*",),
                )
                for family in FAMILIES
            ),
        ),
    ),
)
