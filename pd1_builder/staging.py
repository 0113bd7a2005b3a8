"""Making a version appear all at once, by the means of `hyperbo.staging`; and how a full disk shows."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from hyperbo.errors import HyperBOError
from hyperbo.staging import lock as lock_version
from hyperbo.staging import publish, stage

__all__ = ["NO_SPACE", "explaining_disk_errors", "lock_version", "publish", "stage"]

# What the system says where a disk, a quota or a limit of file sizes is full.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def explaining_disk_errors(reference: str, advice: str) -> Iterator[None]:
    """Turn a full disk, wherever it was met, and a folder that cannot be used into errors that say so.

    Args:
      reference: the version that was to be written.
      advice: what is left of it where no space is, and what to do.
    """
    try:
        yield
    except Exception as error:
        if _no_space(error):
            raise HyperBOError(f"{reference}: no space is left to write it; {advice}") from error
        if isinstance(error, OSError):
            raise HyperBOError(f"{reference}: cannot be written: {error}") from error
        raise


def _no_space(error: BaseException | None) -> bool:
    while error is not None:
        # Arrow and TFDS's writers pass the system's words on, Beam's workers only the text of an error. An
        # error of this project's own may quote a row, and a row may hold these words.
        words = "" if isinstance(error, HyperBOError) else str(error)
        if getattr(error, "errno", None) in NO_SPACE or any(os.strerror(n) in words for n in NO_SPACE):
            return True
        error = error.__cause__ or error.__context__
    return False
