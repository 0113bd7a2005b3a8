"""What a catalogue of priors holds, and priors by name: the user's own, then those shipped with the package.

    <catalogue>/<line>/<prior id>/{prior.safetensors, prior.json}
    <catalogue>/<line>/current.json

A line, such as `pd1-mini/h-nll`, is one job that priors are promoted for. Each of its priors is named by its
content. `current.json` names the prior in service and holds the decisions that led to it.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError
from hyperbo.priors.file import PRIOR_FILES, Prior, read_prior
from hyperbo.priors.history import PRIOR_ID, Line, PriorDecision, from_json
from hyperbo.storage.atomic import user_folder

SHIPPED = Path(__file__).parent / "shipped"
CURRENT_NAME = "current.json"
# By what name the universal prior is asked for, which is no prior of a catalogue.
UNIVERSAL = "universal"
_FEW = 5
LINE_NAME = re.compile(r"[a-z0-9_-]+/[a-z0-9_-]+")
_ID_PREFIX = re.compile(r"[0-9a-f]{1,16}")


def load_prior(
    reference: Prior | str | os.PathLike[str] | Any, catalog: str | os.PathLike[str] | None = None
) -> Prior:
    """Load a prior by its name or its folder; a loaded prior is returned as it is.

    Args:
      reference: as in `find_prior`, or a loaded prior.
      catalog: folder of priors in which to look first; None: the default one.

    Raises:
      NotAvailableError: there is no such folder, line or prior, or the folder holds no complete prior.
      InvalidInputError: the reference is nothing of that, is malformed or fits several priors, or a file is
        damaged.
      VersionConflictError: a file has another format.

    >>> load_prior("pd1-mini/h-ekl").description.search_space.names
    ('learning_rate', 'power', 'momentum', 'decay_steps_factor')
    """
    return reference if isinstance(reference, Prior) else read_prior(find_prior(reference, catalog))


def find_prior(
    reference: str | os.PathLike[str] | Any, catalog: str | os.PathLike[str] | None = None
) -> Path:
    """Find the folder of a prior.

    Args:
      reference: a folder; or a line such as `pd1-mini/h-ekl`, for its prior in service; or
        `<line>@<first digits>` for another prior. An existing folder goes before a line of the same name.
      catalog: folder of priors in which to look before those shipped with the package; None: the default one.

    Raises:
      NotAvailableError: there is no such folder, line or prior. The message has the nearest names.
      InvalidInputError: the reference is no text and no path, is malformed or fits several priors, or a file
        is damaged.
      VersionConflictError: a file has another format.
    """
    if not isinstance(reference, str | os.PathLike):
        raise InvalidInputError(
            f"prior = {reference!r:.60}",
            fix="give a name such as 'pd1-mini/h-ekl', the folder of a prior, a loaded prior, or 'universal'",
        )
    text = os.fspath(reference)
    folder = Path(text).expanduser()
    if folder.exists():
        return _prior_there(folder)
    line = text.partition("@")[0]
    known = {name for root in catalogs(catalog) for name in lines(root)}
    if line not in known:
        raise NotAvailableError(_unknown(text, sorted(known)))
    missing: NotAvailableError | None = None
    for root in catalogs(catalog):
        if line in lines(root):
            try:
                return prior_folder(root, text)
            except NotAvailableError as error:
                # A line that has only candidates does not hide the one shipped.
                missing = missing or error
    assert missing is not None
    raise missing


def _prior_there(folder: Path) -> Path:
    """The folder of a prior, or an error that says which folder was meant."""
    if (folder / PRIOR_FILES[1]).is_file():
        return folder
    meant = folder.parent if folder.name in PRIOR_FILES else next(folder.glob(f"*/{PRIOR_FILES[1]}"), folder)
    found = meant if meant.is_dir() else meant.parent
    raise NotAvailableError(
        f"{folder} is no folder of a prior, which holds {' and '.join(PRIOR_FILES)}; "
        + (f"give {found}" if found != folder else "`hyperbo prior list` lists the priors there are")
    )


def _unknown(text: str, known: Sequence[str]) -> str:
    """What to say where there is no prior of a name."""
    if text == UNIVERSAL:
        return (
            "the universal prior is in no catalogue: it is for spaces that no prior knows; "
            "use it as `hyperbo tune --prior universal` or as hyperbo.Tuner('universal', space={...})"
        )
    line = text.partition("@")[0]
    # A user may leave the first half out.
    halves = {name.partition("/")[2]: name for name in known}
    near = difflib.get_close_matches(line, [*known, *halves], n=2, cutoff=0.65)
    meant = list(dict.fromkeys(halves.get(name, name) for name in near))
    said = f"did you mean {' or '.join(meant)}?" if meant else f"some there are: {listed(known[:_FEW])};"
    return f"there is no prior {text!r}, and no such folder; {said} `hyperbo prior list` lists all"


def prior_folder(catalog: str | os.PathLike[str], reference: str) -> Path:
    """Find the folder of a prior in one catalogue, by `<line>` or `<line>@<first digits of an identifier>`.

    Raises:
      InvalidInputError: the reference is malformed or fits several priors, or a file is damaged.
      NotAvailableError: there is no such line or prior, or none is in service.
      VersionConflictError: `current.json` has another format.
    """
    line, at, prefix = reference.partition("@")
    folder = known_line(catalog, line)
    if not at:
        current = read_line(catalog, line).current
        if current is None:
            raise NotAvailableError(
                f"{line}: no prior is in service; name one of its priors as {line}@<identifier>: "
                + listed(prior_ids(folder))
            )
        return entry(folder, current)
    if not _ID_PREFIX.fullmatch(prefix):
        raise InvalidInputError(f"prior {reference!r}", fix="write 1 to 16 hexadecimal digits after the @")
    fitting = [each for each in prior_ids(folder) if each.startswith(prefix)]
    if len(fitting) > 1:
        raise InvalidInputError(
            f"{reference} fits several priors: {listed(fitting)}", fix="give more digits of one"
        )
    return entry(folder, fitting[0] if fitting else prefix)


def decisions_on(
    reference: str | os.PathLike[str], catalog: str | os.PathLike[str] | None = None
) -> tuple[PriorDecision, ...]:
    """The decisions on a prior of a catalogue, oldest first; none for a prior given by its folder.

    Args:
      reference: as in `find_prior`, which has the same errors.
      catalog: as in `find_prior`.

    Raises:
      InvalidInputError: `current.json` cannot be read or is damaged.

    >>> [each.action for each in decisions_on("pd1-mini/h-ekl", SHIPPED)]
    ['promoted']
    """
    folder = find_prior(reference, catalog)
    if Path(reference).expanduser().is_dir() or not (folder.parent / CURRENT_NAME).is_file():
        return ()
    history = read_line(folder.parents[2], "/".join(folder.parts[-3:-1])).history
    return tuple(each for each in history if each.prior == folder.name)


def catalogs(catalog: str | os.PathLike[str] | None = None) -> tuple[Path, ...]:
    """The catalogues in which priors are looked up by name, in this order."""
    return (default_prior_dir() if catalog is None else Path(catalog), SHIPPED)


def default_prior_dir() -> Path:
    """The default catalogue: `$HYPERBO_PRIOR_DIR`, else `hyperbo/priors` in the user's data folder."""
    if folder := os.environ.get("HYPERBO_PRIOR_DIR"):
        return Path(folder)
    return user_folder() / "priors"


def read_line(catalog: str | os.PathLike[str], line: str) -> Line:
    """Read which prior of a line is in service, and the decisions so far.

    Raises:
      InvalidInputError: the line is malformed, or `current.json` cannot be read or is damaged.
      NotAvailableError: there is no such line. The message lists the lines.
      VersionConflictError: `current.json` has another format.
    """
    path = known_line(catalog, line) / CURRENT_NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Line(line)
    except OSError as error:
        raise InvalidInputError(f"cannot be read: {error}", where=str(path)) from error
    return from_json(line, content, where=str(path))


def lines(catalog: str | os.PathLike[str]) -> tuple[str, ...]:
    """Names of the lines of a catalogue, sorted; a line has a prior or a history."""
    folders = [folder for folder in Path(catalog).glob("*/*") if _is_line(folder)]
    names = (folder.relative_to(catalog).as_posix() for folder in folders)
    return tuple(sorted(name for name in names if LINE_NAME.fullmatch(name)))


def line_folder(catalog: str | os.PathLike[str], line: str) -> Path:
    """The folder of a line, which need not exist; a malformed name raises an InvalidInputError."""
    if not LINE_NAME.fullmatch(line):
        raise InvalidInputError(
            f"line {line!r}",
            fix="write two names of small letters, digits, - and _, joined by /, such as pd1-mini/h-nll",
        )
    # Absolute, because a worker may run in another folder.
    return Path(catalog).absolute() / line


def known_line(catalog: str | os.PathLike[str], line: str) -> Path:
    """The folder of an existing line.

    Raises:
      InvalidInputError: the name of the line is malformed.
      NotAvailableError: there is no such line. The message lists the lines.
    """
    folder = line_folder(catalog, line)
    if not _is_line(folder):
        raise NotAvailableError(f"no line {line} in {catalog}; lines there: {listed(lines(catalog))}")
    return folder


def prior_ids(folder: Path) -> tuple[str, ...]:
    """Identifiers of the priors in the folder of a line, sorted."""
    # Staging folders and other files have other names.
    return tuple(sorted(path.name for path in folder.glob("*") if PRIOR_ID.fullmatch(path.name)))


def entry(folder: Path, prior_id: str) -> Path:
    """The folder of a prior of a line, its content checked.

    Raises:
      NotAvailableError: there is no such prior. The message lists the priors of the line.
      InvalidInputError: the files are not those that were added.
    """
    known = prior_ids(folder)
    if prior_id not in known:
        raise NotAvailableError(f"no prior {prior_id} in {folder}; priors there: {listed(known)}")
    found = folder / prior_id
    try:
        whole = content_id([(found / name).read_bytes() for name in PRIOR_FILES]) == prior_id
    except OSError:
        whole = False
    if not whole:
        raise InvalidInputError(
            "these are not the files that were added",
            where=str(found),
            fix="remove the folder and add the prior again",
        )
    return found


def content_id(contents: Sequence[bytes]) -> str:
    """Identifier of a prior: 16 hexadecimal digits of the SHA-256 of the SHA-256 of its `PRIOR_FILES`."""
    digests = [hashlib.sha256(content).digest() for content in contents]
    return hashlib.sha256(b"".join(digests)).hexdigest()[:16]


def listed(names: Iterable[str]) -> str:
    """Names as text for a message.

    >>> listed(["a", "b"]), listed([])
    ('a, b', 'none')
    """
    return ", ".join(names) or "none"


def _is_line(folder: Path) -> bool:
    return (folder / CURRENT_NAME).is_file() or bool(prior_ids(folder))
