"""Signatures of manifests, in the format of minisign: who published a version, apart from where it lies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, NotAvailableError, VersionConflictError
from hyperbo.printable import printable

PASSWORD_VARIABLE = "HYPERBO_SIGNING_PASSWORD"
LARGEST_SIGNATURE = 16 << 10
_LONGEST_PATH = 1_000


def sign(content: bytes, key: Path, comment: str) -> bytes:
    """Sign the content of a manifest.

    Args:
      content: of `manifest.json`.
      key: file of a secret key that `minisign -G` made; where it has a password, that is in the environment
        variable `HYPERBO_SIGNING_PASSWORD`.
      comment: signed with it, for people.

    Returns:
      The content of `manifest.json.minisig`.

    Raises:
      InvalidInputError: the file is no secret key, or the password is wrong or missing.
      NotAvailableError: the library is not installed.
    """
    minisign = _library()
    try:
        with minisign.SecretKey.from_file(key) as secret:
            if secret.is_encrypted():
                secret.decrypt(os.environ[PASSWORD_VARIABLE])
            return bytes(secret.sign(content, trusted_comment=comment)) + b"\n"
    except KeyError as error:
        raise InvalidInputError(
            "the key has a password", where=str(key), fix=f"put it into the variable {PASSWORD_VARIABLE}"
        ) from error
    except (minisign.Error, OSError, ValueError) as error:
        raise InvalidInputError(
            f"cannot be used: {error}", where=str(key), fix="give the secret key that minisign -G wrote"
        ) from error


def check_signature(content: bytes, signature: bytes | None, public_key: str, where: str) -> None:
    """Hold the content of a manifest to a key that the reader trusts.

    Args:
      content: of `manifest.json`.
      signature: of `manifest.json.minisig`; None where there is none.
      public_key: the key, or the path of a file that holds it.
      where: the manifest is from.

    Raises:
      VersionConflictError: it is not signed, or not by that key, or was changed since.
      InvalidInputError: the key is none.
      NotAvailableError: the library is not installed.
    """
    minisign = _library()
    is_file = len(public_key) < _LONGEST_PATH and Path(public_key).is_file()
    try:
        read = minisign.PublicKey.from_file if is_file else minisign.PublicKey.from_base64
        trusted = read(public_key)
    except (minisign.Error, OSError, ValueError) as error:
        what = str(error) if is_file else f"no file of that name, and no key either ({error})"
        raise InvalidInputError(
            # Somebody may have given the secret key: it is not to be seen.
            f"public key {printable(public_key, 12)!r}: {what}",
            fix="give the file minisign.pub, or its second line",
        ) from error
    if signature is None:
        raise VersionConflictError(f"{where} is not signed, and a public key was given; do not use it")
    try:
        trusted.verify(content, minisign.Signature.from_bytes(signature))
    except (minisign.Error, ValueError) as error:
        raise VersionConflictError(
            f"{where} is not signed by the public key given ({error}); do not use it"
        ) from error


def _library() -> Any:
    try:
        import minisign
    except ImportError as error:
        raise NotAvailableError("signatures need py-minisign; pip install 'hyperbo[sign]'") from error
    return minisign
