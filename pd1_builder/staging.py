"""Making a version appear all at once, by the means of `hyperbo.staging`; and how a full disk shows."""

from __future__ import annotations

import errno

from hyperbo.staging import lock as lock_version
from hyperbo.staging import publish, stage

__all__ = ["NO_SPACE", "lock_version", "publish", "stage"]

# What the system says where a disk, a quota or a limit of file sizes is full.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
