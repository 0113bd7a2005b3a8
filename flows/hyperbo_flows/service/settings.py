"""A service: a dataset that is kept fresh and a prior that is kept good, as a TOML file describes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import NonNegativeInt

from hyperbo.errors import InvalidInputError
from hyperbo.methods import PretrainedMethod
from hyperbo.priors.names import line_folder
from hyperbo.storage.validation import read_toml
from hyperbo_flows.experiments.experiment import Experiment
from hyperbo_flows.experiments.experiment_file import ArmTables, Design, experiment_of
from hyperbo_flows.service.runner import Compute
from pd1_builder.compare.release_checks import ReleaseChecks
from pd1_builder.release.next_version import can_be_added
from pd1_builder.version.makeable import DATASETS

# Stands for the version in an experiment before one is published.
_NO_VERSION = "0.0.0"
# The fields of a source that are paths relative to the file, or URLs.
_PLACES = ("inbox", "archive", "space", "tuning_runs")


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

    Raises:
      InvalidInputError: neither an inbox nor an archive is named.
    """

    inbox: str = ""
    archive: str = ""
    space: str = ""
    tuning_runs: str = ""
    max_reject_share: float = 0.001

    def __post_init__(self) -> None:
        if not self.inbox and not self.archive:
            raise InvalidInputError("no source", fix="name an inbox or an archive")


@dataclass(frozen=True)
class Promotion:
    """When a prior takes the place of the one in service.

    Attributes:
      line: what the prior is promoted for, such as `pd1-mini/h-nll`.
      budget: the regret after so many iterations is compared; 0 for the last.

    Raises:
      InvalidInputError: the line cannot be a folder.
    """

    line: str
    budget: NonNegativeInt = 0

    def __post_init__(self) -> None:
        line_folder(Path(), self.line)


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


@dataclass(frozen=True)
class _Folders:
    """The table `[service]`: folders, relative to the file."""

    dataset: str
    runs: str = "runs"
    data: str = "data"
    priors: str = "priors"


@dataclass(frozen=True)
class _ServiceFile:
    service: _Folders
    source: Source
    promotion: Promotion
    arms: ArmTables
    experiment: Design = field(default_factory=Design)
    checks: ReleaseChecks = field(default_factory=ReleaseChecks)
    compute: Compute = field(default_factory=Compute)


def read_service(path: Path) -> Service:
    """Read a service.

    The table `service` names the dataset and the folders, `source` where new trials come from, `checks` what
    versions must satisfy, `promotion` the line of priors, `compute` how evaluations are spread.
    `experiment` and `arms` are as in a file of an experiment, where the dataset is not named again. Paths
    are relative to the file.

    Args:
      path: the file.

    Raises:
      InvalidInputError: the file cannot be read, or a field is missing, unknown or wrong; the message names
        the file and the field.
      NotAvailableError: a method of one's own cannot be imported.
    """
    path = path.absolute()
    content = read_toml(_ServiceFile, path)
    folder, folders, source = path.parent, content.service, content.source
    _require_possible(folders.dataset, source, f"{path}: source")
    design = experiment_of(
        content.experiment,
        f"{folders.dataset}:{_NO_VERSION}",
        content.arms,
        path,
        runs=folder / folders.runs,
        data=folder / folders.data,
    )
    service = Service(
        path,
        folders.dataset,
        replace(source, **{name: _located(getattr(source, name), folder) for name in _PLACES}),
        content.checks,
        content.promotion,
        content.compute,
        folder / folders.priors,
        design,
    )
    if not isinstance(design.arms[service.challenger].method, PretrainedMethod):
        raise InvalidInputError(
            f"the first arm, {service.challenger}, has no prior to promote",
            where=f"{path}: arms",
            fix="name a method that pre-trains first",
        )
    if service.promotion.budget > design.iterations:
        raise InvalidInputError(
            f"{service.promotion.budget} is more than the {design.iterations} iterations of a run",
            where=f"{path}: promotion.budget",
            fix="give a number of iterations that are run",
        )
    return service


def _require_possible(dataset: str, source: Source, where: str) -> None:
    """Refuse a source that the dataset cannot have, before hours of work are lost to it."""
    released, own = dataset in DATASETS, dataset.startswith("trials/")
    wrong = {
        "cannot be kept fresh: name a dataset with releases, or one of trials": not (released or own),
        "has no inbox: nothing can be added to it": source.inbox and can_be_added(dataset) is None,
        "has no archive: it is made of files of your own": source.archive and own,
        "has the space of its release, and no space file": source.space and not own,
        "takes no trials of tuning runs: they have the layout of pd1": source.tuning_runs and own,
        "has tuning runs and no inbox to put them into": source.tuning_runs and not source.inbox,
        "has tuning runs at an address: give a folder": "://" in source.tuning_runs,
    }
    for what, is_so in wrong.items():
        if is_so:
            raise InvalidInputError(f"{dataset} {what}", where=where, fix="correct this in the service file")


def _located(place: str, folder: Path) -> str:
    """A path relative to the file as an absolute one; a URL as it is."""
    return place if not place or "://" in place else str(folder / place)
