from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hyperbo_flows.cli.main import app
from hyperbo_flows.command.trial_folder import Claim, CommandResult, number_in, write_result
from tuning_priors import prior_over
from typer.testing import CliRunner

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.priors.file import read_prior, save_prior
from hyperbo.tuning.trial import TuningTrial
from hyperbo.tuning.tuner import Tuner

SPACE = SearchSpace((Parameter("rate", 1e-4, 1.0, "log"), Parameter("momentum", 0.0, 0.99)))
# What every program of a test begins with: its trial, its hyperparameters, and one way to wait.
BEGIN = """
import os, sys, time
from pathlib import Path
trial, folder = int(os.environ["HYPERBO_TRIAL"]), Path(sys.argv[1])
rate, momentum = map(float, sys.argv[2:4])
def wait(condition):
    while not condition():
        time.sleep(0.02)
"""
# A grandchild that ignores requests to terminate, and holds a lock for as long as it lives.
GRANDCHILD = """
import fcntl, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
file.write("locked")
file.flush()
time.sleep(100)
"""
HANG = f"""
import subprocess
lock = folder / "lock"
subprocess.Popen([sys.executable, "-c", {GRANDCHILD!r}, str(lock)])
wait(lambda: lock.exists() and lock.read_text())
(folder / "hangs").touch()
time.sleep(100)
"""


class Workplace:
    """A folder with a prior, a program that stands for a training, and the run that tunes it."""

    def __init__(self, folder: Path, prior: Path) -> None:
        self.folder, self.prior = folder, prior
        self.out, self.runs = folder / "out", folder / "out" / "tuning"

    def program(self, text: str) -> None:
        (self.folder / "train.py").write_text(BEGIN + text)

    def arguments(self, *options: str) -> list[str]:
        program = f"{sys.executable} {self.folder}/train.py {{trial_folder}} {{rate}} {{momentum}}"
        given = ["--prior", self.prior, "--out", self.out, "--command", program]
        return ["tune", *map(str, given), *options]

    def tune(self, *options: str) -> Result:
        return CliRunner().invoke(app, self.arguments(*options))

    def start(self, *options: str) -> subprocess.Popen[str]:
        code = "import sys; from hyperbo_flows.cli.main import app; sys.argv[0] = 'hyperbo'; app()"
        return subprocess.Popen(
            [sys.executable, "-c", code, *self.arguments(*options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
        )

    def tuner(self) -> Tuner:
        return Tuner(read_prior(self.prior), storage=f"sqlite:///{self.out / 'runs.db'}")

    @property
    def trials(self) -> list[TuningTrial]:
        return self.tuner().trials

    @property
    def statuses(self) -> list[str]:
        return [trial.status for trial in self.trials]


@pytest.fixture(scope="module")
def prior(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prior")
    save_prior(folder, prior_over(SPACE, warping="negative_log"))
    return folder


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command sets for its own process is taken back."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")


@pytest.fixture
def workplace(tmp_path: Path, prior: Path) -> Workplace:
    return Workplace(tmp_path, prior)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def is_free(lock: Path) -> bool:
    """Whether the process that locked a file is gone, be it as a zombie."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.slow
def test_trials_run_at_the_same_time_with_the_values_of_the_tuner(workplace: Workplace) -> None:
    # Each of the two waits for the other: one after the other they would never end.
    workplace.program(
        "(folder / 'here').touch()\n"
        "other = folder.parent / f'{trial ^ 1:04d}' / 'here'\n"
        "wait(other.exists)\n"
        "print('epochs: 3')\n"
        "print(f'error={rate / 2}')\n"
    )
    result = workplace.tune("--trials", "4", "--jobs", "2", "--timeout", "60")
    assert result.exit_code == 0, result.output
    trials = workplace.trials
    assert [trial.number for trial in trials] == [0, 1, 2, 3]
    # Passed on as text and back without a loss.
    assert [trial.objective for trial in trials] == [trial.hyperparameters["rate"] / 2 for trial in trials]
    best = min(trials, key=lambda trial: trial.objective or 0.0)
    lines = result.output.splitlines()
    assert f"{workplace.runs}: best objective {best.objective:.6g} in trial {best.number}" in lines
    assert f"  rate = {best.hyperparameters['rate']}" in lines
    again = subprocess.run(
        lines[-1].removeprefix("its command: "), shell=True, capture_output=True, text=True, check=True,
        env=os.environ | {"HYPERBO_TRIAL": str(best.number)}, timeout=60,
    )  # fmt: skip
    assert again.stdout.splitlines()[-1] == f"error={best.objective}"


def test_what_makes_a_trial_infeasible(workplace: Workplace) -> None:
    workplace.program(
        "if trial == 1: print('no memory', file=sys.stderr); sys.exit(3)\n"
        "if trial == 2: print('nan'); sys.exit()\n"
        "if trial == 3: print('loss: -inf'); sys.exit()\n"
        "if trial == 4: os.abort()\n"
        "if trial == 5:\n" + "".join(f"    {line}\n" for line in HANG.splitlines()) + "print(0.5)\n"
    )
    # Long enough for two interpreters to start, and then some.
    result = workplace.tune("--trials", "6", "--timeout", "8")
    assert result.exit_code == 0, result.output
    assert workplace.statuses == ["done", *["infeasible"] * 5]
    reasons = [
        json.loads((workplace.runs / f"{number:04d}" / "outcome.json").read_text())["outcome"]["reason"]
        for number in range(6)
    ]
    assert reasons[:4] == ["", "exit code 3", "objective nan", "objective -inf"]
    assert reasons[4:] == ["ended by signal 6 (Aborted)", "not done after 8 s"]
    assert f"trial 1: infeasible, exit code 3 (see {workplace.runs}/0001/stderr.txt)" in result.output
    assert (workplace.runs / "0001" / "stderr.txt").read_text() == "no memory\n"
    assert is_free(workplace.runs / "0005" / "lock")


def test_a_number_that_is_not_finite_is_a_sign_that_the_command_works(workplace: Workplace) -> None:
    workplace.program("if trial: sys.exit(1)\nprint('nan')\n")
    result = workplace.tune("--trials", "2")
    assert result.exit_code == 0, result.output
    assert workplace.statuses == ["infeasible", "infeasible"]
    assert result.output.splitlines()[-1] == f"{workplace.runs}: every trial was infeasible"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_run_that_is_broken_off_goes_on(workplace: Workplace, number: int, code: int) -> None:
    workplace.program(
        "if trial >= 2 and not (folder.parents[2] / 'go').exists():\n"
        + "".join(f"    {line}\n" for line in HANG.splitlines())
        + "print(rate)\n"
    )
    process = workplace.start("--trials", "5", "--jobs", "2")
    hanging = [workplace.runs / f"{trial:04d}" for trial in (2, 3)]
    until(lambda: process.poll() is not None or all((each / "hangs").exists() for each in hanging), "hang")
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code, output
    # No training is left behind, with whatever it started.
    until(lambda: all(is_free(each / "lock") for each in hanging), "the trainings outlive the run")
    before = workplace.trials
    told = "running" if number == signal.SIGKILL else "failed"
    assert [trial.status for trial in before] == ["done", "done", told, told]
    assert ("start the same command again" in output) == (number == signal.SIGINT)

    (workplace.folder / "go").touch()
    result = workplace.tune("--trials", "5", "--jobs", "2")
    assert result.exit_code == 0, result.output
    assert "2 of 5 trials are done or running" in result.output
    trials = workplace.trials
    assert [trial.number for trial in trials] == list(range(7))
    assert [trial.status for trial in trials] == ["done", "done", "failed", "failed", *["done"] * 3]
    assert trials[:2] == before[:2]
    # What was broken off is tried again, before anything new.
    assert [trial.hyperparameters for trial in trials[4:6]] == [trial.hyperparameters for trial in before[2:]]
    # And again there is nothing to do.
    assert workplace.tune("--trials", "5", "--jobs", "2").exit_code == 0
    assert len(workplace.trials) == 7


def test_trials_of_other_processes_are_left_alone(workplace: Workplace) -> None:
    workplace.program("print(rate)\n")
    workplace.out.mkdir()
    tuner = workplace.tuner()
    of_nobody, claimed, ended = (tuner.ask() for _ in range(3))
    claim = Claim.new(workplace.runs / "0001")
    # One that had ended when its process was killed, before anything was told.
    left = Claim.new(workplace.runs / "0002")
    write_result(workplace.runs / "0002", CommandResult("done", 0.25, "", 3.0, True))
    left._file.close()
    result = workplace.tune("--trials", "4")
    claim.release(workplace.runs / "0001")
    assert result.exit_code == 0, result.output
    assert "2 trials of other processes left alone" in result.output
    assert "trial 2 had ended: done" in result.output
    assert workplace.statuses == ["running", "running", "done", "done"]
    assert tuner.trials[ended.number].objective == 0.25
    assert {of_nobody.number, claimed.number} == {0, 1}


def test_no_number_stops_at_once_and_what_was_tried_is_tried_again(workplace: Workplace) -> None:
    workplace.program("print(0.5)\nprint('finished')\n")
    result = workplace.tune("--trials", "4")
    assert result.exit_code == 1
    said = f"there is no number in the last line of {workplace.runs}/0000/stdout.txt: 'finished'"
    assert f"hyperbo: trial 0: the command ended with 0, but {said}" in result.output
    assert workplace.statuses == ["failed"]
    workplace.program("print('finished')\nprint(0.5)\n")
    assert workplace.tune("--trials", "1").exit_code == 0
    failed, done = workplace.trials
    assert (failed.status, done.status) == ("failed", "done")
    assert failed.hyperparameters == done.hyperparameters


def test_an_objective_that_the_prior_has_no_place_for_stops_at_once(workplace: Workplace) -> None:
    workplace.program("print(-0.5)\n")
    result = workplace.tune("--trials", "4")
    assert result.exit_code == 1
    assert "negative_log is not defined at the objective -0.5" in result.output
    assert workplace.statuses == ["failed"]


def test_three_trials_without_a_number_at_the_start_stop(workplace: Workplace) -> None:
    workplace.program("sys.exit('cannot import jaks')\n")
    result = workplace.tune("--trials", "9")
    assert result.exit_code == 1
    assert "none of the first 3 trials gave a number; the last: exit code 1" in result.output
    assert result.output.endswith("stderr.txt:\n    cannot import jaks\n")
    # Nothing is said of the hyperparameters: they are not to blame.
    assert workplace.statuses == ["failed"] * 3


def test_they_are_infeasible_where_one_that_still_runs_gives_a_number(workplace: Workplace) -> None:
    workplace.program(
        "(folder / 'here').touch()\n"
        "if trial: sys.exit(1)\n"
        "wait(lambda: len(list(folder.parent.glob('*/here'))) == 4)\n"
        "time.sleep(0.5)\n"
        "print(0.5)\n"
    )
    result = workplace.tune("--trials", "4", "--jobs", "2", "--timeout", "60")
    assert result.exit_code == 0, result.output
    assert workplace.statuses == ["done", *["infeasible"] * 3]


def test_the_objective_may_be_in_a_file(workplace: Workplace) -> None:
    workplace.program("if not trial: (folder / 'result.json').write_text('0.125\\n')\nprint('finished')\n")
    result = workplace.tune("--trials", "2", "--objective-file", "result.json")
    assert result.exit_code == 1
    assert [trial.objective for trial in workplace.trials] == [0.125, None]
    assert f"trial 1: the command ended with 0, but wrote no {workplace.runs}/0001/result.json" in (
        result.output
    )


@pytest.mark.slow
def test_other_parameters_and_those_that_are_held(
    workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    workplace.program("print(float(sys.argv[4]) / 1000 + rate)\n")
    command = f"{sys.executable} {workplace.folder}/train.py {{trial_folder}} {{rate}} 0.9 {{width}}"
    space = ["--parameter", "rate=1e-3:1e-2", "--parameter", "width=8:64:int", "--parameter", "momentum=0.9"]
    result = workplace.tune(*space, "--command", command, "--trials", "2")
    assert result.exit_code == 0, result.output
    # The universal prior stands for what the prior does not know.
    assert not any("sampled without the prior" in each.message for each in caplog.records)
    conflict = workplace.tune("--trials", "2")
    assert conflict.exit_code == 1
    assert "begun otherwise: extended_by is unknown; space.width is unknown; space.momentum." in (
        conflict.output
    )
    other = workplace.tune(*space, "--command", f"{command} 1", "--trials", "2")
    assert other.exit_code == 0
    assert f"the earlier trials are of another command, {command};" in other.output


@pytest.mark.slow
def test_the_universal_prior_tunes_any_space(workplace: Workplace) -> None:
    workplace.program("print(f'accuracy={momentum - abs(rate - 0.01)}')\n")
    space = ["--parameter", "rate=1e-4:1", "--parameter", "momentum=1:4:int"]
    result = workplace.tune("--prior", "universal", *space, "--direction", "maximize", "--trials", "3")
    assert result.exit_code == 0, result.output
    assert "universal: the objective is maximised" in result.output
    tuner = Tuner(
        "universal",
        space={"rate": (1e-4, 1.0), "momentum": (1, 4)},
        storage=f"sqlite:///{workplace.out / 'runs.db'}",
        direction="maximize",
    )
    # The same run as in Python: the wide range is searched in its logarithm.
    assert [trial.status for trial in tuner.trials] == ["done"] * 3
    assert tuner.best is not None
    assert f"best objective {tuner.best.objective:.6g} in" in result.output


def test_an_accuracy_is_not_minimised_without_a_word(
    workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    workplace.program("print(f'val_acc: {1 - rate / 2}')\n")
    assert workplace.tune("--trials", "1").exit_code == 0
    (said,) = [each.getMessage() for each in caplog.records if each.name == "hyperbo.tuning.doubts"]
    assert said == (
        "trial 0: val_acc is to be maximised by its name, but the objective is minimised; "
        "for an accuracy, give --direction maximize"
    )
    caplog.clear()
    result = workplace.tune("--trials", "1", "--direction", "maximize", "--name", "other")
    assert result.exit_code == 0, result.output
    assert "the objective is maximised" in result.output
    assert not any(each.name == "hyperbo.tuning.doubts" for each in caplog.records)


def test_a_folder_of_another_run_is_not_written_into(workplace: Workplace) -> None:
    workplace.program("print(rate)\n")
    (workplace.runs / "0000").mkdir(parents=True)
    result = workplace.tune("--trials", "1")
    assert result.exit_code == 1
    assert f"hyperbo: {workplace.runs}/0000: cannot be made: File exists; choose another" in result.output


def test_a_program_that_cannot_be_started_stops_at_once(workplace: Workplace) -> None:
    result = workplace.tune("--command", "{trial_folder}/train {rate} {momentum}", "--trials", "4")
    assert result.exit_code == 1
    assert " cannot be started: No such file or directory" in result.output
    assert workplace.statuses == ["failed"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--command", "true {rat} {momentum}"], "command: {rat} is no parameter"),
        (["--command", "pyton3 {rate} {momentum}"], "command: there is no program 'pyton3'"),
        (["--batch", "random"], "random'"),
        (["--name", "../other"], "name: '../other'"),
        (["--objective-file", "/tmp/error"], "objective file: /tmp/error is outside of the trial's"),
        (["--prior", "nowhere/none"], "no prior 'nowhere/none'"),
        (
            ["--space", "none.toml"],
            "echo 'parameters = [{name = \"rate\", lower = 0.001, upper = 0.1}]' > none.toml",
        ),
        (["--storage", "runs.db"], "storage: 'runs.db' is no address of a database; write sqlite:///runs.db"),
        (["--parameter", "rate=slow,fast"], "parameter 'rate': the choices slow, fast of a number"),
        (["--parameter", "momentun=0.5"], "the prior has no parameter 'momentun'; did you mean 'momentum'"),
        (
            ["--prior", "universal"],
            "--prior universal: no parameter to tune; give each, such as --parameter lr=",
        ),
        (["--prior", "universal", "--parameter", "lr=1e-5:1"], "no direction; give --direction minimize"),
    ],
)
def test_mistakes_are_told_before_anything_is_begun(
    workplace: Workplace, options: list[str], message: str
) -> None:
    workplace.program("print(rate)\n")
    result = workplace.tune(*options)
    assert result.exit_code == 1
    assert message in result.output
    assert not workplace.out.exists()


def test_the_command_has_the_environment_of_the_user(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENBLAS_NUM_THREADS", "JAX_PLATFORMS"):
        monkeypatch.delenv(name, raising=False)
    workplace.program("print(0.5 if {'OPENBLAS_NUM_THREADS', 'JAX_PLATFORMS'} & set(os.environ) else 0.25)\n")
    assert workplace.tune("--trials", "1").exit_code == 0
    assert os.environ["JAX_PLATFORMS"] == "cpu"
    assert [trial.objective for trial in workplace.trials] == [0.25]


def test_without_optuna_the_command_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "from typer.testing import CliRunner\n"
        "from hyperbo_flows.cli.main import app\n"
        "print(CliRunner().invoke(app, ['tune', '--prior', 'p', '--command', 'c']).output)"
    )
    run: dict[str, Any] = {"capture_output": True, "text": True, "check": True, "timeout": 100}
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    said = subprocess.run([sys.executable, "-c", code], env=environment, **run).stdout
    assert said.startswith("hyperbo: tuning needs the extra optuna")


def test_the_example_prints_its_error(capfd: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[3] / "docs" / "examples" / "train_digits.py"
    values = ["--learning-rate", "0.05", "--power", "1", "--momentum", "0.9", "--decay", "0.9"]
    subprocess.run([sys.executable, str(example), *values], check=True, timeout=100)
    error = number_in(capfd.readouterr().out.splitlines()[-1])
    assert error is not None
    assert 0.0 < error < 0.05
