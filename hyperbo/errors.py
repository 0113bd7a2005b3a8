"""The errors that a user of the system can meet; each says what was wrong, where, and what to do."""

from __future__ import annotations


class HyperBOError(Exception):
    """Base of every error raised on purpose by this project."""


class InvalidInputError(HyperBOError, ValueError):
    """Data or a setting that cannot be used as given.

    Args:
      what: what was wrong, with the offending value.
      where: the place: file and line, record, field.
      fix: what the reader can do about it.

    >>> print(InvalidInputError("learning rate is 'high'", where="trials.jsonl:3", fix="write a number"))
    trials.jsonl:3: learning rate is 'high'; write a number
    """

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what, self.where, self.fix = what, where, fix
        super().__init__((f"{where}: " if where else "") + what + (f"; {fix}" if fix else ""))

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments need help to cross process boundaries (Beam and Prefect workers).
        return (_rebuild_invalid_input, (type(self), self.what, self.where, self.fix))


def _rebuild_invalid_input(
    cls: type[InvalidInputError], what: str, where: str, fix: str
) -> InvalidInputError:
    return cls(what, where=where, fix=fix)


def require_positive(settings: object, *names: str, optional: tuple[str, ...] = (), where: str = "") -> None:
    """Refuse settings that are not positive and finite numbers; those of `optional` may also be None.

    Raises:
      InvalidInputError: a setting is not positive, or not finite.
    """
    for name in (*names, *optional):
        value = getattr(settings, name)
        if not (name in optional and value is None) and not 0 < value < float("inf"):
            raise InvalidInputError(
                f"{name} = {value} is not positive",
                where=where or type(settings).__name__,
                fix=f"give a positive, finite number{' or None' if name in optional else ''}",
            )


class NumericalError(HyperBOError, ArithmeticError):
    """A computation that has no usable result, such as the factor of a matrix not positive definite."""


class NotAvailableError(HyperBOError, LookupError):
    """A dataset, version, prior or optional dependency that is not here; the message says how to get it."""


class MissingExtraError(NotAvailableError, ImportError):
    """A module of an optional extra that is not installed; the message has the command that installs it.

    Args:
      what: what needs the module, and the command.
      name: the module.
    """

    def __init__(self, what: str, name: str = "") -> None:
        ImportError.__init__(self, what, name=name)


class UnreachableError(NotAvailableError):
    """A source that cannot be read now, and perhaps can be in a minute: of a network, a server, a disk.

    Args:
      what: what could not be read, and why.
      retry_after: seconds after which the source asked to be tried again; 0 where it did not.
    """

    def __init__(self, what: str, retry_after: float = 0.0) -> None:
        self.retry_after = retry_after
        super().__init__(what)


class VersionConflictError(HyperBOError):
    """A published version that would change, or a file written by an incompatible version."""
