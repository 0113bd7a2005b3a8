"""Official archives: downloaded by TFDS, compared with what is known of them, unpacked safely."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError


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

    Args:
      archive: what to fetch.
      dl_manager: a `tfds.download.DownloadManager`; what it has downloaded before is used again.

    Returns:
      The folder of its members.

    Raises:
      NotAvailableError: it cannot be downloaded.
      InvalidInputError: it is not the archive expected, or a member of it cannot be unpacked safely.
    """
    try:
        path = Path(dl_manager.download(archive.url))
    except Exception as error:  # TFDS passes on whatever its network library raises.
        raise NotAvailableError(
            f"{archive.url} cannot be downloaded ({error}); if its files are here, give their folder"
        ) from error
    try:
        check(archive, path)
    except InvalidInputError:
        # Else the next attempt would find the same file in TFDS's cache.
        path.unlink()
        path.with_name(f"{path.name}.INFO").unlink()
        raise
    return unpack(path, path.with_name(f"{archive.digest[:12]}.unpacked"))


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
        staging.rename(target)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise InvalidInputError(
            f"cannot be unpacked: {error}", where=path.name, fix="fetch the archive again"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _refuse_climbing(name: str, path: Path) -> None:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise InvalidInputError(
            f"the member {name!r} would be written outside its folder",
            where=path.name,
            fix="do not use this archive",
        )
