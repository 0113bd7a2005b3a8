"""Run the arena: the experiments of its divisions, of which only what is missing is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyperbo.errors import NotAvailableError, VersionConflictError
from hyperbo.evaluation.records.join import Evaluation
from hyperbo_flows.arena.protocol import PROTOCOL, Division, Part, Protocol
from hyperbo_flows.arena.provide import check_data, provide_data
from hyperbo_flows.experiments.arms import arms_by_name
from hyperbo_flows.experiments.evaluate import simulate
from hyperbo_flows.experiments.experiment import Experiment
from hyperbo_flows.experiments.plan import Plan, make_plan, outlook
from hyperbo_flows.experiments.pretrain import pretrain
from hyperbo_flows.experiments.studies import usable
from hyperbo_flows.experiments.write_evaluation import recorded_evaluation
from hyperbo_flows.process.progress import say
from pd1_builder.version.catalog import data_folder

NEEDS_MATCHED = "it learns from matched inputs, and there are none"


@dataclass(frozen=True)
class PlannedPart:
    """A part of a division that can run here.

    Attributes:
      part: what the protocol says.
      plan: its experiment with the data; the arms are those that apply.
      does_not_apply: the other methods, and why.
    """

    part: Part
    plan: Plan
    does_not_apply: Mapping[str, str]


@dataclass(frozen=True)
class PartResult:
    """What came out of a part.

    Attributes:
      evaluation: the records with their metadata.
      priors: how many priors each method has: folds times seeds.
      does_not_apply: the methods that were not run, and why.
    """

    evaluation: Evaluation
    priors: int
    does_not_apply: Mapping[str, str]


def chosen_methods(own: Sequence[str], protocol: Protocol = PROTOCOL) -> tuple[str, ...]:
    """The methods of a run: those of the protocol, or some named ones beside the simplest baselines."""
    return tuple(dict.fromkeys((*own, *protocol.baselines))) if own else protocol.methods


def plan_division(
    division: Division, methods: Sequence[str], runs: Path, data: Path | None
) -> list[PlannedPart]:
    """Provide the data of a division, and plan its experiments.

    Raises:
      NotAvailableError: a dataset version is not there and cannot be made; the message says how to get it.
      VersionConflictError: a version has other contents than the protocol names, or is damaged.
      InvalidInputError: a method is unknown.
    """
    provide_data(division, data_folder(data))
    return [plan_part(part, division, methods, runs, data) for part in division.parts]


def plan_part(
    part: Part, division: Division, methods: Sequence[str], runs: Path, data: Path | None
) -> PlannedPart:
    """Plan one experiment of a division, whose data must be there; see `plan_division`."""
    experiment = Experiment(
        arms_by_name(methods, part.dataset),
        runs,
        data,
        part.dataset,
        preparation=part.preparation,
        protocol=part.protocol,
        not_tested=part.not_tested,
        seeds=part.seeds,
        iterations=division.budgets[-1],
        train=part.train,
        test=part.test,
    )
    check_data(part, division, experiment.data_dir)
    plan = make_plan(experiment)
    applicable = usable(experiment.arms, plan.test_bed)
    without = {label: NEEDS_MATCHED for label in experiment.arms if label not in applicable}
    return PlannedPart(part, plan.with_arms(applicable), without)


def run_part(planned: PlannedPart, command: str) -> PartResult:
    """Pre-train and simulate what is missing of a part.

    Raises:
      NumericalError: every run failed.
    """
    plan = planned.plan
    failures = pretrain(plan)
    failures = {**failures, **simulate(plan, failures)}
    priors = len(plan.test_bed.folds) * len(plan.experiment.seeds)
    return PartResult(recorded_evaluation(plan, command, failures), priors, planned.does_not_apply)


def run_divisions(
    divisions: Sequence[Division], methods: Sequence[str], runs: Path, data: Path | None, command: str
) -> dict[str, PartResult]:
    """Run divisions one after another. One whose data are not there, are others or are damaged is left out.

    A line says so, and how to get the data.

    Args:
      divisions: what is run.
      methods: names of methods.
      runs: folder of finished runs.
      data: the data folder; None for `pd1_builder.version.catalog.default_data_dir`.
      command: what to type to run it again.

    Returns:
      The results by the names of parts.

    Raises:
      InvalidInputError: a method is unknown.
      NotAvailableError: a method cannot be imported, or every division is left out.
      NumericalError: every run of a part failed.
    """
    for part in (part for division in divisions for part in division.parts):
        # A method that is wrong is so in every division: it is no reason to leave one out.
        arms_by_name(methods, part.dataset)
    planned: dict[str, list[PlannedPart]] = {}
    for division in divisions:
        try:
            planned[division.name] = plan_division(division, methods, runs, data)
        except (NotAvailableError, VersionConflictError) as error:
            say(f"division {division.name}: left out: {error}")
    if not planned:
        raise NotAvailableError("every division is left out; the lines above say why, and what to do")
    for name, parts in planned.items():
        say(f"division {name}: {outlook([part.plan for part in parts])}")
    results = {}
    for parts in planned.values():
        for part in parts:
            results[part.part.name] = run_part(part, command)
    return results
