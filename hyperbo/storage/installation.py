"""The distribution that is installed: its name, its extras, and whether its environment fits it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import lazy_loader

from hyperbo.errors import MissingExtraError, NotAvailableError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

DISTRIBUTION = "hyperbo-priors"
# What each extra brings: the modules that this project imports, or that the extra has to bring for fsspec.
# Of a module that several extras bring, the first one is named to the user.
EXTRA_MODULES: Mapping[str, tuple[str, ...]] = {
    "build": (
        *("apache_beam", "array_record", "etils", "ijson", "importlib_resources", "mlcroissant"),
        *("orjson", "tensorflow_datasets", "yaml"),
    ),
    "optuna": ("optuna", "sqlalchemy"),
    "report": ("jinja2", "markdown_it", "markupsafe", "matplotlib"),
    "collect": ("river", "skimage", "sklearn"),
    "checkpoints": ("orbax",),
    "flows": ("prefect",),
    "dask": ("distributed", "prefect_dask"),
    "tensorflow": ("tensorflow",),
    "botorch": ("botorch", "gpytorch", "torch"),
    "sign": ("minisign",),
    "s3": ("s3fs",),
    "gcs": ("gcsfs",),
}


def install_command(*extras: str) -> str:
    """The command that installs extras.

    It also works where the distribution was installed from a file or a checkout: pip leaves it as it is, and
    adds what the extras need.

    >>> install_command("report")
    "pip install 'hyperbo-priors[report]'"
    """
    return f"pip install '{DISTRIBUTION}[{','.join(extras)}]'"


def require_extras(*extras: str, purpose: str) -> None:
    """Check that the modules of extras are installed, and not too old. Nothing is imported.

    Args:
      extras: names of extras, as in `pyproject.toml`.
      purpose: what needs them, as the subject of a sentence.

    Raises:
      MissingExtraError: a module is not installed; the message has the command that installs all of them.
      NotAvailableError: a package of an extra is too old or too new.
    """
    lacking = [extra for extra in extras if not all(map(_is_installed, EXTRA_MODULES[extra]))]
    if lacking:
        module = next(name for name in EXTRA_MODULES[lacking[0]] if not _is_installed(name))
        raise _missing(purpose, lacking, module)
    for extra in extras:
        _check_versions(extra)


def missing_extra(error: ImportError) -> MissingExtraError | None:
    """The error that names the extra which brings a module; None for a module of no extra.

    Args:
      error: the error of an import that failed.
    """
    module = (error.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRA_MODULES.items() if module in modules), None)
    if extra is None or _is_installed(module):
        return None
    return _missing("this", [extra], module)


def attach(
    package: str, attributes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package import what it exports when it is used (SPEC 1).

    Args:
      package: name of the package.
      attributes: names that are exported, by the submodule that defines them.

    Returns:
      The functions `__getattr__` and `__dir__` of the package. Where a module of an extra is missing, an
      attribute raises a `MissingExtraError`.
    """
    load, *_ = lazy_loader.attach(
        package, submod_attrs={name: list(each) for name, each in attributes.items()}
    )

    def attribute(name: str) -> Any:
        if name in sys.modules[package].__all__:
            check_environment()
        try:
            return load(name)
        except ModuleNotFoundError as error:
            raise missing_extra(error) or error from error

    return attribute, lambda: sorted(sys.modules[package].__all__)


@cache
def check_environment() -> None:
    """Check that no package which every use needs is too old or too new.

    Raises:
      NotAvailableError: a package has a version that this distribution does not work with.
    """
    _check_versions("")


def _check_versions(extra: str) -> None:
    for each in _requirements(extra):
        try:
            found = metadata.version(each.name)
        except metadata.PackageNotFoundError:
            continue  # its import says so
        if not each.specifier.contains(found, prereleases=True):
            raise NotAvailableError(
                f"{each.name} {found} is installed, and {DISTRIBUTION} needs {each.name}{each.specifier}; "
                f"pip install '{each.name}{each.specifier}'"
            )


def _requirements(extra: str) -> Iterator[Requirement]:
    """The packages that an extra needs; with the empty extra, those that every use needs."""
    from packaging.requirements import Requirement

    try:
        texts = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return  # run from sources that are not installed
    for each in texts:
        # Most lines belong to other extras, and reading a line takes longer than looking for its extra.
        named = re.search(r"""extra == ['"]([^'"]+)""", each)
        if (named[1] if named else "") == extra:
            requirement = Requirement(each)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                yield requirement


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _missing(purpose: str, extras: Sequence[str], module: str) -> MissingExtraError:
    named = f"the extra{'s' if len(extras) > 1 else ''} {' and '.join(extras)}"
    return MissingExtraError(
        f"{purpose} needs {named}, and there is no module {module}; {install_command(*extras)}", name=module
    )
