"""Errors of the disk, turned into errors that say what was being written and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hyperbo.errors import HyperBOError

# The errors of a system whose disk, quota or largest file size is reached.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def explaining_disk_errors(reference: str, advice: str) -> Iterator[None]:
    """Turn the errors of a full disk, and of a folder that cannot be used, into a `HyperBOError`.

    The advice says what remains of the version when the disk is full, and what the user can do.

    Raises:
      HyperBOError: the disk is full, or the system refused to read or write a file.
    """
    try:
        yield
    except Exception as error:
        if _is_full_disk(error):
            raise HyperBOError(f"{reference}: no space is left on the disk; {advice}") from error
        if isinstance(error, OSError):
            what = f"{reference}: cannot be written: {error}; make the folder writable, or choose another"
            raise HyperBOError(what) from error
        raise


def _is_full_disk(error: BaseException | None) -> bool:
    while error is not None:
        # Arrow and TFDS pass the system's words on, and Beam's workers pass on only the text of an error. An
        # error of this project may quote a row of data, which may contain these words by chance.
        words = "" if isinstance(error, HyperBOError) else str(error)
        if getattr(error, "errno", None) in NO_SPACE or any(os.strerror(n) in words for n in NO_SPACE):
            return True
        error = error.__cause__ or error.__context__
    return False
