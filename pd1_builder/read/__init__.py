"""Reading a version: as tuning data or a DataFrame, by a named preparation; and the splits of benchmarks."""

from pd1_builder.read.load import load, load_frame
from pd1_builder.read.official_split import initialisations, tasks_of_splits
from pd1_builder.read.preparations import PREPARATIONS, Preparation, PreparedTrials, prepare

__all__ = [
    "PREPARATIONS",
    "Preparation",
    "PreparedTrials",
    "initialisations",
    "load",
    "load_frame",
    "prepare",
    "tasks_of_splits",
]
