"""`Tuner.optimize`: totals, threads, diverged trials, errors, and an interrupt by a real signal."""

import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tuning_priors import UNIT, prior_over

from hyperbo.data import Choice, Condition, Parameter, SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.priors.file import save_prior
from hyperbo.tuning import Infeasible
from hyperbo.tuning.tuner import Tuner

PRIOR = prior_over(UNIT)


def bowl(x, y):
    return (x - 0.3) ** 2 + y


def statuses(tuner):
    return [each.status for each in tuner.trials]


def test_trials_are_a_total_and_a_second_call_runs_what_is_missing(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/runs.db"
    calls = []

    def train(x, y):
        calls.append((x, y))
        return bowl(x, y)

    assert Tuner(PRIOR, storage=url).optimize(train, trials=2).objective == min(bowl(*each) for each in calls)
    tuner = Tuner(PRIOR, storage=url)
    best = tuner.optimize(train, trials=3)
    assert tuner.optimize(train, trials=3) == best == tuner.best
    assert [tuple(each.hyperparameters.values()) for each in tuner.trials] == calls
    assert len(calls) == 3
    # Without a terminal: one line for each call, and no log of Optuna.
    lines = [each for each in capsys.readouterr().err.splitlines() if "compiling" not in each]
    # While the first call compiles for longer than ten seconds, another line comes.
    lines = [each for each in lines if not each.startswith("0 of 2")]
    assert [each.split(",")[0] for each in lines] == ["2 of 2 trials", "3 of 3 trials", "3 of 3 trials"]
    assert lines[-1].endswith(f"best {best.objective:.5g} in trial {best.number}")


def test_nan_infinity_and_infeasible_are_avoided_and_count():
    def train(x, y):
        if len(tuner.trials) == 3:
            raise Infeasible("out of memory")
        return [math.nan, -math.inf, None, 0.5][len(tuner.trials) - 1]

    tuner = Tuner(PRIOR)
    assert tuner.optimize(train, trials=4).objective == 0.5
    assert statuses(tuner) == ["infeasible"] * 3 + ["done"]
    reasons = [each.user_attrs.get("hyperbo:reason") for each in tuner.study.trials]
    assert reasons == ["objective nan", "objective -inf", "out of memory", None]


def test_as_many_trials_as_jobs_run_at_the_same_time():
    together = threading.Barrier(3, timeout=60)

    def train(x, y):
        together.wait()  # one alone, or two, would wait for ever
        return bowl(x, y)

    tuner = Tuner(PRIOR)
    tuner.optimize(train, trials=6, jobs=3)
    assert statuses(tuner) == ["done"] * 6


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_function_is_raised_and_nothing_is_lost(jobs):
    failed = threading.Event()

    def train(x, y):
        if len(tuner.trials) == 1 and not failed.is_set():
            failed.set()
            raise ZeroDivisionError("by zero")
        failed.wait(60)
        return 0.5

    tuner = Tuner(PRIOR)
    with pytest.raises(ZeroDivisionError, match="by zero") as caught:
        tuner.optimize(train, trials=3, jobs=jobs)
    assert "the next call of optimize tries it again" in caught.value.__notes__[0]
    # What ran beside it is told before the error is raised.
    assert statuses(tuner) == ["failed", "done"][:jobs]
    assert tuner.study.trials[0].user_attrs["hyperbo:reason"] == "ZeroDivisionError: by zero"
    tuner.optimize(lambda x, y: 0.25, trials=3)
    assert sum(status == "done" for status in statuses(tuner)) == 3
    again = tuner.trials[jobs]
    assert again.hyperparameters == tuner.trials[0].hyperparameters


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_function_that_exits_ends_the_run_in_order(jobs):
    tuner = Tuner(PRIOR)
    with pytest.raises(SystemExit):
        tuner.optimize(lambda x, y: sys.exit("no data"), trials=2, jobs=jobs)
    assert set(statuses(tuner)) == {"failed"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trials": 0}, "optimize: trials = 0; give a whole number from 1"),
        ({"jobs": 0}, "optimize: jobs = 0"),
        ({"function": lambda x: 0.1}, "unexpected keyword argument 'y'"),
        ({"function": lambda trial: 0.1}, r"cannot be called as <lambda>\(x=..., y=...\)"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_runs(given, message):
    tuner = Tuner(PRIOR)
    with pytest.raises(InvalidInputError, match=message):
        tuner.optimize(**{"function": bowl, "trials": 1} | given)
    assert tuner.trials == []


@pytest.mark.parametrize("value", [None, "0.5", {"accuracy": 93}, True])
def test_what_is_no_number_fails_the_trial(value):
    tuner = Tuner(PRIOR)
    with pytest.raises(InvalidInputError, match=r"trial 0: the objective .* is no number; give one number"):
        tuner.optimize(lambda x, y: value, trials=1)
    assert statuses(tuner) == ["failed"]


@pytest.mark.slow
def test_an_inactive_parameter_is_left_out_and_needs_a_default():
    kind = Choice("kind", ("sgd", "adam"))
    space = SearchSpace((kind, Parameter("momentum", 0.0, 1.0, condition=Condition("kind", ("sgd",)))))
    tuner = Tuner(prior_over(space), space={"kind": "adam"})
    with pytest.raises(InvalidInputError, match="missing a required argument: 'momentum'"):
        tuner.optimize(lambda kind, momentum: 0.5, trials=1)
    tuner.optimize(lambda kind, momentum=None: 0.5 if momentum is None else 1.0, trials=1)
    assert tuner.best.objective == 0.5


SCRIPT = """
import signal, sys, time
from pathlib import Path
from hyperbo.tuning.tuner import Tuner

# A shell's background process ignores the signal, and so would this one.
signal.signal(signal.SIGINT, signal.default_int_handler)
folder, jobs = Path(sys.argv[1]), int(sys.argv[2])
tuner = Tuner(folder / "prior", storage=f"sqlite:///{folder}/runs.db")

def train(x, y):
    if sum(each.status == "done" for each in tuner.trials) == 1:
        print("hangs", flush=True)
        time.sleep(600)
    return 0.5

tuner.optimize(train, trials=1)
tuner.optimize(train, trials=4, jobs=jobs)
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_keeps_what_has_ended_and_tries_again_what_ran(tmp_path, jobs):
    save_prior(tmp_path / "prior", PRIOR)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path), str(jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )
    for _ in range(jobs):
        assert process.stdout.readline() == "hangs\n"
    process.send_signal(signal.SIGINT)
    # The threads of the function still sleep: they are not waited for.
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    ran = ", ".join(map(str, range(1, 1 + jobs)))
    assert f"interrupted: what has ended is kept; trials {ran} were running, and are tried again" in errors
    assert errors.rstrip().endswith("KeyboardInterrupt")
    tuner = Tuner(PRIOR, storage=f"sqlite:///{tmp_path}/runs.db")
    assert statuses(tuner) == ["done", *["failed"] * jobs]
    left = [each.hyperparameters for each in tuner.trials[1:]]
    tuner.optimize(bowl, trials=1 + jobs)
    assert [each.hyperparameters for each in tuner.trials[1 + jobs :]] == left
