from __future__ import annotations

from pathlib import Path

import minisign
import pytest

import pd1_builder
from hyperbo.errors import InvalidInputError, VersionConflictError
from pd1_builder.distribution.publish import publish
from pd1_builder.distribution.pull import pull
from pd1_builder.distribution.signatures import check_signature, sign
from pd1_builder.version.catalog import versions

# Signed by the reference implementation; printed in the documentation of minisign's verifiers.
KEY = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
SIGNATURE = b"""untrusted comment: signature from minisign secret key
RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=
trusted comment: timestamp:1555779966\tfile:test
QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==
"""


def write_keys(folder: Path, password: str = "") -> tuple[Path, str]:
    """Write a key pair as minisign does, and return the secret key's file and the public key."""
    pair = minisign.KeyPair.generate()
    public = pair.public_key.to_base64().decode()
    if password:
        # Weak on purpose: the default takes seconds and a gigabyte.
        pair.secret_key.encrypt(password, opslimit=32768, memlimit=16 << 20)
    path = folder / "minisign.key"
    path.write_bytes(bytes(pair.secret_key) + b"\n")
    (folder / "minisign.pub").write_bytes(bytes(pair.public_key) + b"\n")
    return path, public


def test_a_signature_of_the_reference_implementation_is_understood() -> None:
    check_signature(b"test", SIGNATURE, KEY, "here")
    with pytest.raises(VersionConflictError, match="here is not signed"):
        check_signature(b"Test", SIGNATURE, KEY, "here")


@pytest.mark.parametrize("line", [1, 2, 3])
def test_every_line_of_a_signature_counts(line: int) -> None:
    lines = SIGNATURE.splitlines()
    changed = bytearray(lines[line])
    changed[30] ^= 1
    lines[line] = bytes(changed)
    with pytest.raises(VersionConflictError):
        check_signature(b"test", b"\n".join(lines), KEY, "here")


def test_a_signed_version_is_pulled_with_its_signature(own: Path, tmp_path: Path) -> None:
    key, public = write_keys(tmp_path)
    publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=own, key=key)
    version = pull("pd1/mini:1.0.0", [tmp_path / "place"], data_dir=tmp_path / "data", public_key=public)
    # It is no file of the version, and goes along to the next place.
    pd1_builder.verify("pd1/mini:1.0.0", tmp_path / "data")
    assert (version.folder / "manifest.json.minisig").read_text().startswith("untrusted comment:")
    publish("pd1/mini:1.0.0", tmp_path / "mirror", data_dir=tmp_path / "data")
    public_file = str(tmp_path / "minisign.pub")
    pull("pd1/mini:1.0.0", [tmp_path / "mirror"], data_dir=tmp_path / "third", public_key=public_file)


def test_a_manifest_not_signed_by_the_trusted_key_is_refused(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    key, public = write_keys(tmp_path)
    _, other = write_keys(tmp_path / "other")
    publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=own, key=key)
    publish("pd1/mini:1.1.0", tmp_path / "place", data_dir=own)
    data = tmp_path / "data"
    with pytest.raises(VersionConflictError, match="not signed by the given public key"):
        pull("pd1/mini:1.0.0", [tmp_path / "place"], data_dir=data, public_key=other)
    with pytest.raises(VersionConflictError, match="is not signed, but a public key was given"):
        pull("pd1/mini:1.1.0", [tmp_path / "place"], data_dir=data, public_key=public)
    assert not versions(data)
    # What is here is held to the key too, and the environment may name it.
    pull("pd1/mini:1.1.0", [tmp_path / "place"], data_dir=data)
    monkeypatch.setenv("HYPERBO_DATA_PUBLIC_KEY", public)
    for call in (pull, pd1_builder.load):
        with pytest.raises(VersionConflictError, match="is not signed"):
            call("pd1/mini:1.1.0", data_dir=data)
        with pytest.raises(VersionConflictError, match="is not signed"):
            call("pd1/mini:1.1.0", data_dir=tmp_path / call.__name__, source=tmp_path / "place")
    # What was built here is its builder's own.
    assert pd1_builder.load("pd1/mini:1.1.0", as_="dataframe", data_dir=own) is not None


def test_a_version_can_be_signed_after_it_was_published(own: Path, tmp_path: Path) -> None:
    key, public = write_keys(tmp_path)
    place = tmp_path / "place"
    entry = publish("pd1/mini:1.0.0", place, data_dir=own)
    assert publish("pd1/mini:1.0.0", place, data_dir=own, key=key) == entry
    pull("pd1/mini:1.0.0", place, data_dir=tmp_path / "data", public_key=public)
    # Without a key, the signature that is there stays.
    publish("pd1/mini:1.0.0", place, data_dir=own)
    assert (place / "pd1/mini/1.0.0/manifest.json.minisig").exists()


def test_a_signature_is_never_replaced(own: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (key, public), (other, _) = write_keys(tmp_path), write_keys(tmp_path / "other")
    place = tmp_path / "place"
    publish("pd1/mini:1.0.0", place, data_dir=own, key=key)
    with pytest.raises(VersionConflictError, match="by another key"):
        publish("pd1/mini:1.0.0", place, data_dir=own, key=other)
    copy = pull("pd1/mini:1.0.0", place, data_dir=tmp_path / "copy").folder
    (copy / "manifest.json.minisig").write_text("bogus")
    publish("pd1/mini:1.0.0", place, data_dir=tmp_path / "copy")
    pull("pd1/mini:1.0.0", place, data_dir=tmp_path / "data", public_key=public)


def test_the_newest_version_in_the_data_folder_is_checked_with_the_key(own: Path, tmp_path: Path) -> None:
    key, public = write_keys(tmp_path)
    place = tmp_path / "place"
    publish("pd1/mini:1.1.0", place, data_dir=own)
    pull("pd1/mini", place, data_dir=tmp_path / "data")
    publish("pd1/mini:1.1.0", place, data_dir=own, key=key)
    with pytest.raises(VersionConflictError, match=r"data/pd1/mini/1\.1\.0/manifest\.json is not signed"):
        pull("pd1/mini", place, data_dir=tmp_path / "data", public_key=public)


def test_a_secret_key_given_for_a_public_one_is_not_shown(tmp_path: Path) -> None:
    secret = write_keys(tmp_path)[0].read_text()
    with pytest.raises(InvalidInputError) as caught:
        check_signature(b"test", SIGNATURE, secret, "here")
    assert secret.splitlines()[1][:10] not in str(caught.value)


def test_an_empty_key_is_an_error(own: Path, tmp_path: Path) -> None:
    publish("pd1/mini:1.0.0", tmp_path / "place", data_dir=own)
    with pytest.raises(InvalidInputError, match="public key ''"):
        pull("pd1/mini:1.0.0", tmp_path / "place", data_dir=tmp_path / "data", public_key="")


def test_a_password_comes_from_the_environment_and_is_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, public = write_keys(tmp_path, password="of a test")
    with pytest.raises(InvalidInputError, match="HYPERBO_SIGNING_PASSWORD"):
        sign(b"content", key, "comment")
    monkeypatch.setenv("HYPERBO_SIGNING_PASSWORD", "wrong one")
    with pytest.raises(InvalidInputError, match="wrong password") as caught:
        sign(b"content", key, "comment")
    assert "wrong one" not in str(caught.value)
    monkeypatch.setenv("HYPERBO_SIGNING_PASSWORD", "of a test")
    check_signature(b"content", sign(b"content", key, "comment"), public, "here")


@pytest.mark.parametrize("key", ["", "RW", "nowhere.pub", KEY[:-1]])
def test_a_malformed_public_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInputError, match=r"minisign\.pub"):
        check_signature(b"test", SIGNATURE, key, "here")


def test_a_file_that_is_no_secret_key_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path / "other"):
        with pytest.raises(InvalidInputError, match="minisign -G"):
            sign(b"content", path, "comment")
        (tmp_path / "other").write_text("no key\n")
