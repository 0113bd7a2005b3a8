"""Pulls from web servers that fail in every way: what the user sees, and what is on the disk afterwards."""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import ssl
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from faulty_server import Fault, FaultyServer
from large_versions import FILES, write_large_version

import pd1_builder
from hyperbo.errors import HyperBOError, InvalidInputError, NotAvailableError, VersionConflictError
from pd1_builder.distribution.addresses import place_at, writable_place_at
from pd1_builder.distribution.index import Entry, create_entry, list_entries
from pd1_builder.distribution.publish import publish
from pd1_builder.distribution.pull import pull
from pd1_builder.distribution.transfer import RetryPolicy
from pd1_builder.distribution.web import WebPlace
from pd1_builder.version.catalog import versions
from pd1_builder.version.pull_record import pull_folders, revision_of

REFERENCE, FOLDER = "pd1/mini:1.1.0", "pd1/mini/1.1.0"
INDEX, MANIFEST, LARGE = "index.json", f"{FOLDER}/manifest.json", f"{FOLDER}/large.bin"
SIZE, HALF = FILES["large.bin"], 300_000
PATIENCE = RetryPolicy(attempts=3, first_wait=0.01)
# What the kernel takes from a server for a reader that has not asked for it, and some.
BUFFERS = 64 << 20
TOKEN = "s3cret-of-this-test"


class Published(NamedTuple):
    """A folder of versions, a place that has two of them, and what a stale server would still have."""

    own: Path
    place: Path
    old_index: bytes
    old_manifest: bytes


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    root = tmp_path_factory.mktemp("published")
    write_large_version(root / "own", "pd1/mini:1.0.0")
    write_large_version(root / "own", REFERENCE, seed=1, parent="1.0.0")
    publish("pd1/mini:1.0.0", root / "place", data_dir=root / "own")
    old_index = (root / "place/index.json").read_bytes()
    publish(REFERENCE, root / "place", data_dir=root / "own")
    old_manifest = (root / "own/pd1/mini/1.0.0/manifest.json").read_bytes()
    return Published(root / "own", root / "place", old_index, old_manifest)


@pytest.fixture(autouse=True)
def short_silence(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    # Elsewhere a busy machine would be taken for a server that has gone.
    if "silent" in request.node.name:
        impatient = functools.partial(WebPlace, silence=0.6)
        monkeypatch.setattr("pd1_builder.distribution.web.WebPlace", impatient)


@pytest.fixture(scope="module")
def good(published: Published) -> Iterator[FaultyServer]:
    """A mirror without faults."""
    with FaultyServer(published.place) as server:
        yield server


def patience_with(fault: Fault) -> RetryPolicy:
    return replace(PATIENCE, attempts=1) if fault.kind == "stall" else PATIENCE


class Case(NamedTuple):
    """A fault that meets every request for a file: what the user sees, and what follows.

    `asked` is how often the file is asked for, `kept` how many bytes of the large one stay for the next pull.
    """

    path: str
    fault: Fault
    error: type[HyperBOError]
    message: str
    asked: int = 1
    kept: int = 0


CLOSED = "the connection was closed before the end of the file"
SILENT = "the server does not answer in time"
OTHER = "has other bytes than the manifest says"
NOT_INDEXED = "revision [0-9a-f]{64}"
DAMAGED = "is damaged"
ENDLESS = "has more than 16777216 bytes"
GARBAGE = r"220 \[2Jthis is no web server"
# What passes: the place is asked again, so many times.
PASSING = {
    "closed": (Fault("close", at=HALF), CLOSED),
    "reset": (Fault("reset", at=HALF), r"\[Errno 104\] Connection reset by peer"),
    "silent": (Fault("stall", at=HALF), SILENT),
    "garbage": (Fault("garbage"), GARBAGE),
    "429": (Fault("status", status=429), "the server answers 429 Too Many Requests"),
    "500": (Fault("status", status=500), "the server answers 500 Internal Server Error"),
}
# What stays: asking again would not help.
LASTING = {
    "404": (Fault("status", status=404), "the server answers 404 Not Found"),
    "403": (
        Fault("status", status=403),
        "the server answers 403 Forbidden; .* HYPERBO_DATA_TOKEN_127_0_0_1",
    ),
    "nowhere": (Fault("status", status=302), "the server answers 302 Found"),
}
CASES = {
    f"{name}-{path.rpartition('/')[2]}": Case(
        path,
        replace(fault, at=HALF if path == LARGE else 100),
        NotAvailableError,
        message,
        patience_with(fault).attempts if name in PASSING else 1,
        HALF if fault.at and path == LARGE else 0,
    )
    for path in (LARGE, MANIFEST, INDEX)
    for name, (fault, message) in (PASSING | LASTING).items()
    # Each silence is waited for: once is enough.
    if name != "silent" or path == LARGE
} | {
    "short-large.bin": Case(
        LARGE, Fault("truncate", at=HALF), NotAvailableError, "has fewer bytes than it should", 2, HALF
    ),
    "wrong-large.bin": Case(LARGE, Fault("wrong"), VersionConflictError, OTHER, 2),
    "endless-large.bin": Case(LARGE, Fault("endless"), VersionConflictError, OTHER, 2),
    "redirect_loop-large.bin": Case(
        LARGE,
        Fault("status", status=302, headers={"Location": "large.bin"}),
        NotAvailableError,
        "redirects more than 10 times",
        11,
    ),
    "bad_redirect-large.bin": Case(
        LARGE,
        Fault("status", status=302, headers={"Location": "http://a..b/"}),
        NotAvailableError,
        "label empty",
        PATIENCE.attempts,
    ),
    "short-manifest.json": Case(MANIFEST, Fault("truncate", at=100), VersionConflictError, NOT_INDEXED),
    "wrong-manifest.json": Case(MANIFEST, Fault("wrong"), VersionConflictError, NOT_INDEXED),
    "stale-manifest.json": Case(MANIFEST, Fault("content"), VersionConflictError, NOT_INDEXED),
    "endless-manifest.json": Case(MANIFEST, Fault("endless"), VersionConflictError, ENDLESS),
    "short-index.json": Case(INDEX, Fault("truncate", at=100), VersionConflictError, DAMAGED),
    "wrong-index.json": Case(INDEX, Fault("wrong"), VersionConflictError, DAMAGED),
    "endless-index.json": Case(INDEX, Fault("endless"), VersionConflictError, ENDLESS),
}


def script(case: Case, published: Published) -> dict[str, tuple[Fault, ...]]:
    fault = case.fault
    return {
        case.path: (replace(fault, content=published.old_manifest) if fault.kind == "content" else fault,)
    }


def require_nothing_visible(data_dir: Path, published: Published) -> dict[str, int]:
    """No version is to be seen, and what is kept of one is right as far as it goes: sizes by name."""
    assert versions(data_dir) == ()
    beside = [path.name for path in data_dir.glob("*/*/*")]
    assert all(re.fullmatch(r"\.1\.1\.0\.lock|\.pulling-1\.1\.0-[0-9a-f]{16}", name) for name in beside), (
        beside
    )
    sizes = {}
    for folder in pull_folders(data_dir / FOLDER):
        for path in folder.rglob("*"):
            if path.is_file():
                name, content = path.relative_to(folder).as_posix(), path.read_bytes()
                assert (published.own / FOLDER / name).read_bytes().startswith(content)
                sizes[name] = len(content)
    return sizes


def require_whole(data_dir: Path, published: Published) -> None:
    """The version is here, nothing of it is left beside it, and it is the one that was published."""
    assert [each.version for each in versions(data_dir)] == ["1.1.0"]
    assert pull_folders(data_dir / FOLDER) == ()
    pd1_builder.verify(REFERENCE, data_dir)
    assert revision_of(data_dir / FOLDER) == revision_of(published.own / FOLDER)


@pytest.mark.parametrize("name", CASES)
def test_a_fault_that_stays(name: str, published: Published, tmp_path: Path) -> None:
    case = CASES[name]
    with FaultyServer(published.place, script(case, published)) as server:
        with pytest.raises(case.error, match=case.message) as caught:
            pull(REFERENCE, [server.url], data_dir=tmp_path, retries=patience_with(case.fault))
        assert server.url in str(caught.value)
        ranges = server.ranges_asked(case.path)
        # Of the last bytes before a reset some may be lost. Those that come later are progress, which renews
        # the patience.
        renewed = max(0, len(set(ranges)) - 2) if case.fault.kind == "reset" else 0
        assert len(ranges) == case.asked + renewed, ranges
        assert server.sent[case.path] <= len(ranges) * ((16 << 20) + BUFFERS)
    sizes = require_nothing_visible(tmp_path, published)
    if case.fault.kind == "reset":
        assert sizes.get("large.bin", 0) <= case.kept
    else:
        assert sizes.get("large.bin", 0) == case.kept


@pytest.mark.parametrize("name", CASES)
def test_another_mirror_is_used_instead(
    name: str, published: Published, good: FaultyServer, tmp_path: Path
) -> None:
    case = CASES[name]
    with FaultyServer(published.place, script(case, published)) as server:
        pull(REFERENCE, [server.url, good.url], data_dir=tmp_path, retries=patience_with(case.fault))
        assert server.ranges_asked(case.path)
    require_whole(tmp_path, published)


@pytest.mark.parametrize("path", [LARGE, MANIFEST, INDEX], ids=lambda path: path.rpartition("/")[2])
@pytest.mark.parametrize("fault", [fault for fault, _ in PASSING.values()], ids=PASSING.keys())
def test_a_fault_that_passes(fault: Fault, path: str, published: Published, tmp_path: Path) -> None:
    times = 1 if fault.kind == "stall" else 2
    passing = replace(fault, times=times, at=fault.at if path == LARGE else 100)
    with FaultyServer(published.place, {path: (passing,)}) as server:
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        assert len(server.ranges_asked(path)) == times + 1
        if fault.kind in ("close", "stall") and path == LARGE:
            assert server.ranges_asked(path) == [None, *[f"bytes={HALF}-"] * times]
            assert server.sent[path] == SIZE
    require_whole(tmp_path, published)


@pytest.mark.parametrize("kind", ["wrong", "endless", "truncate"])
def test_bytes_that_were_wrong_once_are_fetched_once_more(
    kind: Any, published: Published, tmp_path: Path
) -> None:
    with FaultyServer(published.place, {LARGE: (Fault(kind, at=HALF, times=1),)}) as server:
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        assert server.ranges_asked(LARGE) == [None, f"bytes={HALF}-" if kind == "truncate" else None]
    require_whole(tmp_path, published)


def test_an_index_that_is_stale_hides_no_version(published: Published, tmp_path: Path) -> None:
    stale = Fault("content", content=published.old_index)
    with FaultyServer(published.place, {INDEX: (stale,)}) as server:
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
    require_whole(tmp_path, published)


def test_retry_after_is_respected(published: Published, tmp_path: Path) -> None:
    busy = tuple(
        Fault("status", status=429, headers={"Retry-After": after}, times=1)
        for after in ("1", "Wed, 21 Oct 2099 07:28:00 GMT", "-5")
    )
    with FaultyServer(published.place, {INDEX: busy}) as server:
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=RetryPolicy(4, 0.01))
        moments = [request.seconds for request in server.requests if request.path == INDEX]
    assert moments[1] - moments[0] >= 0.99
    # A date is as good as nothing: clocks differ.
    assert moments[3] - moments[1] < 10


@pytest.mark.parametrize("kind", ["gzip", "range"])
def test_harmless_violations_of_the_protocol_are_tolerated(
    kind: Any, published: Published, tmp_path: Path
) -> None:
    faults = {path: (Fault(kind),) for path in (INDEX, MANIFEST, LARGE)}
    with FaultyServer(published.place, faults) as server:
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
    require_whole(tmp_path, published)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault("status", status=404, reason="\x1b[2J" + "no" * 999), "answers 404 [2Jno"),
        (Fault("garbage"), "220 [2J"),
    ],
    ids=["reason", "garbage"],
)
def test_texts_of_a_server_are_shortened_and_printable(
    fault: Fault, said: str, published: Published, tmp_path: Path
) -> None:
    with (
        FaultyServer(published.place, {INDEX: (fault,)}) as server,
        pytest.raises(NotAvailableError) as caught,
    ):
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def interrupted(server: FaultyServer, data_dir: Path) -> None:
    """A pull that ends in the middle of the large file."""
    server.faults = {LARGE: (Fault("close", at=HALF),)}
    with pytest.raises(NotAvailableError, match=CLOSED):
        pull(REFERENCE, [server.url], data_dir=data_dir, retries=PATIENCE)
    server.faults = {}
    server.requests.clear()
    server.sent.clear()


def partial_file(data_dir: Path) -> Path:
    (folder,) = pull_folders(data_dir / FOLDER)
    return folder / "large.bin"


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no_ranges"])
def test_a_pull_goes_on_where_it_was(ranges: bool, published: Published, tmp_path: Path) -> None:
    with FaultyServer(published.place, ranges=ranges) as server:
        interrupted(server, tmp_path)
        told: list[int] = []
        pull(REFERENCE, [server.url], data_dir=tmp_path, on_progress=lambda done, total: told.append(done))
        assert server.ranges_asked(LARGE) == [f"bytes={HALF}-"]
        assert server.sent[LARGE] == (SIZE - HALF if ranges else SIZE)
    assert told[0] >= HALF
    assert (
        told[-1]
        == sum(path.stat().st_size for path in (tmp_path / FOLDER).rglob("*") if path.is_file())
        - (tmp_path / MANIFEST).stat().st_size
    )
    require_whole(tmp_path, published)


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_faults_of_a_server_without_ranges(
    fault: tuple[Fault, str], published: Published, tmp_path: Path
) -> None:
    with FaultyServer(published.place, {LARGE: (fault[0],)}, ranges=False) as server:
        with pytest.raises(NotAvailableError, match=fault[1]):
            pull(REFERENCE, [server.url], data_dir=tmp_path, retries=patience_with(fault[0]))
        require_nothing_visible(tmp_path, published)
        server.faults = {LARGE: (replace(fault[0], times=1),)}
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
    require_whole(tmp_path, published)


def test_a_file_that_is_short_on_a_server_without_ranges(published: Published, tmp_path: Path) -> None:
    short = {LARGE: (Fault("truncate", at=HALF),)}
    with (
        FaultyServer(published.place, short, ranges=False) as server,
        pytest.raises(NotAvailableError, match=rf"large\.bin ends after {HALF} of {SIZE} bytes"),
    ):
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
    assert require_nothing_visible(tmp_path, published)["large.bin"] == HALF


def test_attempts_that_bring_something_are_not_counted(published: Published, tmp_path: Path) -> None:
    drops = tuple(Fault("close", at=at, times=1) for at in range(50_000, SIZE, 50_000))
    assert len(drops) > PATIENCE.attempts
    with FaultyServer(published.place, {LARGE: drops}) as server:
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        assert len(server.ranges_asked(LARGE)) == len(drops) + 1
        assert server.sent[LARGE] == SIZE
    require_whole(tmp_path, published)


def flip(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


@pytest.mark.parametrize(
    ("damage", "asked"),
    [
        (flip, [f"bytes={HALF}-", None]),
        (lambda content: bytes(SIZE), [None]),
        (lambda content: bytes(SIZE + 1), [None]),
    ],
    ids=["flipped", "whole_and_wrong", "too_long"],
)
def test_a_damaged_beginning_is_thrown_away(
    damage: Any, asked: list[str | None], published: Published, tmp_path: Path
) -> None:
    with FaultyServer(published.place) as server:
        interrupted(server, tmp_path)
        path = partial_file(tmp_path)
        path.write_bytes(damage(path.read_bytes()))
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        assert server.ranges_asked(LARGE) == asked
        assert server.sent[LARGE] == SIZE + (SIZE - HALF if len(asked) == 2 else 0)
    require_whole(tmp_path, published)


@pytest.mark.parametrize("kind", ["gzip", "range"])
def test_a_server_with_wrong_ranges_is_asked_for_the_whole_file(
    kind: Any, published: Published, tmp_path: Path
) -> None:
    with FaultyServer(published.place) as server:
        interrupted(server, tmp_path)
        server.faults = {LARGE: (Fault(kind),)}
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        # What is compressed is taken as it is first.
        assert server.ranges_asked(LARGE) == [f"bytes={HALF}-", None, *([None] if kind == "gzip" else [])]
    require_whole(tmp_path, published)


@pytest.mark.parametrize("kind", ["close", "content"])
def test_a_file_is_not_taken_for_compressed_on_its_way(
    kind: Any, published: Published, tmp_path: Path
) -> None:
    # As Apache's AddEncoding says of every file whose name ends with .gz.
    fault = Fault(kind, at=HALF, times=1, headers={"Content-Encoding": "gzip"})
    labelled = Fault("content", headers=fault.headers)
    with FaultyServer(published.place, {LARGE: (fault, labelled)}) as server:
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        asked = server.ranges_asked(LARGE)
    # Of what is compressed a part is not asked to be decoded: the whole comes, and what is here is skipped.
    assert asked == ([None, f"bytes={HALF}-", None] if kind == "close" else [None])
    require_whole(tmp_path, published)


def test_a_server_without_ranges_closes_every_connection_early(published: Published, tmp_path: Path) -> None:
    drops = tuple(Fault("close", at=at, times=1) for at in range(100_000, SIZE, 100_000))
    with FaultyServer(published.place, {LARGE: drops}, ranges=False) as server:
        told: list[int] = []
        pull(
            REFERENCE,
            [server.url],
            data_dir=tmp_path,
            retries=RetryPolicy(2, 0.01),
            on_progress=lambda done, total: told.append(done),
        )
        assert len(server.ranges_asked(LARGE)) == len(drops) + 1
    # Nothing that came was thrown away.
    assert told == sorted(told)
    require_whole(tmp_path, published)


def test_a_server_without_ranges_has_other_bytes_than_the_known_ones(
    published: Published, tmp_path: Path
) -> None:
    with FaultyServer(published.place, ranges=False) as server:
        interrupted(server, tmp_path)
        path = partial_file(tmp_path)
        path.write_bytes(flip(path.read_bytes()))
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        assert server.ranges_asked(LARGE) == [f"bytes={HALF}-", None]
    require_whole(tmp_path, published)


def test_mirrors_are_tried_in_their_order(published: Published, tmp_path: Path) -> None:
    missing = {LARGE: (Fault("status", status=404),)}
    with (
        FaultyServer(published.place, missing) as first,
        FaultyServer(published.place) as second,
        FaultyServer(published.place) as third,
    ):
        mirrors = [first.url, second.url, third.url]
        pull(REFERENCE, mirrors, data_dir=tmp_path, retries=PATIENCE)
        assert second.ranges_asked(LARGE) == [None]
        assert not third.requests


def test_a_slow_file_is_given_up_when_another_one_fails(published: Published, tmp_path: Path) -> None:
    (small,) = (name for name in FILES if name.startswith("raw/"))
    missing = {f"{FOLDER}/{small}": (Fault("status", status=404),)}
    with FaultyServer(published.place, missing, rate=200_000) as server:
        with pytest.raises(NotAvailableError, match="404"):
            pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        assert server.sent[LARGE] < SIZE / 2
    assert require_nothing_visible(tmp_path, published)["large.bin"] < SIZE / 2


# Answers that never end.


@pytest.fixture
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a file for so long, or so long for a small file: the server is given up."""
    impatient = functools.partial(WebPlace, without_content=0.6)
    monkeypatch.setattr("pd1_builder.distribution.web.WebPlace", impatient)
    monkeypatch.setattr("pd1_builder.distribution.places._SECONDS_FOR_SMALL", 0.6)


@pytest.mark.usefixtures("short_wait")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("continue", r"index\.json: .* no content .* 0\.6 seconds"),
        ("headers", r"index\.json: .* no content .* 0\.6 seconds"),
        ("trailers", r"index\.json: .* no content .* 0\.6 seconds"),
        ("drip", r"index\.json did not end within 0\.6 seconds"),
    ],
    ids=["continue", "headers", "trailers", "drip"],
)
def test_an_answer_that_never_ends_is_given_up(
    kind: Any, message: str, published: Published, tmp_path: Path
) -> None:
    with (
        FaultyServer(published.place, {INDEX: (Fault(kind),)}) as server,
        pytest.raises(NotAvailableError, match=message),
    ):
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=replace(PATIENCE, attempts=1))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("short_wait")
def test_a_file_before_endless_trailers_is_complete(published: Published, tmp_path: Path) -> None:
    with FaultyServer(published.place, {LARGE: (Fault("trailers"),)}) as server:
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        assert server.ranges_asked(LARGE) == [None]
    require_whole(tmp_path, published)


@pytest.mark.usefixtures("short_wait")
def test_a_large_file_that_comes_slowly_is_waited_for(published: Published, tmp_path: Path) -> None:
    with FaultyServer(published.place, rate=SIZE / 0.9) as server:
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=replace(PATIENCE, attempts=1))
    require_whole(tmp_path, published)


@pytest.mark.parametrize("path", [LARGE, INDEX], ids=lambda path: path.rpartition("/")[2])
def test_the_body_of_a_redirect_is_not_read(
    path: str, published: Published, good: FaultyServer, tmp_path: Path
) -> None:
    endless = Fault("endless", status=302, headers={"Location": f"{good.url}/{path}"})
    with FaultyServer(published.place, {path: (endless,)}) as server:
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        assert server.sent[path] <= BUFFERS
    require_whole(tmp_path, published)


def test_an_error_does_not_show_the_text_of_an_earlier_one(published: Published, tmp_path: Path) -> None:
    with FaultyServer(published.place, {INDEX: (Fault("garbage"),)}) as server:
        try:
            raise FileNotFoundError("words of somebody else")
        except FileNotFoundError:
            with pytest.raises(NotAvailableError, match=GARBAGE) as caught:
                pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
    assert "somebody else" not in str(caught.value)


def test_the_second_mirror_is_asked_for_the_rest(published: Published, tmp_path: Path) -> None:
    with (
        FaultyServer(published.place, {LARGE: (Fault("close", at=HALF),)}) as first,
        FaultyServer(published.place) as second,
    ):
        pull(REFERENCE, [first.url, second.url], data_dir=tmp_path, retries=PATIENCE)
        assert second.ranges_asked(LARGE) == [f"bytes={HALF}-"]
        assert first.sent[LARGE] + second.sent[LARGE] == SIZE
    require_whole(tmp_path, published)


def test_a_wrong_beginning_from_one_mirror_is_not_kept_for_the_next(
    published: Published, tmp_path: Path
) -> None:
    wrong = Fault("close", at=HALF, content=bytes(SIZE))
    with (
        FaultyServer(published.place, {LARGE: (wrong,)}) as first,
        FaultyServer(published.place) as second,
    ):
        pull(REFERENCE, [first.url, second.url], data_dir=tmp_path, retries=PATIENCE)
        assert second.ranges_asked(LARGE) == [f"bytes={HALF}-", None]
    require_whole(tmp_path, published)


def test_without_a_good_mirror_the_error_names_each_fault(published: Published, tmp_path: Path) -> None:
    with (
        FaultyServer(published.place, {LARGE: (Fault("wrong"),)}) as first,
        FaultyServer(published.place, {LARGE: (Fault("status", status=404),)}) as second,
        pytest.raises(VersionConflictError) as caught,
    ):
        pull(REFERENCE, [first.url, second.url], data_dir=tmp_path, retries=PATIENCE)
    assert f"{first.url}/{LARGE} {OTHER}" in str(caught.value)
    assert f"{second.url}/{LARGE}: the server answers 404" in str(caught.value)
    require_nothing_visible(tmp_path, published)


def test_a_missing_server(published: Published, good: FaultyServer, tmp_path: Path) -> None:
    with FaultyServer(published.place) as server:
        gone = server.url
    with pytest.raises(NotAvailableError, match=rf"{gone}/index\.json: .*refused"):
        pull(REFERENCE, [gone], data_dir=tmp_path, retries=PATIENCE)
    assert not list(tmp_path.iterdir())
    pull(REFERENCE, [gone, good.url], data_dir=tmp_path, retries=PATIENCE)
    require_whole(tmp_path, published)


# Tokens.


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> Iterator[str]:
    """A token for 127.0.0.1, which no log and no file may show."""
    monkeypatch.setenv("HYPERBO_DATA_TOKEN_127_0_0_1", f"{TOKEN}\n")
    caplog.set_level(logging.DEBUG)
    yield TOKEN
    assert "urllib3" in {record.name.partition(".")[0] for record in caplog.get_records("call")}
    assert TOKEN not in "".join(record.getMessage() for record in caplog.get_records("call"))
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]


def authorizations(server: FaultyServer) -> set[str | None]:
    return {request.authorization for request in server.requests}


def test_a_token_is_sent_to_its_host_alone(token: str, published: Published, tmp_path: Path) -> None:
    with (
        FaultyServer(published.place, {LARGE: (Fault("wrong"),)}) as first,
        FaultyServer(published.place) as second,
    ):
        mirror = f"http://localhost:{second.port}"
        pull(REFERENCE, [first.url, mirror], data_dir=tmp_path, retries=PATIENCE)
    assert authorizations(first) == {f"Bearer {token}"}
    assert LARGE in {request.path for request in second.requests}
    assert authorizations(second) == {None}
    require_whole(tmp_path, published)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_token_does_not_follow_to_another_host(
    host: str, token: str, published: Published, tmp_path: Path
) -> None:
    with FaultyServer(published.place) as other, FaultyServer(published.place) as server:
        for path in (INDEX, LARGE):
            elsewhere = f"http://{host}:{other.port}/{path}"
            server.faults[path] = (Fault("status", status=302, headers={"Location": elsewhere}),)
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
    assert authorizations(server) == {f"Bearer {token}"}
    # Another port is another server.
    assert [request.path for request in other.requests] == [INDEX, LARGE]
    assert authorizations(other) == {None}
    require_whole(tmp_path, published)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the certificate of 127.0.0.1, signed by itself, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    path = tmp_path_factory.mktemp("certificate") / "certificate.pem"
    no_password = serialization.NoEncryption()
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, no_password)
    )
    return path


@pytest.fixture
def tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Of servers whose certificate the environment trusts."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.mark.parametrize("path", [INDEX, LARGE], ids=lambda path: path.rpartition("/")[2])
def test_a_redirect_from_https_to_http_is_refused(
    path: str, token: str, tls: ssl.SSLContext, published: Published, tmp_path: Path
) -> None:
    with FaultyServer(published.place) as plain, FaultyServer(published.place, tls=tls) as server:
        onwards = Fault("status", status=302, headers={"Location": f"{plain.url}/{path}"})
        server.faults = {path: (onwards,)}
        with pytest.raises(NotAvailableError, match="without encryption"):
            pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
        assert not plain.requests
        assert authorizations(server) == {f"Bearer {token}"}
        server.faults = {}
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
    require_whole(tmp_path, published)


def test_an_untrusted_certificate_is_refused(
    tls: ssl.SSLContext, published: Published, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    with (
        FaultyServer(published.place, tls=tls) as server,
        pytest.raises(NotAvailableError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
    assert not server.requests


@pytest.mark.usefixtures("short_wait")
def test_an_endless_answer_is_given_up_under_encryption_too(
    tls: ssl.SSLContext, published: Published, tmp_path: Path
) -> None:
    with (
        FaultyServer(published.place, {INDEX: (Fault("continue"),)}, tls=tls) as server,
        pytest.raises(NotAvailableError, match="no content"),
    ):
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=replace(PATIENCE, attempts=1))


def test_a_proxy_of_the_environment_is_asked(
    published: Published, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with FaultyServer(published.place) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with pytest.raises(NotAvailableError, match=r"example\.invalid/data/index\.json: .*answers 404"):
            pull(REFERENCE, ["http://example.invalid/data"], data_dir=tmp_path, retries=PATIENCE)
        assert [request.path for request in proxy.requests] == ["http://example.invalid/data/index.json"]


@pytest.mark.parametrize(
    "name", ["403-index.json", "403-large.bin", "closed-large.bin", "garbage-index.json"]
)
def test_an_error_does_not_show_a_token(name: str, token: str, published: Published, tmp_path: Path) -> None:
    case = CASES[name]
    with (
        FaultyServer(published.place, script(case, published)) as server,
        pytest.raises(case.error, match=case.message) as caught,
    ):
        pull(REFERENCE, [server.url], data_dir=tmp_path, retries=PATIENCE)
    error: BaseException | None = caught.value
    while error is not None:
        assert token not in repr(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("token", ["one\r\nX-Two: 2", "schlüssel", "a\x00b"])
def test_a_malformed_token_is_refused_and_not_shown(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # No system keeps a NUL in its environment; another way to set the variable might.
    monkeypatch.setattr(os, "environ", {"HYPERBO_DATA_TOKEN_DATA_EXAMPLE_ORG": token})
    with pytest.raises(InvalidInputError, match="HYPERBO_DATA_TOKEN_DATA_EXAMPLE_ORG holds") as caught:
        place_at("https://data.example.org/folder")
    assert token not in str(caught.value)


def test_a_token_is_not_sent_without_encryption(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYPERBO_DATA_TOKEN_DATA_EXAMPLE_ORG", TOKEN)
    with pytest.raises(InvalidInputError, match="use https") as caught:
        place_at("http://data.example.org/folder")
    assert TOKEN not in str(caught.value)
    place_at("http://elsewhere.example.org/folder")


# Manifests and indices that mean harm.


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        path.relative_to(folder).as_posix(): (path.lstat().st_size, path.lstat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def hostile_place(folder: Path, content: bytes) -> Path:
    """A place with a manifest that its index vouches for."""
    (folder / FOLDER).mkdir(parents=True)
    (folder / MANIFEST).write_bytes(content)
    entry = Entry(
        dataset="pd1/mini",
        version="1.1.0",
        revision=revision_of(folder / FOLDER),
        parent=None,
        content_hash="0" * 64,
        records={},
        tasks=0,
        size=0,
        published="2026-11-22T10:00:00Z",
    )
    create_entry(writable_place_at(folder), entry, None)
    list_entries(writable_place_at(folder))
    return folder


def fields_of(published: Published) -> dict[str, Any]:
    return json.loads((published.own / MANIFEST).read_bytes())


def refused(content: bytes, tmp_path: Path, error: type[Exception], message: str, **options: Any) -> None:
    """A pull of such a manifest is refused, and not a byte of it is written."""
    source = hostile_place(tmp_path / "place", content)
    # Deep enough that what climbs out of it would still be seen.
    data_dir = tmp_path / "of/this/user/data"
    before = listing(tmp_path)
    with pytest.raises(error, match=message):
        pull(REFERENCE, [source], data_dir=data_dir, retries=PATIENCE, **options)
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    "name",
    [
        "/tmp/absolute",
        "..",
        "raw/../../escape",
        ".",
        "",
        "raw//file",
        "a\\b",
        "C:\\escape",
        "a\0b",
        "a\x1b[2Jb",
        "\ud800",
        "n" * 201,
        "/".join(["n"] * 501),
        "manifest.json",
        "manifest.json/inside",
        "manifest.json.minisig",
        "large.bin",
        "raw",
    ],
    ids=ascii,
)
def test_hostile_names_are_refused(name: str, published: Published, tmp_path: Path) -> None:
    fields = fields_of(published)
    fields["files"].append(fields["files"][0] | {"name": name})
    refused(json.dumps(fields).encode(), tmp_path, VersionConflictError, r"manifest\.json: is damaged")


@pytest.mark.parametrize("size", [-1, 1.5, True, "5", None, 1 << 63, float("nan"), float("inf")], ids=repr)
def test_malformed_sizes_are_refused(size: object, published: Published, tmp_path: Path) -> None:
    fields = fields_of(published)
    fields["files"][0]["size"] = size
    refused(json.dumps(fields).encode(), tmp_path, VersionConflictError, r"manifest\.json: is damaged")


def test_a_version_larger_than_allowed_is_refused(published: Published, tmp_path: Path) -> None:
    fields = fields_of(published)
    fields["files"][0]["size"] = 1 << 62
    refused(json.dumps(fields).encode(), tmp_path, InvalidInputError, "more than [0-9]+; allow more")


def test_a_size_larger_than_any_disk_is_refused_before_the_transfer(
    published: Published, tmp_path: Path
) -> None:
    fields = fields_of(published)
    fields["files"][0]["size"] = 1 << 62
    source = hostile_place(tmp_path / "place", json.dumps(fields).encode())
    with pytest.raises(HyperBOError, match=r"pd1/mini:1\.1\.0: no space is left"):
        pull(REFERENCE, [source], data_dir=tmp_path / "data", largest=1 << 63)
    assert versions(tmp_path / "data") == ()
    (folder,) = pull_folders(tmp_path / "data" / FOLDER)
    assert [path.name for path in folder.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b" " * (20 << 20), "has more than 16777216 bytes"),
        (b'{"format": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is damaged"),
        (b'{"format": 1' + b"0" * 5000 + b"}", "is damaged"),
        (b"[]", "is damaged"),
        (b"\xff\xfe", "is damaged"),
        (b"<html>Please log in</html>", "is damaged"),
        (b'{"format": 2}', "format 2 is not 1"),
    ],
    ids=["20MB", "deep", "long_number", "list", "no_text", "html", "format"],
)
def test_a_malformed_manifest_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    refused(content, tmp_path, VersionConflictError, rf"manifest\.json:? {message}|manifest\.json: {message}")


@pytest.mark.parametrize(
    "change", [{"version": "1.0.0"}, {"dataset": "pd1/other"}, {"counts": {"../a": {}}}], ids=str
)
def test_a_manifest_of_something_else_is_refused(
    change: dict[str, Any], published: Published, tmp_path: Path
) -> None:
    content = json.dumps(fields_of(published) | change).encode()
    refused(content, tmp_path, VersionConflictError, "do not use this place|is damaged")


@pytest.mark.parametrize(
    "content",
    [
        b'{"format": 1, "versions": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"format": 1, "versions": [NaN]}',
        b" " * (17 << 20),
    ],
    ids=["deep", "nan", "17MB"],
)
def test_a_hostile_index_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place/index.json").write_bytes(content)
    before = listing(tmp_path)
    with pytest.raises(VersionConflictError, match=r"index\.json(: is damaged| has more than)"):
        pull(REFERENCE, [tmp_path / "place"], data_dir=tmp_path / "data", retries=PATIENCE)
    assert listing(tmp_path) == before


def at_place(published: Published, folder: Path, name: str) -> Path:
    """A place made of links to the files of another, and the path of one file, which is taken away."""
    for path in published.place.rglob("*"):
        if path.is_file():
            link = folder / path.relative_to(published.place)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.hardlink_to(path)
    (folder / name).unlink()
    return folder / name


@pytest.mark.parametrize("name", [LARGE, MANIFEST, INDEX], ids=lambda name: name.rpartition("/")[2])
@pytest.mark.parametrize("target", ["elsewhere", "itself"])
def test_a_symbolic_link_at_a_place_is_not_followed(
    target: str, name: str, published: Published, tmp_path: Path
) -> None:
    path = at_place(published, tmp_path / "place", name)
    path.symlink_to(published.place / name if target == "elsewhere" else path)
    with pytest.raises(VersionConflictError, match=f"{path} .*symbolic link"):
        pull(REFERENCE, [tmp_path / "place"], data_dir=tmp_path / "data", retries=PATIENCE)
    assert versions(tmp_path / "data") == ()
    pull(REFERENCE, [tmp_path / "place", published.place], data_dir=tmp_path / "data", retries=PATIENCE)
    require_whole(tmp_path / "data", published)


def test_a_pipe_at_a_place_is_not_waited_for(published: Published, tmp_path: Path) -> None:
    path = at_place(published, tmp_path / "place", LARGE)
    os.mkfifo(path)
    with pytest.raises(NotAvailableError, match=r"large\.bin is not a file"):
        pull(REFERENCE, [tmp_path / "place"], data_dir=tmp_path / "data", retries=PATIENCE)


def test_an_address_with_a_password_is_never_shown() -> None:
    for url in ("http://me:hunter2@[bad/data", "http://me:hunter2@example.org/data"):
        with pytest.raises(InvalidInputError) as caught:
            place_at(url)
        assert "hunter2" not in "".join(map(str, (caught.value, caught.value.__cause__)))
