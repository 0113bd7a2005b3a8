"""The version of the code behind a result: the package's version and a hash of the sources that decide it.

Three sets of sources are named here, one for each kind of result. They name packages of higher floors as
text: nothing is imported, so that asking for a version is cheap everywhere.
"""

from __future__ import annotations

import hashlib
from importlib.util import find_spec
from pathlib import Path

from hyperbo import __version__
from hyperbo.errors import NotAvailableError

# What decides the numbers of a prior, of its losses and of a simulation. `pd1_builder.read` belongs to it: a
# preparation turns the records of a version into arrays, and its name says nothing about its code. So do the
# modules that choose training data and set up runs.
NUMERIC = (
    "hyperbo.acquisition",
    "hyperbo.bayesopt",
    "hyperbo.compute",
    "hyperbo.data",
    "hyperbo.gp",
    "hyperbo.methods",
    "hyperbo.objectives",
    "hyperbo.pretrain",
    "hyperbo.priors.file",
    "hyperbo.priors.losses",
    "hyperbo_pipelines.curate.parquet",
    "pd1_builder.read",
    "hyperbo_flows.experiments.experiment",
    "hyperbo_flows.experiments.plan",
    "hyperbo_flows.experiments.pretrain",
    "hyperbo_flows.experiments.protocols",
    "hyperbo_flows.experiments.simulations",
)
# What decides the records, losses and metadata of an evaluation, and the measures that a promotion rests on.
# The pages and figures do not belong to it: `hyperbo report` writes a report again.
EVALUATION = (
    *NUMERIC,
    "hyperbo.evaluation.measures",
    "hyperbo.evaluation.records",
    "hyperbo_flows.experiments.write_evaluation",
)
# What decides the records of a dataset version, and whether a file of new trials is accepted.
CURATION = (
    "hyperbo.data",
    "hyperbo.evaluation.measures",
    "hyperbo.evaluation.records",
    "pd1_builder.bo_runs",
    "pd1_builder.builder",
    "pd1_builder.compare",
    "pd1_builder.hpob",
    "pd1_builder.pd1",
    "pd1_builder.read",
    "pd1_builder.release",
    "pd1_builder.trials",
    "pd1_builder.version",
    "hyperbo_pipelines",
)

_CODE_SUFFIXES = frozenset((".py", ".html", ".css", ".toml"))


def code_version(*sources: str) -> str:
    """Identify the code of packages and modules, without importing them: `<version>+<12 hexadecimal digits>`.

    The hash is over the names and contents of their Python files, and of the templates, style sheets and
    presets beside these. It depends neither on the order of the sources, nor on the place of installation,
    nor on file times, nor on line endings: a checkout and a wheel that is built from it have the same.

    Args:
      sources: names of packages or modules, such as `hyperbo.gp`; usually one of the sets of this module.

    Raises:
      NotAvailableError: a package or module is not installed.

    >>> version, digest = code_version("hyperbo.gp", "hyperbo.data").split("+")
    >>> len(digest)
    12
    """
    digest = hashlib.sha256()
    files = dict(file for name in sources for file in _files(name))
    for name, path in sorted(files.items()):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return f"{__version__}+{digest.hexdigest()[:12]}"


def _files(name: str) -> list[tuple[str, Path]]:
    """The source files of a package or module, each with its path below the folder of all packages."""
    package, *inner = name.split(".")
    # Only a top-level package is found without running its code; what it holds is found by its path.
    spec = find_spec(package)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        root = Path(place).parent
        path = root.joinpath(package, *inner)
        module = path.with_name(f"{path.name}.py")
        found = path.rglob("*") if path.is_dir() else [module] if module.is_file() else []
        files = [each for each in found if each.suffix in _CODE_SUFFIXES]
        if files:
            return [(each.relative_to(root).as_posix(), each) for each in files]
    raise NotAvailableError(f"no package or module {name!r} is installed whose code could be identified")
