"""Which metric is tuned, and in which direction: as the tools say, as the caller says, or by its name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from hyperbo.data.warping import Direction
from hyperbo.errors import InvalidInputError
from hyperbo_pipelines.histories.history import Objective, Run, Study

Ending = Literal["done", "diverged", "failed", "pruned"]
_MAXIMISED = r"acc(uracy)?|auc|auroc|score|f1|r2|precision|recall|reward|return|map|bleu|iou|dice|throughput"
_MINIMISED = r"loss|err(or)?|cost|rmse|mse|mae|mape|nll|perplexity|ppl|wer|cer|regret|objective|value"
# What is measured on validation data is tuned, before what is measured elsewhere.
_SETS = (r"val|valid|validation|dev|eval", r"test", r"", r"train(ing)?")
_SHOWN = 8


def choose_objective(
    studies: Sequence[Study], name: str = "", direction: Direction | None = None
) -> tuple[Objective, tuple[str, ...]]:
    """The one objective of all studies, and comments on what was guessed.

    Args:
      studies: what the tools recorded.
      name: the metric; empty: the one objective that the tools name, else the one that its name suggests.
      direction: whether it is minimised or maximised; None: as the tools say, else as its name suggests.

    Raises:
      InvalidInputError: studies have several objectives, other ones, or other directions; or the metric or
        its direction cannot be guessed.
    """
    first: tuple[Study, Objective] | None = None
    for study in studies:
        found = _of_study(study, name)
        if first is None:
            first = (study, found)
            continue
        if found.name != first[1].name:
            raise InvalidInputError(
                f"the study {first[0].name!r} tunes {first[1].name!r}, and {study.name!r} tunes "
                f"{found.name!r}",
                where=study.source,
                fix="name a metric that all have by --objective, or import them as two datasets",
            )
        if found.direction != first[1].direction:
            raise InvalidInputError(
                f"{found.name} is to be {first[1].direction}d in the study {first[0].name!r}, and "
                f"{found.direction}d in {study.name!r}",
                where=study.source,
                fix="import them as two datasets",
            )
    assert first is not None
    chosen = first[1]
    if direction and chosen.direction and direction != chosen.direction:
        raise InvalidInputError(
            f"{chosen.name} is to be {chosen.direction}d in the study {first[0].name!r}, not {direction}d",
            where=first[0].source,
            fix="leave out --direction",
        )
    if direction or chosen.direction:
        said = "" if first[0].objectives or name else "Guess: the metric's name says so."
        return replace(chosen, direction=direction or chosen.direction), (said,) if said else ()
    return replace(chosen, direction=guess_direction(chosen.name, first[0].source)), (
        f"Guess: the name {chosen.name!r} says which metric is tuned, and in which direction.",
    )


def guess_direction(name: str, where: str = "") -> Direction:
    """The direction that the name of a metric suggests.

    Raises:
      InvalidInputError: it suggests none.

    >>> guess_direction("val_accuracy"), guess_direction("best_valid/loss")
    ('maximize', 'minimize')
    """
    if _matches(name, _MINIMISED):
        return "minimize"
    if _matches(name, _MAXIMISED):
        return "maximize"
    raise InvalidInputError(
        f"{name!r} does not say whether it is minimised or maximised",
        where=where,
        fix="say it by --direction",
    )


def guess_objective(names: Iterable[str], where: str = "") -> str:
    """The name among those of metrics that is most likely tuned.

    Raises:
      InvalidInputError: none of the names suggests it, or several do alike.

    >>> guess_objective(["epoch", "train_loss", "val_loss", "seconds"])
    'val_loss'
    """
    listed = list(names)
    likely = [name for name in listed if _matches(name, f"{_MINIMISED}|{_MAXIMISED}")]
    for part in _SETS:
        found = [name for name in likely if (_matches(name, part) if part else not _of_a_set(name))]
        if len(found) == 1:
            return found[0]
        if found:
            likely = found
            break
    among = ", ".join(map(repr, (likely or listed)[:_SHOWN])) or "none"
    raise InvalidInputError(
        f"which metric is tuned is not clear among {among}", where=where, fix="name it by --objective"
    )


def ending(run: Run, objective: str) -> Ending:
    """How a run ended: what the tool says, but `diverged` where the objective is recorded as not finite.

    A run that the tool calls done, but of which no objective is recorded, has failed.
    """
    assert run.status != "running"
    if objective in run.metrics:
        return run.status if math.isfinite(run.metrics[objective]) else "diverged"
    return "failed" if run.status == "done" else run.status


def _of_study(study: Study, name: str) -> Objective:
    for objective in study.objectives:
        if objective.name == name:
            return objective
    recorded = dict.fromkeys(metric for run in study.runs for metric in run.metrics)
    if name:
        if name not in recorded:
            among = ", ".join(map(repr, list(recorded)[:_SHOWN])) or "none"
            raise InvalidInputError(
                f"the study {study.name!r} has no metric {name!r}: it has {among}",
                where=study.source,
                fix="name another one by --objective",
            )
        return Objective(name)
    if len(study.objectives) > 1:
        listed = ", ".join(repr(each.name) for each in study.objectives)
        raise InvalidInputError(
            f"the study {study.name!r} has several objectives: {listed}",
            where=study.source,
            fix="name one of them by --objective",
        )
    if study.objectives:
        return study.objectives[0]
    return Objective(guess_objective(recorded, f"{study.source}: {study.name}"))


def _of_a_set(name: str) -> bool:
    return any(part and _matches(name, part) for part in _SETS)


def _matches(name: str, pattern: str) -> bool:
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
    return re.search(rf"(^|[^a-z])({pattern})([^a-z]|$)", words) is not None


def is_result(name: str) -> bool:
    """Whether the name of a column is that of a result rather than of a hyperparameter.

    >>> is_result("valid/loss"), is_result("learning_rate")
    (True, False)
    """
    return _matches(name, f"{_MINIMISED}|{_MAXIMISED}")
