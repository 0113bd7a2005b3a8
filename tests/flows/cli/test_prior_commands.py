from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hyperbo_flows.cli.main import app
from prior_files import write_prior
from typer.testing import CliRunner, Result

from hyperbo.priors.catalog import add_prior, hold_back, promote
from hyperbo.priors.names import read_line

LINE = "own/h-nll"


@pytest.fixture(scope="module")
def priors(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    """Two priors in folders; read them only."""
    root = tmp_path_factory.mktemp("priors")
    return tuple(write_prior(root / str(seed), seed) for seed in range(2))


@pytest.fixture
def catalog(tmp_path: Path, priors: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A line with a first prior, a second that was promoted, and one decision against the first."""
    folder = tmp_path / "catalog"
    one, two = (add_prior(folder, LINE, prior) for prior in priors)
    promote(folder, LINE, one, "The first.", {})
    promote(folder, LINE, two, "Lower regret [bold].", {"difference": -0.5})
    hold_back(folder, LINE, one, "No better.", {"difference": 0.5})
    monkeypatch.setenv("HYPERBO_PRIOR_DIR", str(folder))
    return folder


def hyperbo(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["prior", *map(str, arguments)])


def said(*arguments: object) -> str:
    result = hyperbo(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_lines_are_listed_with_what_is_in_service_since_when_and_why(
    catalog: Path, priors: tuple[Path, ...]
) -> None:
    add_prior(catalog, "other/line", priors[0])
    line = read_line(catalog, LINE)
    listed = said("list").splitlines()
    assert listed[:3] == [
        "other/line  no prior in service",
        f"{LINE}  {line.current}  pd1/mini:1.0.0  since {line.history[1].at}",
        "    Lower regret [bold].",
    ]
    assert listed[3] == "shipped:"
    assert listed[4].startswith("pd1-mini/h-ekl  ")


def test_the_folder_in_service_is_printed_for_scripts(catalog: Path) -> None:
    history = read_line(catalog, LINE).history
    assert said("current", LINE) == f"{catalog / LINE / history[1].prior}\n"
    assert said("current", f"{LINE}@{history[0].prior}") == f"{catalog / LINE / history[0].prior}\n"


def test_the_history_is_a_table_of_decisions(catalog: Path) -> None:
    shown = said("history", LINE)
    history = read_line(catalog, LINE).history
    rows = [line for line in shown.splitlines() if any(each.prior in line for each in history)][:3]
    for row, each, action in zip(rows, history, ("promoted", "promoted", "held back"), strict=True):
        assert all(text in row for text in (each.at.removesuffix("+00:00"), each.prior, action))
    assert "[bold]" in shown
    assert shown.endswith(f"in service: {history[1].prior}\n")


def test_a_roll_back_is_done_recorded_and_done_once_more_at_most(catalog: Path) -> None:
    one = read_line(catalog, LINE).history[0].prior
    assert said("rollback", LINE, "--reason", "Bad trials.") == f"{LINE}: {one} is in service again\n"
    found = read_line(catalog, LINE)
    assert (found.current, found.history[-1].reason) == (one, "Bad trials.")
    assert f"since {found.history[-1].at}" in said("list")
    again = hyperbo("rollback", LINE)
    assert (again.exit_code, again.stdout) == (1, "")
    assert one in again.stderr
    assert read_line(catalog, LINE) == found


DESCRIBED = """\
method: H-NLL
search_space:
  a: 0 to 1, linear
  b: 0 to 1, linear
output_warping: negative_log, of an objective to minimize
architecture:
  hidden: 3, 4
  signal_variance: 1
  lengthscale: 1
  noise_variance: 0.01
  kernel: matern52
  mean: linear
training:
  steps: 10
  learning_rate: 0.001
  group_dro_step: none
dataset: pd1/mini:1.0.0
manifest_hash: abc
preparation: paper
training_tasks: t0, t1
held_out: d2
seed: 3
losses: 2 first, 0.333333 last
    from 2 to 0.333333 in its last 50%: it was still falling
largest_jitter: 1e-10
seconds: 0.5
code_version: 0.1.0+0123456789ab
objective_range: none
"""


def test_a_prior_is_described_for_a_reader(catalog: Path, priors: tuple[Path, ...]) -> None:
    assert said("info", priors[0]) == f"folder: {priors[0]}\n{DESCRIBED}"
    one, two, held = read_line(catalog, LINE).history
    assert said("info", LINE) == (
        f"folder: {catalog / LINE / two.prior}\npromoted: {two.at}, Lower regret [bold].\n"
        f"  evidence:\n    difference: -0.5\n{DESCRIBED}"
    )
    assert said("info", f"{LINE}@{one.prior}") == (
        f"folder: {catalog / LINE / one.prior}\npromoted: {one.at}, The first.\n"
        f"held back: {held.at}, No better.\n  evidence:\n    difference: 0.5\n{DESCRIBED}"
    )


def test_what_a_prior_has_none_of_is_said_so(tmp_path: Path, priors: tuple[Path, ...]) -> None:
    shutil.copytree(priors[0], tmp_path / "prior")
    path = tmp_path / "prior" / "prior.json"
    fields: dict[str, Any] = json.loads(path.read_text())
    fields |= {"held_out": "", "losses": [], "training_tasks": []}
    fields |= {"training": {"warm": True, "schedule": {"steps": [1, 0.5]}}}
    path.write_text(json.dumps(fields))
    shown = said("info", tmp_path / "prior").splitlines()
    assert {"held_out: none", "losses: none", "training_tasks: none", "  warm: yes"} <= set(shown)
    assert shown[shown.index("  schedule:") + 1] == "    steps: 1, 0.5"


def test_a_folder_goes_before_a_line_of_the_same_name(
    catalog: Path, priors: tuple[Path, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(priors[0], tmp_path / LINE)
    assert said("info", LINE) == f"folder: {LINE}\n{DESCRIBED}"


@pytest.mark.parametrize("command", ["list", "current", "history", "rollback", "info"])
def test_every_command_takes_the_catalogue(catalog: Path, tmp_path: Path, command: str) -> None:
    arguments = [command] if command == "list" else [command, LINE]
    elsewhere = hyperbo(*arguments, "--catalog", tmp_path / "empty")
    if command == "list":
        assert (elsewhere.exit_code, elsewhere.stderr) == (0, f"no prior in {tmp_path / 'empty'}\n")
        assert elsewhere.stdout.startswith("shipped:\n")
    else:
        assert (elsewhere.exit_code, elsewhere.stdout) == (1, "")
        assert LINE in elsewhere.stderr
    assert hyperbo(*arguments).exit_code == 0
    assert not (tmp_path / "empty").exists()


def test_a_line_without_decisions(catalog: Path, priors: tuple[Path, ...]) -> None:
    prior_id = add_prior(catalog, "other/line", priors[0])
    shown = hyperbo("history", "other/line")
    assert (shown.stdout, shown.stderr) == ("in service: none\n", "other/line: no decision yet\n")
    none = hyperbo("current", "other/line")
    assert none.exit_code == 1
    assert none.stderr.endswith(f"{prior_id}\n")


def test_a_damaged_line_hides_no_other(catalog: Path, priors: tuple[Path, ...]) -> None:
    promote(catalog, "other/line", add_prior(catalog, "other/line", priors[0]), "The first.", {})
    path = catalog / LINE / "current.json"
    path.write_text("{")
    listed = hyperbo("list")
    assert listed.exit_code == 1
    assert listed.stdout.startswith("other/line  ")
    assert LINE not in listed.stdout
    assert listed.stderr.startswith(f"hyperbo: {path}: damaged: ")
    assert listed.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["no/where", "./no/where"])
def test_what_is_neither_folder_nor_line_says_so(catalog: Path, name: str) -> None:
    for command in ("info", "current"):
        assert "own/h-nll" in hyperbo(command, name).stderr
