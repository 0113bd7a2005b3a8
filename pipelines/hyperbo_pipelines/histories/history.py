"""Study and Run: what a tuning tool recorded, in the same form for every tool."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hyperbo.data.warping import Direction
from hyperbo_pipelines.histories.draft import ParameterDraft

RunStatus = Literal["done", "failed", "pruned", "running"]


@dataclass(frozen=True)
class Objective:
    """A metric that a study tunes.

    Attributes:
      name: name of the metric.
      direction: whether it is minimised or maximised; None: the tool's files do not say.
    """

    name: str
    direction: Direction | None = None


@dataclass(frozen=True)
class Run:
    """One trial of a study, as the tool recorded it.

    Attributes:
      trial_id: the tool's own id; unique within the study.
      status: how it ended, as the tool says. `running`: it has not ended, or has not begun.
      values: hyperparameters by name, as plain JSON values; an inactive one is absent.
      metrics: results by name, the objective among them; NaN is a result that the tool recorded as NaN, and
        one that is not recorded is absent.
      curves: results by step, by name.
      started: seconds since the epoch; NaN if it is not recorded.
      seconds: how long it took; NaN if it is not recorded.
      attributes: what else is said of it; one of them may name its task.
    """

    trial_id: str
    status: RunStatus
    values: Mapping[str, Any]
    metrics: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, Mapping[float, float]] = field(default_factory=dict)
    started: float = math.nan
    seconds: float = math.nan
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """The trials that a tool ran on one problem.

    Attributes:
      tool: name of the tool.
      version: version of the tool; empty if its files do not say.
      name: the tool's name of the study.
      runs: its trials.
      objectives: what it tunes; empty if the tool's files do not say.
      parameters: the hyperparameters, as the tool declares them; those of which it says nothing are missing.
      attributes: what else is said of it; one of them may name its task.
      source: where it was read from, for messages.
    """

    tool: str
    version: str
    name: str
    runs: tuple[Run, ...]
    objectives: tuple[Objective, ...] = ()
    parameters: tuple[ParameterDraft, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
