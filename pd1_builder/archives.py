"""Official archives: downloaded by TFDS, compared with what is known of them, unpacked safely."""

from __future__ import annotations

import hashlib
import logging
import lzma
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError
from pd1_builder.staging import NO_SPACE, lock_version

_LOGGER = logging.getLogger(__name__)
# TFDS would make ten, each after a longer wait: minutes, of which one who is offline learns nothing.
_RETRIES = 4
# TFDS would wait without end for a server that says nothing.
_SECONDS_OF_SILENCE = 15.0
# What the standard library raises for an archive that is damaged; `RuntimeError` where a zip seems encrypted.
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,
)


@dataclass(frozen=True)
class Archive:
    """An archive that somebody else publishes.

    TFDS's own registry of checksums wants a whole SHA-256. Where only another digest is known, or the
    beginning of one, that is what is compared.

    Attributes:
      url: where it is published.
      algorithm: of the digest, a name of `hashlib`.
      digest: the first hexadecimal digits of the digest, or all of them.
      size: bytes; None where it is not known.
    """

    url: str
    algorithm: str
    digest: str
    size: int | None = None


# The MD5 is the one that other projects print for it.
PD1_ARCHIVE = Archive(
    "http://storage.googleapis.com/gresearch/pint/pd1.tar.gz", "md5", "e04c789cff8d5ddc9f2301e2ac02d0e3"
)
# Of its SHA-256 only the beginning is known.
HPOB_ARCHIVE = Archive(
    "https://rewind.tf.uni-freiburg.de/index.php/s/xdrJQPCTNi2zbfL/download/hpob-data.zip",
    "sha256",
    "ab1c439e50ff",
    261_011_374,
)


def fetch(archive: Archive, dl_manager: Any) -> Path:
    """Download an archive, check it, and unpack it beside the download.

    Of two processes that want the same archive one downloads it, the other waits and uses it.

    Args:
      archive: what to fetch.
      dl_manager: a `tfds.download.DownloadManager`; what it has downloaded before is used again.

    Returns:
      The folder of its members.

    Raises:
      NotAvailableError: it cannot be downloaded.
      InvalidInputError: it is not the archive expected, or a member of it cannot be unpacked safely.
      OSError: no space is left for it.
    """
    target = Path(dl_manager.download_dir) / f"{archive.digest[:12]}.unpacked"
    with lock_version(target, lambda: _LOGGER.info("%s: another process downloads it; waiting", archive.url)):
        path = _download(archive.url, dl_manager)
        try:
            check(archive, path)
        except InvalidInputError:
            # Else the next attempt would find the same file in TFDS's cache.
            path.unlink()
            path.with_name(f"{path.name}.INFO").unlink()
            raise
        return unpack(path, target)


def _download(url: str, dl_manager: Any) -> Path:
    """Download a file, unless it is here, and leave nothing beside it. Call only under a lock of the URL."""
    from tensorflow_datasets.core.download.resource import get_dl_fname

    try:
        with _bounded_patience():
            return Path(dl_manager.download(url))
    except Exception as error:  # TFDS passes on whatever its network library raises.
        if _no_space(error):
            raise
        raise NotAvailableError(
            f"{url} cannot be downloaded ({error}); if its files are here, give their folder"
        ) from error
    finally:
        # TFDS leaves the folder of a download that failed, and a download that was killed leaves its own.
        for left in Path(dl_manager.download_dir).glob(f"{get_dl_fname(url)}.tmp.*"):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _bounded_patience() -> Iterator[None]:
    """Let TFDS give up in time where there is no network, without a warning for each attempt."""
    from tensorflow_datasets.core.download import downloader

    attempts = logging.getLogger("urllib3.connectionpool")
    level, retries, open_url = attempts.level, downloader.MAX_RETRIES, downloader._open_url
    attempts.setLevel(logging.ERROR)
    downloader.MAX_RETRIES = _RETRIES
    # It passes further arguments on to `requests`, and TFDS offers no setting for this one.
    downloader._open_url = partial(open_url, timeout=_SECONDS_OF_SILENCE)
    try:
        yield
    finally:
        attempts.setLevel(level)
        downloader.MAX_RETRIES, downloader._open_url = retries, open_url


def check(archive: Archive, path: Path) -> None:
    """Compare a downloaded file with what is known of the archive.

    Raises:
      InvalidInputError: size or digest differ.
    """
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, archive.algorithm).hexdigest()
    size = path.stat().st_size
    if not found.startswith(archive.digest) or archive.size not in (None, size):
        expected = f"{archive.algorithm} {archive.digest}" + (
            f", {archive.size} bytes" if archive.size else ""
        )
        raise InvalidInputError(
            f"the download has {archive.algorithm} {found} and {size} bytes, not {expected}",
            where=archive.url,
            fix="fetch it again, or give the folder of its files if it is known to be good",
        )


def unpack(path: Path, target: Path) -> Path:
    """Unpack a tar or zip file into a folder that appears when it is complete.

    Raises:
      InvalidInputError: it cannot be read, or a member would be written outside the folder.
      OSError: no space is left for its members.
    """
    if target.is_dir():
        return target
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as file:
                for name in file.namelist():
                    _refuse_climbing(name, path)
                file.extractall(staging)
        else:
            with tarfile.open(path) as file:
                for member in file:
                    _refuse_climbing(member.name, path)
                    file.extract(member, staging, filter="data")
        _publish(staging, target)
    except _DAMAGED as error:
        if _no_space(error):
            raise
        raise InvalidInputError(
            f"cannot be unpacked: {error}", where=path.name, fix="fetch the archive again"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _publish(staging: Path, target: Path) -> None:
    try:
        staging.rename(target)
    except OSError:
        if not target.is_dir():  # Else somebody else has unpacked the same archive meanwhile.
            raise


def _no_space(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in NO_SPACE


def _refuse_climbing(name: str, path: Path) -> None:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise InvalidInputError(
            f"the member {name!r} would be written outside its folder",
            where=path.name,
            fix="do not use this archive",
        )
