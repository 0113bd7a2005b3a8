"""A service: a dataset that is kept fresh, and a prior that is kept good, as a TOML file says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flows.experiment import Experiment
from flows.experiment_file import experiment_of, read_tables, table_of
from flows.fill import fill
from flows.task_runners import Compute
from hyperbo.errors import InvalidInputError
from hyperbo.methods import PretrainedMethod
from hyperbo.prior_entries import line_folder
from pd1_builder.additions import can_be_added
from pd1_builder.datasets import DATASETS
from pd1_builder.release_checks import ReleaseChecks

# Until a version is published there is none to name.
_NO_VERSION = "0.0.0"


@dataclass(frozen=True)
class Source:
    """Where new trials come from.

    Attributes:
      inbox: folder or fsspec URL that files of new trials are put into; empty for none.
      archive: URL of a release archive, or of a folder of its raw files; empty for none.
      space: space file of a dataset `trials/<name>`; empty for that of the newest version.
      tuning_runs: folder of the outcomes of `hyperbo tune` and `hyperbo online`, whose new trials are fed
        back; empty for none.
      max_reject_share: largest share of rows that may be rejected.
    """

    inbox: str = ""
    archive: str = ""
    space: str = ""
    tuning_runs: str = ""
    max_reject_share: float = 0.001


@dataclass(frozen=True)
class Promotion:
    """When a prior takes the place of the one in service.

    Attributes:
      line: what the prior is promoted for, such as `pd1-mini/h-nll`.
      budget: the regret after so many iterations is compared; 0 for the last.
    """

    line: str
    budget: int = 0


@dataclass(frozen=True)
class Service:
    """What the flows keep going.

    Attributes:
      path: the file that it was read from.
      dataset: `<name>/<config>`.
      source: where new trials come from.
      checks: what a new version must satisfy.
      promotion: when its prior is put into service.
      compute: how the parts of an evaluation are spread.
      priors: folder of the priors in service.
      design: what is trained and compared of each version; its dataset has no version yet.
    """

    path: Path
    dataset: str
    source: Source
    checks: ReleaseChecks
    promotion: Promotion
    compute: Compute
    priors: Path
    design: Experiment

    @property
    def challenger(self) -> str:
        """Label of the arm whose prior is promoted: the first."""
        return next(iter(self.design.arms))

    def experiment(self, version: str) -> Experiment:
        """What is trained and compared of a version.

        Raises:
          InvalidInputError: the version is malformed.
        """
        return replace(self.design, dataset=f"{self.dataset}:{version}")

    def for_use(self, version: str) -> Experiment:
        """The challenger alone with its first seed, which the prior to promote is trained with.

        Raises:
          InvalidInputError: the version is malformed.
        """
        of, label = self.experiment(version), self.challenger
        return replace(of, arms={label: of.arms[label]}, seeds=of.seeds[:1])


@dataclass(frozen=True)
class _Places:
    """The table `[service]`: folders, relative to the file."""

    dataset: str
    runs: str = "runs"
    data: str = "data"
    priors: str = "priors"


def read_service(path: Path) -> Service:
    """Read a service.

    The table `service` names the dataset and the folders, `source` where new trials come from, `checks` what
    versions must satisfy, `promotion` the line of priors, `compute` how evaluations are spread;
    `experiment` and `arms` are as in a file of an experiment, where the dataset is not named again. Paths
    are relative to the file.

    Args:
      path: the file.

    Raises:
      InvalidInputError: the file cannot be read, or says what cannot be.
      NotAvailableError: a method of one's own cannot be imported.
    """
    path = path.absolute()
    content = read_tables(path, ("service", "source", "checks", "promotion", "compute", "experiment", "arms"))
    places = fill(_Places, table_of(content, "service", str(path)), f"{path}, service")
    source = fill(Source, table_of(content, "source", str(path)), f"{path}, source")
    if not source.inbox and not source.archive:
        raise InvalidInputError("no source", where=f"{path}, source", fix="name an inbox or an archive")
    _require_possible(places.dataset, source, f"{path}, source")
    folder = path.parent
    design = experiment_of(
        {"experiment": _with_dataset(content, places.dataset, str(path)), "arms": content.get("arms")},
        path,
        folder / places.runs,
        folder / places.data,
    )
    service = Service(
        path,
        places.dataset,
        replace(
            source,
            **{
                name: _located(getattr(source, name), folder)
                for name in ("inbox", "archive", "space", "tuning_runs")
            },
        ),
        fill(ReleaseChecks, content.get("checks", {}), f"{path}, checks"),
        fill(Promotion, table_of(content, "promotion", str(path)), f"{path}, promotion"),
        fill(Compute, content.get("compute", {}), f"{path}, compute"),
        folder / places.priors,
        design,
    )
    line_folder(service.priors, service.promotion.line)  # Refuses what is no name.
    if not isinstance(design.arms[service.challenger].method, PretrainedMethod):
        raise InvalidInputError(
            f"the first arm, {service.challenger}, has no prior to promote",
            where=str(path),
            fix="name a method that pre-trains first",
        )
    if service.promotion.budget < 0 or service.promotion.budget > design.iterations:
        raise InvalidInputError(
            f"budget = {service.promotion.budget} of {design.iterations} iterations",
            where=f"{path}, promotion",
            fix="give a number of iterations that are run",
        )
    return service


def _require_possible(dataset: str, source: Source, where: str) -> None:
    """Refuse a source that the dataset cannot have, before hours of work are lost to it."""
    released, own = dataset in DATASETS, dataset.startswith("trials/")
    wrong = {
        "is no dataset that can be kept fresh": not (released or own),
        "has no inbox: nothing can be added to it": source.inbox and can_be_added(dataset) is None,
        "has no archive: it is made of files of your own": source.archive and own,
        "has the space of its release, and no space file": source.space and not own,
        "takes no trials of tuning runs: they have the layout of pd1": source.tuning_runs and own,
        "has tuning runs and no inbox to put them into": source.tuning_runs and not source.inbox,
        "has tuning runs at an address: give a folder": "://" in source.tuning_runs,
    }
    for what, is_so in wrong.items():
        if is_so:
            raise InvalidInputError(f"{dataset} {what}", where=where, fix="see docs/operating.md")


def _with_dataset(content: Mapping[str, Any], dataset: str, where: str) -> dict[str, Any]:
    given = dict(content.get("experiment", {}))
    for name in ("dataset", "raw"):
        if name in given:
            raise InvalidInputError(f"{name} in the table experiment", where=where, fix="leave it out")
    return {**given, "dataset": f"{dataset}:{_NO_VERSION}"}


def _located(place: str, folder: Path) -> str:
    """A path relative to the file as an absolute one; a URL as it is."""
    return place if not place or "://" in place else str(folder / place)
