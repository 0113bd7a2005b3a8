"""Which versions can be made here, and the command that makes one."""

from __future__ import annotations

from pathlib import Path

from hyperbo_pipelines.hpob.layout import SEARCH_SPACES

_PACKAGE = Path(__file__).parent.parent
_MINI = ("pd1/mini", "pd1/mini_without_curves")
_DOWNLOADED = (
    *("pd1/release", "pd1/release_without_curves"),
    *(f"hpob/{config}" for config in (*SEARCH_SPACES, "all")),
)
# The datasets that are built from raw files of a fixed layout; the others are made of users' own files.
DATASETS = (*_MINI, *_DOWNLOADED)
_OWN_FILES = {"trials": "add {} FILE --space SPACE.toml", "bo_runs": "record {} FOLDER_OF_AN_EVALUATION"}


def shipped_raw(dataset: str, version: str) -> Path | None:
    """The folder of raw files shipped for a version, such as `pd1/raw/mini-1.0.0`; None if there is none."""
    name, _, config = dataset.removesuffix("_without_curves").partition("/")
    folder = _PACKAGE / name / "raw" / f"{config}-{version}"
    return folder if folder.is_dir() else None


def newest_shipped(dataset: str) -> str | None:
    """The newest version of a dataset whose raw files are shipped; None if there is none."""
    name, _, config = dataset.removesuffix("_without_curves").partition("/")
    found = [
        folder.name.removeprefix(f"{config}-") for folder in (_PACKAGE / name / "raw").glob(f"{config}-*")
    ]
    return max(found, key=lambda version: tuple(map(int, version.split("."))), default=None)


def can_be_made(dataset: str, version: str) -> bool:
    """Whether a version can be built without files of the user; an archive may be downloaded for it."""
    return dataset in _DOWNLOADED or (dataset in _MINI and shipped_raw(dataset, version) is not None)


def how_to_make(dataset: str, version: str, option: str = "") -> str:
    """How to make a version of a dataset: a command in words; empty where none can work.

    Args:
      dataset: `<name>/<config>`.
      version: its number; empty for any.
      option: the option that names the data folder, or empty.

    >>> how_to_make("pd1/mini", "1.0.0", "--data data")
    'build it: hyperbo data build pd1/mini:1.0.0 --data data'
    >>> how_to_make("pd1/mini", "7.0.0")
    'raw files are shipped up to version 2.0.0: hyperbo data build pd1/mini:2.0.0'
    """
    name, _, config = dataset.partition("/")
    if name in _OWN_FILES:
        return f"make it of your files: {_command(_OWN_FILES[name].format(config), option)}"
    if dataset in _DOWNLOADED:
        built = _command(f"build {dataset}:{version or '1.0.0'}", option)
        return f"build it, which downloads its archive: {built}"
    shipped = newest_shipped(dataset) if dataset in _MINI else None
    if shipped is None:
        return ""
    if version and shipped_raw(dataset, version) is None:
        built = _command(f"build {dataset}:{shipped}", option)
        return f"raw files are shipped up to version {shipped}: {built}"
    return f"build it: {_command(f'build {dataset}:{version or shipped}', option)}"


def _command(words: str, option: str) -> str:
    return " ".join(filter(None, ("hyperbo data", words, option)))
