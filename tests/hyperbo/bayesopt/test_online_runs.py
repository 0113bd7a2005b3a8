"""Runs in lock-step: the same trace after a kill, few compiled programs, failures, and the journal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from online_cases import DATA, METHODS, Bowl

from hyperbo.bayesopt.journal import Journal, OnlineTrial, RunName
from hyperbo.bayesopt.online import OnlineRun, tune
from hyperbo.bayesopt.online_methods import SingleTask
from hyperbo.bayesopt.propose import Maximisation, _program
from hyperbo.errors import InvalidInputError, VersionConflictError
from hyperbo.methods import STBOH
from hyperbo.pretrain import Job

IDENTITY = {"preset": "none", "methods": ["STBOH", "Rand"]}
TRIALS = 12
# Settings that no other test compiles a program for.
OWN = SingleTask(STBOH(iterations=20), Maximisation(random_starts=8, observed_starts=2, iterations=20))


def bowls() -> dict[str, Bowl]:
    return {"left": Bowl((0.2, 0.3)), "right": Bowl((0.8, 0.6))}


def runs_of(label: str, method: Any) -> list[OnlineRun]:
    (fitted,) = method.fit([Job(DATA, 0)])
    return [OnlineRun(RunName(label, task, 0), method, fitted) for task in ("left", "right")]


@pytest.fixture(scope="module")
def runs() -> list[OnlineRun]:
    return [*runs_of("STBOH", OWN), *runs_of("Rand", METHODS["Rand"])]


@pytest.fixture(scope="module")
def whole(runs: list[OnlineRun], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[OnlineTrial]]:
    """A folder with the journal of runs that nothing broke off, and its trials."""
    folder = tmp_path_factory.mktemp("whole")
    journal = Journal(folder, IDENTITY)
    assert tune(runs, bowls(), journal, TRIALS) == {}
    return folder, journal.trials


def of_run(trials: list[OnlineTrial], name: RunName) -> list[OnlineTrial]:
    return [trial for trial in trials if trial.run == name]


@pytest.mark.slow
def test_every_run_has_its_trials_and_what_the_objective_made_of_them(
    runs: list[OnlineRun], whole: tuple[Path, list[OnlineTrial]]
) -> None:
    folder, trials = whole
    objectives = bowls()
    for run in runs:
        own = of_run(trials, run.name)
        assert [trial.iteration for trial in own] == list(range(1, TRIALS + 1))
        expected = objectives[run.name.task].run_trials(np.array([trial.point for trial in own]), [], 0)
        found = [np.nan if trial.objective is None else trial.objective for trial in own]
        np.testing.assert_array_equal(found, expected.objective)
    assert any(trial.objective is None for trial in trials)
    assert trials[0].row == {"run": "STBOH/0"}
    assert Journal(folder, IDENTITY).trials == trials


@pytest.mark.slow
def test_a_model_finds_better_points_than_chance(
    runs: list[OnlineRun], whole: tuple[Path, list[OnlineTrial]]
) -> None:
    best = {
        run.name: min(t.objective for t in of_run(whole[1], run.name) if t.objective is not None)
        for run in runs
    }
    for task in ("left", "right"):
        assert best[RunName("STBOH", task, 0)] < best[RunName("Rand", task, 0)]


def test_one_program_serves_each_capacity(whole: tuple[Path, list[OnlineTrial]]) -> None:
    # Twelve trials are chosen after 0 .. 11 observations: at most 10, then at most 25.
    assert _program(OWN)._cache_size() == 2  # type: ignore[attr-defined]


class _KilledError(Exception):
    pass


@pytest.mark.parametrize("torn", [False, True], ids=["between lines", "within a line"])
def test_a_killed_run_goes_on_with_the_same_trace(
    runs: list[OnlineRun], whole: tuple[Path, list[OnlineTrial]], tmp_path: Path, torn: bool
) -> None:
    def until_killed(trials: Any) -> None:
        # The second task of the fourth iteration is never tried.
        if trials[0].iteration == 4 and trials[0].run.task == "left":
            raise _KilledError

    with pytest.raises(_KilledError):
        tune(runs, bowls(), Journal(tmp_path, IDENTITY), TRIALS, until_killed)
    file = tmp_path / "trials.jsonl"
    if torn:
        file.write_bytes(file.read_bytes()[:-20])
    objectives = bowls()
    journal = Journal(tmp_path, IDENTITY)
    assert len(journal.trials) == 3 * 4 + 2 - torn
    tune(runs, objectives, journal, TRIALS)
    for run in runs:
        assert of_run(journal.trials, run.name) == of_run(whole[1], run.name)
    again = sum(len(names) for bowl in objectives.values() for names, _ in bowl.calls)
    assert again == 4 * TRIALS - (3 * 4 + 2 - torn)


def test_more_trials_go_on_from_fewer_and_a_finished_journal_is_left_alone(
    runs: list[OnlineRun], whole: tuple[Path, list[OnlineTrial]], tmp_path: Path
) -> None:
    journal = Journal(tmp_path, IDENTITY)
    tune(runs, bowls(), journal, 2)
    tune(runs, bowls(), journal, 3)
    assert journal.trials == whole[1][: 3 * 4]
    objectives = bowls()
    tune(runs, objectives, journal, 3)
    assert all(not bowl.calls for bowl in objectives.values())


def test_a_run_that_fails_ends_and_the_others_go_on(
    runs: list[OnlineRun], whole: tuple[Path, list[OnlineTrial]], tmp_path: Path
) -> None:
    broken = replace(runs[0], fitted=jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), runs[0].fitted))
    journal = Journal(tmp_path, IDENTITY)
    failures = tune([broken, *runs[1:]], bowls(), journal, 3)
    assert list(failures) == [broken.name]
    assert "in iteration 1" in failures[broken.name]
    assert of_run(journal.trials, broken.name) == []
    for run in runs[1:]:
        assert of_run(journal.trials, run.name) == of_run(whole[1], run.name)[:3]


def test_runs_that_cannot_be_told_apart_or_have_no_objective_are_refused(
    runs: list[OnlineRun], tmp_path: Path
) -> None:
    journal = Journal(tmp_path, IDENTITY)
    with pytest.raises(InvalidInputError, match="two runs have the same"):
        tune([runs[0], runs[0]], bowls(), journal, 1)
    with pytest.raises(InvalidInputError, match="no task right"):
        tune(runs, {"left": Bowl((0.0, 0.0))}, journal, 1)


def test_a_journal_of_other_settings_is_not_gone_on_with(tmp_path: Path) -> None:
    Journal(tmp_path, IDENTITY)
    with pytest.raises(VersionConflictError, match="preset is 'none', not 'mini'; use another folder"):
        Journal(tmp_path, IDENTITY | {"preset": "mini"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{}", r"trials\.jsonl:2: this line is no trial"),
        ("nonsense", r"trials\.jsonl:2: this line is no trial"),
        (None, r"trials\.jsonl:2: iteration 1 of Rand/left/0 stands where 2 is expected"),
    ],
)
def test_a_damaged_journal_is_named_with_its_line(tmp_path: Path, line: str | None, message: str) -> None:
    journal = Journal(tmp_path, IDENTITY)
    journal.append([OnlineTrial(RunName("Rand", "left", 0), 1, (0.5, 0.5), None, {})])
    file = tmp_path / "trials.jsonl"
    first = file.read_text()
    file.write_text(first + (first if line is None else f"{line}\n"))
    with pytest.raises(InvalidInputError, match=message):
        Journal(tmp_path, IDENTITY)


def test_a_point_survives_the_journal_bit_for_bit(tmp_path: Path) -> None:
    point = tuple(np.random.default_rng(0).random(4).tolist())
    trial = OnlineTrial(RunName("STBOH", "left", 3), 1, point, 0.1 + 0.2, {"curve": [1.0, None]})
    Journal(tmp_path, IDENTITY).append([trial])
    assert Journal(tmp_path, IDENTITY).trials == [trial]
