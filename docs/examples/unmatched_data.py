"""H-EKL on tuning histories that share neither their ranges nor their inputs.

    python docs/examples/unmatched_data.py

Two teams tuned the same two hyperparameters, each over ranges of its own. One search space around both makes
their inputs comparable (Case I of the discussion, "Different search spaces"); a partition of that space makes
matched blocks of inputs that never coincide (section 5.2.3, "Extensions of the EKL").
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hyperbo.data import (
    MatchedBlock,
    Parameter,
    Provenance,
    SearchSpace,
    Task,
    TuningData,
    all_inputs,
    covering_tree,
    into_union,
    kmeans,
    partitioned_blocks,
    union,
)
from hyperbo.gp import Architecture
from hyperbo.objectives import mean_nll
from hyperbo.pretrain import EKLTraining, Job, pretrain_ekl

SPACES = (
    SearchSpace((Parameter("rate", 1e-4, 1e-1, "log"), Parameter("decay", 0.0, 0.5))),
    SearchSpace((Parameter("rate", 1e-3, 1.0, "log"), Parameter("decay", 0.1, 1.0))),
)


def history(number: int, united: SearchSpace, random: np.random.Generator) -> Task:
    """Sixty trials of one task in the search space of its team, as points of the search space of both."""
    space = SPACES[number % 2]
    x = into_union(random.random((60, 2)), space, united)
    y = 0.2 * random.normal() - ((x - [0.6, 0.3]) ** 2).sum(axis=1) + 0.01 * random.normal(size=60)
    return Task(f"task{number}", f"team{number % 2}", x, y, -y, tuple(f"{number}/{row}" for row in range(60)))


def in_words(blocks: tuple[MatchedBlock, ...]) -> str:
    """The sizes of matched blocks."""
    return ", ".join(f"{len(block.x)} inputs of {len(block.tasks)} tasks" for block in blocks)


def main(iterations: int = 50) -> None:
    """Make blocks by two partitions, train on those of one, and print the NLL of a task that was held out."""
    random, united = np.random.default_rng(0), union(SPACES)
    *tasks, new = (history(number, united, random) for number in range(9))
    data = TuningData(united, tuple(tasks), (), Provenance("teams/both:1.0.0", "", "as recorded"))
    points = all_inputs(tasks)
    by_kmeans = partitioned_blocks(data, kmeans(points, 12, seed=0), minimum_tasks=4)
    by_tree = partitioned_blocks(data, covering_tree(points, 0.3).partition(0.3), minimum_tasks=4)
    print(f"12 cells by k-means: {in_words(by_kmeans)}")
    print(f"covering tree of radius 0.3: {in_words(by_tree)}")
    job = Job(replace(data, blocks=by_tree), seed=0)
    (prior,) = pretrain_ekl([job], Architecture(hidden=(), mean="affine"), EKLTraining(iterations))
    print(f"NLL per trial of a new task: {mean_nll(prior.gp, [(new.x, new.y)]) / len(new.y):.2f}")


if __name__ == "__main__":
    main()
