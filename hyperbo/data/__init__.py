"""Trials, search spaces, warping, and the tasks that methods learn from."""

from hyperbo.data.choice import Choice
from hyperbo.data.folds import Fold, all_but_test_task, given_split, held_out_related
from hyperbo.data.parameter import Condition, Parameter
from hyperbo.data.partition import (
    CoveringTree,
    Partition,
    all_inputs,
    covering_tree,
    kmeans,
    partitioned_blocks,
)
from hyperbo.data.search_space import PD1_SEARCH_SPACE, SearchSpace
from hyperbo.data.subsets import at_most_points, fewer_tasks, flat_tasks, only_tasks, without_flat
from hyperbo.data.trial import Trial
from hyperbo.data.tuning_data import MatchedBlock, Provenance, Task, TuningData
from hyperbo.data.union_space import into_union, union
from hyperbo.data.warping import WARPINGS, OutputWarping, online_map, output_warping

__all__ = [
    "PD1_SEARCH_SPACE",
    "WARPINGS",
    "Choice",
    "Condition",
    "CoveringTree",
    "Fold",
    "MatchedBlock",
    "OutputWarping",
    "Parameter",
    "Partition",
    "Provenance",
    "SearchSpace",
    "Task",
    "Trial",
    "TuningData",
    "all_but_test_task",
    "all_inputs",
    "at_most_points",
    "covering_tree",
    "fewer_tasks",
    "flat_tasks",
    "given_split",
    "held_out_related",
    "into_union",
    "kmeans",
    "online_map",
    "only_tasks",
    "output_warping",
    "partitioned_blocks",
    "union",
    "without_flat",
]
