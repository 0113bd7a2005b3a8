from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from hyperbo_flows.cli.main import app
from typer.testing import CliRunner
from version_folders import record, write_version

from pd1_builder.version.pull_record import revision_of


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    for name in ("HYPERBO_DATA_SOURCES", "HYPERBO_DATA_PUBLIC_KEY", "HYPERBO_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)

    def invoke(*arguments: object) -> Result:
        return CliRunner().invoke(app, ["data", *map(str, arguments)])

    return invoke


@pytest.fixture
def own(tmp_path: Path) -> Path:
    write_version(tmp_path / "own", "pd1/mini:1.0.0", {"one": [record("a", "a/0")]})
    return tmp_path / "own"


def test_a_version_is_published_pulled_and_removed(
    run: Callable[..., Result], own: Path, tmp_path: Path
) -> None:
    revision = revision_of(own / "pd1/mini/1.0.0")
    published = run("publish", "pd1/mini:1.0.0", "--to", tmp_path / "place", "--data", own)
    assert published.stdout == f"pd1/mini:1.0.0: published at {tmp_path / 'place'}, revision {revision}\n"
    listed = run("list", "--from", tmp_path / "place").stdout
    assert re.fullmatch(rf"pd1/mini:1\.0\.0  1 records, \d+ bytes, revision {revision}\n", listed)
    there = tmp_path / "there/pd1/mini/1.0.0"
    options = ("--from", tmp_path / "place", "--data", tmp_path / "there")
    pulled = run("pull", "pd1/mini", *options, "--revision", revision)
    assert pulled.stdout == f"pd1/mini:1.0.0: {there}, revision {revision}\n"
    assert re.search(r"pull pd1/mini: 0 of \d+ bytes, 0 s\n", pulled.stderr)
    assert f"revision {revision}\n" in run("info", "pd1/mini:1.0.0", "--data", tmp_path / "there").stdout
    for options, verb in (("--dry-run",), "would remove"), ((), "removed"):
        removed = run("prune", "pd1/mini:1.0.0", *options, "--data", tmp_path / "there")
        assert re.fullmatch(rf"{verb} {there}, \d+ bytes\n", removed.stdout)
    assert not there.exists()
    assert run("prune", "--data", tmp_path / "there").stderr == "nothing to remove\n"


def test_places_come_from_the_environment_too(
    run: Callable[..., Result], own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("publish", "pd1/mini:1.0.0", "--to", tmp_path / "place", "--data", own)
    monkeypatch.setenv("HYPERBO_DATA_SOURCES", f"{tmp_path / 'nothing'} {tmp_path / 'place'}")
    assert run("pull", "pd1/mini", "--data", tmp_path / "there").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("pull", "pd1/mini:1.0.0"), "name one, such as --from https://example.org/data"),
        (("pull", "pd1/mini:1.0.0", "--from", "{tmp}/nowhere"), "nothing is published at {tmp}/nowhere"),
        (("list", "--from", "{tmp}/nowhere"), "nothing is published at {tmp}/nowhere"),
        (("publish", "pd1/mini:1.0.0", "--to", "https://example.org"), "can only be read"),
        (("publish", "pd1/mini:9.0.0", "--to", "{tmp}/place"), "pd1/mini:9.0.0 is not in"),
        (("prune", "pd1/mini"), "name the version"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_an_error_is_one_line_and_exit_code_1(
    arguments: tuple[str, ...], said: str, run: Callable[..., Result], tmp_path: Path
) -> None:
    filled = [argument.format(tmp=tmp_path) for argument in arguments]
    result = run(*filled, "--data", tmp_path / "data")
    assert result.exit_code == 1
    assert said.format(tmp=tmp_path) in result.stderr
    assert result.stderr.count("\n") == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
