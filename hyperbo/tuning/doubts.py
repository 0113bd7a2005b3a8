"""Doubts about values that are told: they may have another unit or direction than those of the prior."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field

from hyperbo.tuning.belief import RATE, Belief

logger = logging.getLogger(__name__)

# Words in the name of a metric that is to be maximised, and of one that is to be minimised.
# fmt: off
_RISES = frozenset((
    "accuracy", "acc", "auc", "auroc", "auprc", "f1", "r2", "score", "precision", "recall", "iou", "miou",
    "bleu", "rouge", "ndcg", "psnr", "ssim", "reward", "dice", "kappa", "mcc", "top1", "top5",
))
_FALLS = frozenset((
    "error", "err", "loss", "mse", "rmse", "mae", "mape", "nll", "logloss", "perplexity", "ppl", "brier",
    "wer", "cer", "fid", "cost", "regret", "latency",
))
# fmt: on
# Words that turn the meaning of a name around, as in 1 - accuracy.
_TURNS = frozenset(("minus", "neg", "negative", "inverse", "one", "1"))
_DONE = {"minimize": "minimised", "maximize": "maximised"}
# How many times the largest value, or the width of their range, of the prior's tasks is too far. A prior that
# sees values mapped to [-2, 2] does not mind a factor: only what can be no rate at all is said.
_FAR_MAPPED, _FAR = 10.0, 4.0


@dataclass
class Doubts:
    """What is said once about the values of a run.

    Attributes:
      belief: what the values are told to.
      option: how a direction is given, in the words of the reader.
    """

    belief: Belief
    option: str = "direction={!r}"
    _said: set[str] = field(default_factory=set)

    def of_value(self, value: float, where: str) -> None:
        """Warn once of a value that is far from all values of the tasks that the prior was trained on."""
        expected = self.belief.objective_range
        if expected is None or "value" in self._said or not self._is_far(value, *expected):
            return
        self._said.add("value")
        logger.warning(
            "%s: the objective %.6g is far from those of the prior's tasks, %.3g to %.3g, which were %s; %s",
            where,
            value,
            *expected,
            _DONE[self.belief.warping.direction],
            f"divide a percentage by 100; {self._remedy()}",
        )

    def of_name(self, name: str, where: str) -> None:
        """Warn once of a metric whose name says that it has the other direction."""
        told = direction_of(name)
        wanted = self.belief.warping.direction
        if "name" in self._said or told in (None, wanted):
            return
        self._said.add("name")
        logger.warning(
            "%s: %s is to be %s by its name, but the objective is %s; %s",
            where,
            name,
            _DONE[str(told)],
            _DONE[wanted],
            self._remedy(),
        )

    def _is_far(self, value: float, lowest: float, highest: float) -> bool:
        far = _FAR_MAPPED if self.belief.is_mapped else _FAR
        if self.belief.warping.name == "negative_log":
            return value > far * highest
        width = far * (highest - lowest)
        return not lowest - width <= value <= highest + width

    def _remedy(self) -> str:
        """What to do with a metric of the other direction."""
        direction = self.belief.warping.direction
        metric, other = ("an accuracy", "maximize") if direction == "minimize" else ("an error", "minimize")
        if self.belief.warping is RATE:
            return f"for {metric}, leave {self.option.format(direction)} out"
        if not self.belief.names:
            return f"for {metric}, give {self.option.format(other)}"
        if not self.belief.can_be_turned:
            return f"of {metric}, tell the negative"
        return f"for {metric}, give {self.option.format(other)}"


def direction_of(name: str) -> str | None:
    """The direction that the name of a metric tells; None where it tells none.

    >>> direction_of("val_acc"), direction_of("valid/error_rate"), direction_of("1-accuracy")
    ('maximize', 'minimize', None)
    """
    words = {each.lower() for each in re.findall(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+", name)}
    rises, falls = bool(words & _RISES), bool(words & _FALLS)
    if rises == falls or words & _TURNS:
        return None
    return "maximize" if rises else "minimize"
