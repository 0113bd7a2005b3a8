"""Signatures of manifests in the format of minisign. They show who published a version, at any place."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.storage.installation import require_extras
from hyperbo.storage.printable import printable

PASSWORD_VARIABLE = "HYPERBO_SIGNING_PASSWORD"
LARGEST_SIGNATURE = 16 << 10
_LONGEST_PATH = 1_000


def sign(content: bytes, key: Path, comment: str) -> bytes:
    """Sign the content of a manifest, and a comment for people, by the key in a file of `minisign -G`.

    If the key has a password, it is read from the environment variable `HYPERBO_SIGNING_PASSWORD`.

    Returns:
      The content of `manifest.json.minisig`.

    Raises:
      InvalidInputError: the file is not a secret key, or the password is wrong or missing.
      MissingExtraError: py-minisign is not installed.
    """
    minisign = _library()
    try:
        with minisign.SecretKey.from_file(key) as secret:
            if secret.is_encrypted():
                secret.decrypt(os.environ[PASSWORD_VARIABLE])
            return bytes(secret.sign(content, trusted_comment=comment)) + b"\n"
    except KeyError as error:
        raise InvalidInputError(
            "the key has a password", where=str(key), fix=f"set the variable {PASSWORD_VARIABLE}"
        ) from error
    except (minisign.Error, OSError, ValueError) as error:
        raise InvalidInputError(
            f"cannot be used: {error}", where=str(key), fix="give the secret key that minisign -G wrote"
        ) from error


def check_signature(content: bytes, signature: bytes | None, public_key: str, where: str) -> None:
    """Check that the content of a manifest is signed by a public key, given itself or by its file.

    `where` says in messages where the manifest lies. The signature is None if there is none.

    Raises:
      VersionConflictError: the manifest is not signed, is signed by another key, or has changed since.
      InvalidInputError: `public_key` is not a public key.
      MissingExtraError: py-minisign is not installed.
    """
    minisign = _library()
    is_file = len(public_key) < _LONGEST_PATH and Path(public_key).is_file()
    try:
        read = minisign.PublicKey.from_file if is_file else minisign.PublicKey.from_base64
        trusted = read(public_key)
    except (minisign.Error, OSError, ValueError) as error:
        what = str(error) if is_file else f"is neither a file nor a key ({error})"
        raise InvalidInputError(
            # Shortened, in case the user gave the secret key.
            f"public key {printable(public_key, 12)!r}: {what}",
            fix="give the file minisign.pub, or its second line",
        ) from error
    if signature is None:
        raise VersionConflictError(f"{where} is not signed, but a public key was given; do not use it")
    try:
        trusted.verify(content, minisign.Signature.from_bytes(signature))
    except (minisign.Error, ValueError) as error:
        raise VersionConflictError(
            f"{where} is not signed by the given public key ({error}); do not use it"
        ) from error


def _library() -> Any:
    require_extras("sign", purpose="a signature")
    import minisign

    return minisign
