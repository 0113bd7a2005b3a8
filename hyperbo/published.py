"""Priors by name: those of the user's own catalogue, and those that ship with the package."""

from __future__ import annotations

from pathlib import Path

from hyperbo import prior as prior_files
from hyperbo.errors import NotAvailableError
from hyperbo.prior import Prior
from hyperbo.prior_catalog import default_prior_dir, find_prior, lines, read_line
from hyperbo.prior_entries import CURRENT_NAME, LINE_NAME, listed
from hyperbo.prior_history import Decision

SHIPPED = Path(__file__).parent / "priors"


def load_prior(reference: str | Path, catalog: Path | None = None) -> Prior:
    """Load a prior by its name or its folder.

    Args:
      reference: as in `find_published`.
      catalog: folder of priors that is looked into first; None: the default one.

    Raises:
      HyperBOError: as `find_published` and `hyperbo.prior.load_prior`.

    >>> load_prior("pd1-mini/h-ekl").description.search_space.names
    ('learning_rate', 'power', 'momentum', 'decay_steps_factor')
    """
    return prior_files.load_prior(find_published(reference, catalog))


def find_published(reference: str | Path, catalog: Path | None = None) -> Path:
    """Find the folder of a prior.

    Args:
      reference: a folder; or a line such as `pd1-mini/h-ekl`, for its prior in service; or
        `<line>@<first digits>` for another. A folder that is there goes before a line of the same name.
      catalog: folder of priors that is looked into before what ships with the package; None: the default one.

    Raises:
      NotAvailableError: there is no such folder, line or prior; the message lists the lines there are.
      InvalidInputError: the reference is malformed or fits several priors, or a file is damaged.
      VersionConflictError: a file has another format.
    """
    if Path(reference).is_dir():
        return Path(reference)
    text = str(reference)
    line = text.partition("@")[0]
    if not LINE_NAME.fullmatch(line):
        raise NotAvailableError(
            f"no folder {text}, and no name of a prior either; names are such as "
            + listed(sorted(_known_lines(catalog)))
        )
    missing: NotAvailableError | None = None
    for root in catalogs(catalog):
        if line in lines(root):
            try:
                return find_prior(root, text)
            except NotAvailableError as error:
                # A line that has only candidates does not hide the one that ships.
                missing = missing or error
    raise missing or NotAvailableError(f"no prior {text}; there are {listed(sorted(_known_lines(catalog)))}")


def decisions_on(reference: str | Path, catalog: Path | None = None) -> tuple[Decision, ...]:
    """What was decided on a prior of a catalogue, oldest first; nothing on one that is given by its folder.

    Args:
      reference: as in `find_published`.
      catalog: as there.

    Raises:
      HyperBOError: as `find_published`.

    >>> [each.action for each in decisions_on("pd1-mini/h-ekl", SHIPPED)]
    ['promoted']
    """
    folder = find_published(reference, catalog)
    if Path(reference).is_dir() or not (folder.parent / CURRENT_NAME).is_file():
        return ()
    history = read_line(folder.parents[2], "/".join(folder.parts[-3:-1])).history
    return tuple(each for each in history if each.prior == folder.name)


def catalogs(catalog: Path | None = None) -> tuple[Path, ...]:
    """Where priors are looked for by name, the first first."""
    return (catalog or default_prior_dir(), SHIPPED)


def _known_lines(catalog: Path | None) -> set[str]:
    return {line for root in catalogs(catalog) for line in lines(root)}
