"""Official archives of raw files: downloaded by TFDS, checked against a known digest, unpacked safely."""

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
from hyperbo.storage.staging import lock
from pd1_builder.version.disk_errors import NO_SPACE

_LOGGER = logging.getLogger(__name__)
# TFDS would try ten times with longer and longer waits, which takes minutes without a network.
_RETRIES = 4
# TFDS would wait forever for a silent server.
_SECONDS_OF_SILENCE = 15.0
# What the standard library raises for a damaged archive. `RuntimeError`: a zip file seems encrypted.
_DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, RuntimeError)


@dataclass(frozen=True)
class Archive:
    """An archive on somebody else's server.

    TFDS's own registry of checksums needs a whole SHA-256. For these archives only another digest, or the
    beginning of one, is known.

    Attributes:
      url: its address.
      algorithm: algorithm of the digest, a name of `hashlib`.
      digest: the first hexadecimal digits of the digest, or all of them.
      size: size in bytes; None if it is not known.
    """

    url: str
    algorithm: str
    digest: str
    size: int | None = None


# Other projects print this MD5 for it.
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
    """Download an archive with TFDS's `DownloadManager`, check it, and unpack it beside the download.

    Earlier downloads are used again. If two processes fetch the same archive, one downloads it, and the other
    waits and uses the result.

    Returns:
      The folder of the members.

    Raises:
      NotAvailableError: the archive cannot be downloaded.
      InvalidInputError: the download is not the expected archive, or cannot be unpacked safely.
      OSError: the disk is full.
    """
    target = Path(dl_manager.download_dir) / f"{archive.digest[:12]}.unpacked"
    with lock(target, lambda: _LOGGER.info("%s: another process downloads it; waiting", archive.url)):
        path = _download(archive.url, dl_manager)
        try:
            check(archive, path)
        except InvalidInputError:
            # Otherwise the next attempt would find the same file in TFDS's cache.
            path.unlink()
            path.with_name(f"{path.name}.INFO").unlink()
            raise
        return unpack(path, target)


def _download(url: str, dl_manager: Any) -> Path:
    """Download a file unless it is here, and remove temporary files. Call only under a lock for the URL."""
    from tensorflow_datasets.core.download.resource import get_dl_fname

    try:
        with _bounded_patience():
            return Path(dl_manager.download(url))
    except Exception as error:  # TFDS passes on whatever its network library raises.
        if _is_full_disk(error):
            raise
        raise NotAvailableError(
            f"{url} cannot be downloaded ({error}); if you have its files, give their folder"
        ) from error
    finally:
        # TFDS leaves a temporary folder after a download that failed or was killed.
        for left in Path(dl_manager.download_dir).glob(f"{get_dl_fname(url)}.tmp.*"):
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _bounded_patience() -> Iterator[None]:
    """Let TFDS give up soon if there is no network, without a warning for each attempt."""
    from tensorflow_datasets.core.download import downloader

    attempts = logging.getLogger("urllib3.connectionpool")
    level, retries, open_url = attempts.level, downloader.MAX_RETRIES, downloader._open_url
    attempts.setLevel(logging.ERROR)
    downloader.MAX_RETRIES = _RETRIES
    # The function passes further arguments on to `requests`. TFDS has no setting for the timeout.
    downloader._open_url = partial(open_url, timeout=_SECONDS_OF_SILENCE)
    try:
        yield
    finally:
        attempts.setLevel(level)
        downloader.MAX_RETRIES, downloader._open_url = retries, open_url


def check(archive: Archive, path: Path) -> None:
    """Check the size and the digest of a downloaded archive.

    Raises:
      InvalidInputError: the size or the digest differs.
    """
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, archive.algorithm).hexdigest()
    size = path.stat().st_size
    if not found.startswith(archive.digest) or archive.size not in (None, size):
        size_expected = f", {archive.size} bytes" if archive.size else ""
        expected = f"{archive.algorithm} {archive.digest}{size_expected}"
        raise InvalidInputError(
            f"the download has {archive.algorithm} {found} and {size} bytes, not {expected}",
            where=archive.url,
            fix="fetch it again; or if you trust it, unpack it yourself and give the folder of its files",
        )


def unpack(path: Path, target: Path) -> Path:
    """Unpack a tar or zip file into a folder, which appears when it is complete.

    Raises:
      InvalidInputError: the file is damaged, or a member would be written outside the folder.
      OSError: the disk is full.
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
        try:
            staging.rename(target)
        except OSError:
            if not target.is_dir():  # Otherwise another process has unpacked the same archive meanwhile.
                raise
    except _DAMAGED as error:
        if _is_full_disk(error):
            raise
        raise InvalidInputError(
            f"cannot be unpacked: {error}", where=path.name, fix="fetch the archive again"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _is_full_disk(error: Exception) -> bool:
    return isinstance(error, OSError) and error.errno in NO_SPACE


def _refuse_climbing(name: str, path: Path) -> None:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise InvalidInputError(
            f"the member {name!r} would be written outside its folder",
            where=path.name,
            fix="do not use this archive",
        )
