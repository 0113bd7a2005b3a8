"""Ask and tell: real databases, several processes, a killed one, and random orders against a simple model."""

import math
import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import optuna
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from optuna.distributions import IntDistribution
from tuning_priors import prior_over

from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import HyperBOError, InvalidInputError, VersionConflictError
from hyperbo.priors.file import save_prior
from hyperbo.tuning.batches import BATCH_STRATEGIES
from hyperbo.tuning.tuner import Tuner

SPACE = SearchSpace((Parameter("rate", 1e-4, 1.0, "log"), Parameter("beta", 0.0, 0.999, "log1m")))
PRIOR = prior_over(SPACE, warping="negative_log")


@pytest.fixture(autouse=True, scope="module")
def _quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def error(hyperparameters):
    """What a training might come to: best at a rate of 0.03."""
    return 0.05 + 0.02 * (math.log10(hyperparameters["rate"]) + 1.5) ** 2 + 0.01 * hyperparameters["beta"]


def test_trials_are_asked_for_told_and_kept(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"
    tuner = Tuner(PRIOR, storage=url)
    assert tuner.best is None
    for _ in range(4):
        trial = tuner.ask()
        assert trial.status == "running"
        told = tuner.tell(trial, error(trial.hyperparameters))
        assert (told.status, told.objective) == ("done", error(trial.hyperparameters))
    best = min(tuner.trials, key=lambda each: each.objective)
    assert tuner.best == best
    again = Tuner(PRIOR, storage=url)
    assert again.trials == tuner.trials
    assert again.ask().number == 4


def test_the_same_seed_gives_the_same_trials_and_the_database_takes_no_part(tmp_path):
    def run(storage, seed=0):
        tuner = Tuner(PRIOR, storage=storage, seed=seed)
        for _ in range(3):
            tuner.tell(trial := tuner.ask(), error(trial.hyperparameters))
        return [each.hyperparameters for each in tuner.trials]

    assert run(None) == run(f"sqlite:///{tmp_path}/runs.db")


def test_infeasible_is_learned_from_and_failed_is_not():
    tuner = Tuner(PRIOR)
    first = tuner.ask()
    assert tuner.tell(first, failed=True).status == "failed"
    # Nothing is known of it: it is tried again.
    again = tuner.ask()
    np.testing.assert_allclose(again.hyperparameters["rate"], first.hyperparameters["rate"], rtol=1e-4)
    assert tuner.tell(again, infeasible=True).status == "infeasible"
    other = tuner.ask()
    assert other.hyperparameters != again.hyperparameters
    assert tuner.best is None
    tuner.tell(other, 0.4)
    assert tuner.best.number == other.number


@pytest.mark.slow
@pytest.mark.parametrize("batch", BATCH_STRATEGIES)
def test_a_batch_is_spread_and_told_in_any_order(batch):
    tuner = Tuner(PRIOR, batch=batch)
    asked = [tuner.ask() for _ in range(4)]
    x = SPACE.to_unit(np.array([list(each.hyperparameters.values()) for each in asked]))
    apart = np.linalg.norm(x[:, None] - x[None], axis=2)[~np.eye(4, dtype=bool)]
    assert apart.min() > 1e-3
    for trial in reversed(asked):
        tuner.tell(trial.number, error(trial.hyperparameters))
    assert [each.status for each in tuner.trials] == ["done"] * 4


def test_a_space_of_ones_own():
    tuner = Tuner(
        PRIOR,
        space={
            "rate": (1e-6, 1e-2),  # beyond the prior's
            "beta": [0, 0.9, 0.99],
            "layers": IntDistribution(1, 4),
            "kind": ["sgd", "adam"],
        },
    )
    for _ in range(3):
        found = tuner.ask()
        assert 1e-6 <= found.hyperparameters["rate"] <= 1e-2
        assert found.hyperparameters["beta"] in (0, 0.9, 0.99)
        assert found.hyperparameters["layers"] in range(1, 5)
        assert found.hyperparameters["kind"] in ("sgd", "adam")
        tuner.tell(found, error(found.hyperparameters))


def test_a_held_value_is_part_of_every_trial():
    assert Tuner(PRIOR, space={"beta": 0}).ask().hyperparameters["beta"] == 0.0


def test_trials_that_were_run_before_are_learned_from():
    tuner, plain = Tuner(PRIOR), Tuner(PRIOR)
    guess = plain.ask().hyperparameters
    added = tuner.add(guess, infeasible=True)
    assert added.status == "infeasible"
    assert tuner.add({"rate": 0.03, "beta": 0.5}, np.float32(0.1)).objective == pytest.approx(0.1)
    assert tuner.best.hyperparameters == {"rate": 0.03, "beta": 0.5}
    assert tuner.ask().hyperparameters["rate"] != pytest.approx(guess["rate"], rel=1e-3)


def test_a_value_a_rounding_outside_of_its_range_counts_as_the_bound():
    tuner = Tuner(PRIOR)
    assert tuner.add({"rate": 1.0000002, "beta": 0.5}, 0.1).hyperparameters == {"rate": 1.0, "beta": 0.5}
    assert tuner.ask().hyperparameters["rate"] <= 1.0


def told(tuner, **result):
    return tuner.tell(tuner.ask(), **result)


@pytest.mark.parametrize(
    ("do", "message"),
    [
        (lambda tuner: tuner.tell(7, 0.1), "run 'tuning': there is no trial 7; its trials are 0 to 0"),
        (lambda tuner: tuner.tell(0, 0.1), "trial 0: .* told before; it stays 0.2"),
        (lambda tuner: tuner.tell(0, infeasible=True), "it stays 0.2"),
        (lambda tuner: told(tuner, objective=math.nan), "trial 1: objective nan; tell it infeasible=True"),
        (lambda tuner: told(tuner, objective=True), "objective True is no number"),
        (lambda tuner: told(tuner, objective=10**400), "is no number"),
        (lambda tuner: tuner.tell("0", 0.1), "'0' is no trial; give what"),
        (lambda tuner: told(tuner, objective=-0.1), "negative_log .* -0.1; tell an error rate"),
        (lambda tuner: told(tuner), "objective = None, infeasible = False, failed = False; tell one"),
        (lambda tuner: tuner.add(0.1, 0.1), "hyperparameters = 0.1; give a dictionary of rate, beta"),
        (lambda tuner: tuner.add({"rate": 0.1}, 0.1), "beta missing; give rate, beta"),
        (lambda tuner: tuner.add({"rate": 0.1, "beta": 0.1, "x": 1}, 0.1), "x unknown; give rate, beta"),
        (
            lambda tuner: tuner.add({"rate": 2.0, "beta": 0.1}, 0.1),
            r"rate = 2.0 is outside of \[0.0001, 1.0\]",
        ),
        (lambda tuner: tuner.add({"rate": 0.1, "beta": 0.1}, math.nan), "objective nan"),
    ],
)
def test_what_cannot_be_told_is_refused_and_changes_nothing(do, message):
    tuner = Tuner(PRIOR)
    tuner.tell(tuner.ask(), 0.2)
    with pytest.raises(InvalidInputError, match=message):
        do(tuner)
    assert [each.objective for each in tuner.trials if each.status == "done"] == [0.2]
    # What is still running can be told.
    for trial in tuner.trials[1:]:
        assert tuner.tell(trial, 0.3).status == "done"


def test_a_result_is_told_once_whoever_tells_it(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"
    tuners = [Tuner(PRIOR, storage=url), Tuner(PRIOR, storage=url)]

    def tell(tuner, number, value):
        try:
            return tuner.tell(number, value).objective
        except InvalidInputError:
            return None

    for _ in range(8):
        number = tuners[0].add({"rate": 0.1, "beta": 0.5}, 0.5).number + 1
        assert tuners[0].ask().number == number
        with ThreadPoolExecutor(2) as pool:
            said = list(pool.map(tell, tuners, [number] * 2, [0.1, 0.2]))
        kept = tuners[0].trials[number].objective
        assert sorted(said, key=str) == sorted([kept, None], key=str)


def test_a_trial_that_was_not_asked_for_to_the_end_cannot_be_told(tmp_path):
    tuner = Tuner(PRIOR)
    broken_off = tuner.study.ask()  # Its parameters were never suggested: the process was killed.
    with pytest.raises(InvalidInputError, match="trial 0: it has no hyperparameters"):
        tuner.tell(broken_off.number, 0.1)
    assert tuner.trials == []


def test_the_priors_own_range_said_once_more_is_the_same_space(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"
    Tuner(PRIOR, storage=url)
    assert Tuner(PRIOR, storage=url, space={"rate": (1e-4, 1), "beta": (np.float32(0), 0.999)}).trials == []


def test_what_another_sampler_pruned_is_not_the_best():
    tuner = Tuner(PRIOR)
    trial = tuner.ask()
    tuner.study.tell(trial.number, state=optuna.trial.TrialState.PRUNED)
    assert tuner.best is None
    assert tuner.trials[0].objective is None


def test_a_trial_of_another_tuner_is_refused():
    tuner, other = Tuner(PRIOR), Tuner(PRIOR, space={"rate": (1e-4, 1e-3)})
    tuner.ask()
    with pytest.raises(InvalidInputError, match=r"trial 0: .* other hyperparameters"):
        tuner.tell(other.ask(), 0.1)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (5, "space = 5; give a dictionary"),
        ({"rates": 0.1}, "no parameter 'rates'; did you mean 'rate'"),
        ({"momentum": (0.0, 0.9)}, "no parameter 'momentum'; did you mean 'beta'"),
        ({"rate": ["small", "big"]}, "parameter 'rate': the choices small, big of a number"),
        ({"rate": (1.0, 0.1)}, "parameter 'rate'"),
        ({"rate": (0.0, 1.0)}, "parameter 'rate': .*log"),
        ({"rate": []}, "parameter 'rate'"),
        ({"rate": (1e-3, math.nan)}, "parameter 'rate': .* not finite"),
        ({"rate": 10**400}, "parameter 'rate'"),
        ({"beta": (0.0, 1.0)}, "log1m .* beta = 1.0"),
    ],
)
def test_a_space_that_cannot_be_is_refused(space, message):
    with pytest.raises(InvalidInputError, match=message):
        Tuner(PRIOR, space=space)


def test_another_prior_or_space_is_refused_where_a_run_is_there(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"
    Tuner(PRIOR, storage=url)
    with pytest.raises(
        VersionConflictError, match=r"'tuning' was begun otherwise: prior is .*use another name"
    ):
        Tuner(prior_over(SPACE, warping="negative_log", seed=1), storage=url)
    with pytest.raises(VersionConflictError, match=r"space.rate.attributes.low is 0.0001, not 0.01"):
        Tuner(PRIOR, storage=url, space={"rate": (1e-2, 1.0)})
    assert Tuner(PRIOR, storage=url, name="other", space={"rate": (1e-2, 1.0)}).trials == []
    optuna.create_study(storage=url, study_name="up", direction="maximize")
    with pytest.raises(InvalidInputError, match="run 'up' is to maximize"):
        Tuner(PRIOR, storage=url, name="up")


def test_databases_that_cannot_be_used_are_said(tmp_path):
    (tmp_path / "broken.db").write_bytes(b"no database" * 100)
    (tmp_path / "folder.db").mkdir()
    for name in ("broken.db", "folder.db", "missing/runs.db"):
        with pytest.raises(InvalidInputError, match=f"{name}: the database cannot be used"):
            Tuner(PRIOR, storage=f"sqlite:///{tmp_path}/{name}")
    with pytest.raises(InvalidInputError, match=r"storage: 'mine\.db' .* write sqlite:///mine\.db"):
        Tuner(PRIOR, storage="mine.db")
    with pytest.raises(InvalidInputError, match=r"storage = .*'sqlite:///.*/runs\.db'"):
        Tuner(PRIOR, storage=tmp_path / "runs.db")
    with pytest.raises(InvalidInputError, match=r"storage = 7; give an address"):
        Tuner(PRIOR, storage=7)
    with pytest.raises(InvalidInputError, match=r"write sqlite:///runs\.db") as caught:
        Tuner(PRIOR, storage="me:secret@host/runs")
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInputError, match=r"postgresql://me:\*\*\*@host/runs") as caught:
        Tuner(PRIOR, storage="postgresql://me:secret@host/runs")
    assert "secret" not in str(caught.value)


def test_a_database_of_another_tool_stays_as_it_is(tmp_path):
    with closing(sqlite3.connect(tmp_path / "runs.db")) as other:
        other.execute("CREATE TABLE experiments (name TEXT)")
    before = (tmp_path / "runs.db").read_bytes()
    with pytest.raises(InvalidInputError, match=r"runs.db: .* another tool, with the tables experiments"):
        Tuner(PRIOR, storage=f"sqlite:///{tmp_path}/runs.db")
    assert (tmp_path / "runs.db").read_bytes() == before


def test_optuna_says_nothing_of_a_tuner_and_speaks_to_its_own_users(tmp_path, caplog):
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.enable_propagation()
    try:
        optuna.logging.set_verbosity(optuna.logging.INFO)
        for _ in range(2):
            Tuner(PRIOR, storage=f"sqlite:///{tmp_path}/runs.db")
        Tuner(PRIOR)
        assert [each for each in caplog.records if each.name.startswith(("optuna", "alembic"))] == []
        optuna.create_study()
        assert "A new study created in memory" in caplog.text
        assert optuna.logging.get_verbosity() == optuna.logging.INFO
    finally:
        optuna.logging.disable_propagation()
        optuna.logging.set_verbosity(verbosity)


def test_a_name_a_folder_and_a_loaded_prior_are_the_same_prior(tmp_path, monkeypatch):
    save_prior(str(tmp_path / "own"), PRIOR)
    monkeypatch.chdir(tmp_path)
    for given in ("own", tmp_path / "own", PRIOR):
        assert Tuner(given).belief.identity == PRIOR.identity
    with pytest.raises(InvalidInputError, match=r"prior = 17; give a name .* 'universal'"):
        Tuner(17)


def test_a_tuner_says_what_it_is_in_three_lines(tmp_path):
    tuner = Tuner(PRIOR, storage=f"sqlite:///{tmp_path}/runs.db", space={"beta": 0.9})
    tuner.add({"rate": 0.1, "beta": 0.9}, 0.5)
    first, second, third = repr(tuner).splitlines()
    assert first.endswith(f"to minimize; run 'tuning' in sqlite:///{tmp_path}/runs.db)")
    assert second == "  rate [0.0001, 1.0], beta 0.9"
    assert third == "  1 trial: 1 done; best 0.5 in trial 0"


def test_what_was_given_up_is_asked_again():
    tuner = Tuner(PRIOR)
    first, second = tuner.ask(), tuner.ask()
    tuner.give_up(first, "the disk is full")
    assert tuner.study.trials[0].user_attrs["hyperbo:reason"] == "the disk is full"
    assert tuner.ask().hyperparameters == first.hyperparameters
    assert [each.status for each in tuner.trials] == ["failed", "running", "running"]
    assert tuner.tell(second, 0.5).status == "done"


def test_a_prior_of_error_rates_takes_an_accuracy_to_be_maximised(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"
    lower = Tuner(PRIOR, storage=url, name="error")
    higher = Tuner(PRIOR, storage=url, name="accuracy", direction="maximize")
    for rate, accuracy in ((0.1, 0.75), (0.01, 0.875), (0.5, 0.5)):
        lower.add({"rate": rate, "beta": 0.5}, 1.0 - accuracy)
        higher.add({"rate": rate, "beta": 0.5}, accuracy)
    assert higher.best.objective == 0.875
    assert higher.best.number == lower.best.number == 1
    # The same is proposed: only the sign and the unit of what is told differ.
    assert higher.ask().hyperparameters == pytest.approx(lower.ask().hyperparameters)
    with pytest.raises(InvalidInputError, match=r"93\.0; tell a rate of at most 1: divide a percentage"):
        higher.tell(3, 93)
    with pytest.raises(InvalidInputError, match="run 'error' is to minimize"):
        Tuner(PRIOR, storage=url, name="error", direction="maximize")
    with pytest.raises(InvalidInputError, match=r"direction = 'maximize'.*tell the objective's negative"):
        Tuner(prior_over(SPACE, warping="negative"), direction="maximize")
    with pytest.raises(InvalidInputError, match="direction = 'up'; give 'minimize' or 'maximize'"):
        Tuner(PRIOR, direction="up")


def test_a_locked_database_loses_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db?timeout=0.2"
    tuner = Tuner(PRIOR, storage=url)
    trial = tuner.ask()
    holder = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(InvalidInputError, match=r"the database cannot be used: .*locked"):
        tuner.tell(trial, 0.2)
    holder.execute("ROLLBACK")
    holder.close()
    assert tuner.tell(trial, 0.2).objective == 0.2


WORKER = """
import sys, math
from pathlib import Path
import optuna
from hyperbo.priors.file import read_prior
from hyperbo.tuning.tuner import Tuner

optuna.logging.set_verbosity(optuna.logging.ERROR)
prior = read_prior(Path(sys.argv[1]))
print("loaded", flush=True)
sys.stdin.readline()
tuner = Tuner(prior, storage=sys.argv[2])
print("ready", flush=True)
for _ in range(int(sys.argv[3])):
    trial = tuner.ask()
    print(trial.number, flush=True)
    tuner.tell(trial, 0.05 + abs(math.log10(trial.hyperparameters["rate"]) + 1.5) / 100)
"""


def start(folder, url, trials):
    save_prior(folder / "prior", PRIOR)
    command = [sys.executable, "-c", WORKER, str(folder / "prior"), url, str(trials)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )


@pytest.mark.slow
def test_processes_share_a_run_and_a_killed_one_loses_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"
    # Both make the database, at about the same moment.
    workers = [start(tmp_path, url, 1000), start(tmp_path, url, 5)]
    for worker in workers:
        assert worker.stdout.readline() == "loaded\n"
    for worker in workers:
        worker.stdin.write("\n")
        worker.stdin.flush()
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    doomed, steady = workers
    for _ in range(3):
        doomed.stdout.readline()
    os.kill(doomed.pid, signal.SIGKILL)
    assert steady.wait(120) == 0
    doomed.wait(10)
    tuner = Tuner(PRIOR, storage=url)
    trials = tuner.trials
    assert [each.number for each in trials] == sorted({each.number for each in trials})
    # No two of them, asked for at the same time, tried the same.
    points = [tuple(each.hyperparameters.values()) for each in trials]
    assert len(set(points)) == len(points)
    done = [each for each in trials if each.status == "done"]
    running = [each for each in trials if each.status == "running"]
    assert len(done) >= 7
    assert len(running) <= 1
    # What the killed one had asked for may still be told.
    for each in running:
        assert tuner.tell(each, 0.5).objective == 0.5
    for worker in workers:
        worker.stdin.close()
        worker.stdout.close()


HOW = ["done", "infeasible", "failed"]


class AskAndTell(RuleBasedStateMachine):
    """Any order of asking, telling, adding and reopening, beside a dictionary of what should be there."""

    def __init__(self):
        super().__init__()
        self.storage = optuna.storages.InMemoryStorage()
        self.tuner = Tuner(PRIOR, storage=self.storage, batch="thompson_sampling")
        self.expected = {}

    @rule()
    def ask(self):
        trial = self.tuner.ask()
        assert trial.number == len(self.expected)
        self.expected[trial.number] = ("running", None, trial.hyperparameters)

    @precondition(lambda self: self.expected)
    @rule(
        choice=st.integers(0, 99),
        value=st.floats(0.0, 1e6),
        how=st.sampled_from(HOW),
    )
    def tell(self, choice, value, how):
        number = choice % len(self.expected)
        result = {"objective": value} if how == "done" else {how: True}
        before, _, hyperparameters = self.expected[number]
        if before != "running":
            with pytest.raises(InvalidInputError, match="told before"):
                self.tuner.tell(number, **result)
            return
        self.tuner.tell(number, **result)
        self.expected[number] = (how, value if how == "done" else None, hyperparameters)

    @precondition(lambda self: self.expected)
    @rule(value=st.sampled_from([math.nan, math.inf, -1.0, "0.1", None]))
    def tell_nonsense(self, value):
        with pytest.raises(HyperBOError):
            self.tuner.tell(0, value)

    @rule(rate=st.floats(1e-4, 1.0), value=st.floats(0.0, 1.0))
    def add(self, rate, value):
        trial = self.tuner.add({"rate": rate, "beta": 0.5}, value)
        assert trial.number == len(self.expected)
        self.expected[trial.number] = ("done", value, {"rate": rate, "beta": 0.5})

    @rule()
    def reopen(self):
        self.tuner = Tuner(PRIOR, storage=self.storage, batch="thompson_sampling")

    @invariant()
    def all_is_there(self):
        seen = {
            each.number: (each.status, each.objective, each.hyperparameters) for each in self.tuner.trials
        }
        assert seen == self.expected
        values = [value for _, value, _ in self.expected.values() if value is not None]
        best = self.tuner.best
        assert (best.objective if best else None) == min(values, default=None)


TestAskAndTell = AskAndTell.TestCase
TestAskAndTell.settings = settings(max_examples=15, stateful_step_count=15)
