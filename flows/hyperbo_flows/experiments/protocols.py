"""Protocols: which tasks are held out, what a run begins with, and whether it may observe a trial twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from hyperbo.data.folds import Fold, all_but_test_task, chosen_tasks, given_split, held_out_related
from hyperbo.data.subsets import flat_tasks, only_tasks
from hyperbo.data.tuning_data import Task, TuningData
from hyperbo.errors import InvalidInputError
from hyperbo.storage.validation import suggestion
from pd1_builder import load
from pd1_builder.read.official_split import initialisations, tasks_of_splits

ProtocolName = Literal["held-out-related", "all-but-test-task", "hpob"]
PROTOCOL_NAMES: tuple[ProtocolName, ...] = get_args(ProtocolName)

_OFFLINE = "candidates are the test task's trials that have a value; no initial data"
_ONCE = "none is observed twice before all are observed"
_REPEATS = "a candidate may be observed again"
_CHOSEN = "training and test tasks as named: no task is tested by what was learned from it"
_HPOB = (
    "training on the meta-train tasks, tests on the meta-test tasks; candidates are the test task's trials; "
    f"{_ONCE}; a run begins with given trials, and regret is divided by the range of the task; "
    "seed r of a run is seed r // {count} of the method with initialisation r mod {count}: {count} in a row "
    "share what was learned"
)
# Tasks that are trained on but not tested. ImageNet ResNet50 1024 of the release has 100 points only.
_NOT_TESTED = {"pd1/release": ("imagenet-resnet50-1024",), "pd1/mini": ("textures-wide_resnet-40",)}


@dataclass(frozen=True)
class TestBed:
    """A dataset version under a protocol: all that decides which runs there are.

    Attributes:
      data: all tasks.
      protocol: the protocol in words.
      folds: by name.
      repeats: whether a candidate may be observed again before all are observed.
      normalised: whether regret is divided by the range of the task.
      beginnings: by test task, the rows that each of its runs with one seed begins with; a task that is not
        named has one run per seed, with no initial data.
    """

    __test__ = False  # pytest takes the name for a test case

    data: TuningData
    protocol: str
    folds: Mapping[str, Fold]
    repeats: bool = False
    normalised: bool = False
    beginnings: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)

    @property
    def tests(self) -> tuple[Task, ...]:
        """The test tasks of all folds, in the order of the data."""
        tested = {task.name for fold in self.folds.values() for task in fold.tests}
        return tuple(task for task in self.data.tasks if task.name in tested)

    @property
    def flat_training_tasks(self) -> tuple[str, ...]:
        """Names of the tasks that are trained on in some fold and whose function is flat."""
        trained = {task.name for fold in self.folds.values() for task in fold.training.tasks}
        return tuple(name for name in flat_tasks(self.data) if name in trained)

    @property
    def runs_per_seed(self) -> int:
        """Runs on a test task with one seed of the method."""
        return max((len(rows) for rows in self.beginnings.values()), default=1)

    def run_seeds(self, seed: int) -> tuple[int, ...]:
        """The seeds that the runs of one seed of the method have in records."""
        return tuple(range(seed * self.runs_per_seed, (seed + 1) * self.runs_per_seed))


def default_protocol(dataset: str) -> ProtocolName:
    """The protocol that the paper evaluates a dataset by.

    >>> default_protocol("hpob/4796:1.0.0"), default_protocol("pd1/mini:1.0.0")
    ('hpob', 'held-out-related')
    """
    return "hpob" if dataset.startswith("hpob/") else "held-out-related"


def lay_out(
    dataset: str,
    preparation: str | None,
    protocol: ProtocolName,
    not_tested: tuple[str, ...],
    data_dir: Path | None,
    *,
    repeats: bool = False,
    train: tuple[str, ...] = (),
    test: tuple[str, ...] = (),
) -> TestBed:
    """Read a dataset version and lay it out as a protocol asks.

    Args:
      dataset: `<name>/<config>:<version>`.
      preparation: named reading of the version; None for the dataset's own.
      protocol: name of the protocol.
      not_tested: tasks that are trained on but not tested, as well as tasks that the paper does not test.
      data_dir: where versions are kept.
      repeats: whether a candidate may be observed again before all are observed, as in the paper's PD1
        experiments; HPO-B's protocol has no such option.
      train: names or patterns of the tasks that are trained on; empty, and no `test`: as the protocol says.
      test: names or patterns of the tasks that are tested; no task is tested by what was learned from it.

    Raises:
      InvalidInputError: tasks are named that are not there, the version lacks what the protocol needs, or
        the protocol forbids repeats.
      NotAvailableError: the version is not there.
    """
    if repeats and protocol == "hpob" and not (train or test):
        raise InvalidInputError(
            "the protocol hpob observes no trial twice", where=dataset, fix="leave repeats out"
        )
    data = load(dataset, preparation, data_dir=data_dir)
    if protocol == "hpob" and not (train or test):
        return _hpob(dataset, data, not_tested, data_dir)
    observing = f"{_OFFLINE}; {_REPEATS if repeats else _ONCE}"
    if train or test:
        folds = {fold.name: fold for fold in chosen_tasks(data, train, test)}
        return TestBed(data, f"{_CHOSEN}; {observing}", folds, repeats)
    known = {task.name for task in data.tasks}
    customary = _NOT_TESTED.get(dataset.partition(":")[0], ())
    left_out = (*not_tested, *(name for name in customary if name in known))
    hold_out, words = _HOLD_OUT[protocol]
    folds = {fold.name: fold for fold in hold_out(data, left_out)}
    return TestBed(data, f"{words}; {observing}", folds, repeats)


_HOLD_OUT: dict[str, tuple[Callable[..., tuple[Fold, ...]], str]] = {
    "held-out-related": (
        held_out_related,
        "held-out related: no training task shares the test task's dataset",
    ),
    "all-but-test-task": (all_but_test_task, "all but the test task: every other task is trained on"),
}


def with_training_data(bed: TestBed, data: TuningData) -> TestBed:
    """A test bed whose folds train on another version of its data. What is tested stays.

    A fold keeps its training tasks, in the other version. It also trains on the tasks that only the other
    version has, unless they share a task dataset with what is tested.

    Raises:
      InvalidInputError: a fold is left without a training task.
    """
    own = {task.name for task in bed.data.tasks}
    folds = {}
    for name, fold in bed.folds.items():
        trained = {task.name for task in fold.training.tasks}
        tested = {task.dataset for task in fold.tests}
        kept = {
            task.name
            for task in data.tasks
            if task.name in trained or (task.name not in own and task.dataset not in tested)
        }
        folds[name] = replace(fold, training=only_tasks(data, kept))
    return replace(bed, data=data, folds=folds)


def of_everything(bed: TestBed) -> TestBed:
    """The test bed of a prior for use: one fold without a name, which trains on all tasks and tests none."""
    return replace(bed, folds={"": Fold("", bed.data, ())})


def _hpob(dataset: str, data: TuningData, not_tested: tuple[str, ...], data_dir: Path | None) -> TestBed:
    splits = tasks_of_splits(dataset, data_dir)
    if not {"train", "test"} <= splits.keys():
        raise InvalidInputError(
            f"no splits train and test, but {', '.join(splits)}",
            where=dataset,
            fix=f"use a version of hpob, or the protocol {PROTOCOL_NAMES[0]}",
        )
    unknown = sorted(set(not_tested) - set(splits["test"]))
    if unknown:
        raise InvalidInputError(
            f"no test task {', '.join(unknown)}", where=dataset, fix=suggestion(unknown[0], splits["test"])
        )
    starts = initialisations(dataset, "test", data_dir)
    names = [name for name in splits["test"] if name not in not_tested]
    (fold,) = given_split(data, splits["train"], names)
    beginnings = {task.name: _rows(task, starts.get(task.name, {})) for task in fold.tests}
    counts = {len(rows) for rows in beginnings.values()}
    if len(counts) > 1 or 0 in counts:
        raise InvalidInputError(
            f"test tasks have {', '.join(map(str, sorted(counts)))} initialisations",
            where=dataset,
            fix="all must have equally many, and one at least",
        )
    return TestBed(
        data, _HPOB.format(count=counts.pop()), {fold.name: fold}, normalised=True, beginnings=beginnings
    )


def _rows(task: Task, named: Mapping[str, tuple[str, ...]]) -> tuple[tuple[int, ...], ...]:
    row = {trial: number for number, trial in enumerate(task.trial_ids)}
    missing = sorted({trial for trials in named.values() for trial in trials} - row.keys())
    if missing:
        raise InvalidInputError(
            f"the preparation keeps no value of {missing[0]!r}, which a run begins with",
            where=f"task {task.name!r}",
            fix="use the preparation observed",
        )
    return tuple(tuple(row[trial] for trial in trials) for trials in named.values())
