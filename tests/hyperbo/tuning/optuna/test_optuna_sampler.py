"""The sampler in studies of Optuna: what the prior is asked, and when."""

import logging
import pickle

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import PartialFixedSampler, RandomSampler
from optuna.trial import TrialState, create_trial
from tuning_priors import prior_over

from hyperbo.bayesopt.history import History
from hyperbo.data.search_space import Parameter, SearchSpace
from hyperbo.errors import InvalidInputError
from hyperbo.tuning.optuna.sampler import HyperBOSampler
from hyperbo.tuning.optuna.study_history import FAILED, TOLD, history_of
from hyperbo.tuning.proposals import propose
from hyperbo.tuning.region import Region

RATE = Parameter("rate", 1e-4, 1.0, "log")
PRIOR = prior_over(SearchSpace((RATE, Parameter("units", 0.0, 100.0))), warping="negative_log")
SPACE = PRIOR.description.search_space
BETA = prior_over(SearchSpace((Parameter("beta", 0.0, 0.99, "log1m"),)), warping="negative_log")
NONE = np.zeros((0, 2))


@pytest.fixture(autouse=True)
def _quiet(caplog):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    optuna.logging.enable_propagation()


def study_of(**settings):
    return optuna.create_study(sampler=HyperBOSampler(PRIOR, **{"seed": 0} | settings))


def suggest(trial):
    return trial.suggest_float("rate", 1e-4, 1.0, log=True), trial.suggest_float("units", 0.0, 100.0)


def told(values, **changed):
    rows = [{"rate": rate, "units": units} for rate, units, _ in values]
    distributions = {"rate": FloatDistribution(1e-4, 1.0, log=True), "units": FloatDistribution(0.0, 100.0)}
    return [
        create_trial(params=row, distributions=distributions, value=value, **changed)
        for row, (_, _, value) in zip(rows, values, strict=True)
    ]


def test_the_first_trial_is_the_priors_best_guess():
    study = study_of()
    found = suggest(study.ask())
    nothing = History(NONE, np.zeros(0), NONE)
    random = np.random.default_rng(1)
    expected = propose(PRIOR.gp, Region.of(SPACE, {}), nothing, random, prior_weight=1.0)
    # Chosen one by one, but around the point that is best for both.
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_later_trials_are_conditioned_on_those_before():
    study = study_of()
    values = [(0.01, 30.0, 0.2), (0.5, 80.0, 0.9), (1e-3, 10.0, 0.4)]
    study.add_trials(told(values))
    found = study.ask(
        {"rate": FloatDistribution(1e-4, 1.0, log=True), "units": FloatDistribution(0.0, 100.0)}
    )
    x = SPACE.to_unit(np.array([each[:2] for each in values]))
    y = -np.log(np.array([each[2] for each in values]) + 1e-10)
    history, random = History(x, y, NONE), np.random.default_rng(1)
    expected = propose(PRIOR.gp, Region.of(SPACE, {}), history, random, prior_weight=0.9)
    np.testing.assert_allclose([found.params["rate"], found.params["units"]], expected, rtol=1e-3)


def asked(study):
    """What the sampler conditions on."""
    sampler, new = study.sampler, study._storage.get_trial(study.ask()._trial_id)
    is_whole = None if sampler._given is None else sampler._is_whole
    return history_of(study, new, SPACE, sampler._warping, sampler._guessed(), is_whole)


def test_failed_trials_that_were_told_are_infeasible_and_running_ones_pending():
    study = study_of()
    distributions = {"rate": FloatDistribution(1e-4, 1.0, log=True), "units": FloatDistribution(0.0, 100.0)}
    running = study.ask(distributions)
    study.add_trials(told([(0.01, 30.0, 0.2)]))
    # Told, told to be nobody's fault, and left by a process that was killed.
    for told_so, failed in ((True, False), (True, True), (False, False)):
        study.add_trial(
            create_trial(
                state=TrialState.FAIL,
                params={"rate": 0.1, "units": 1.0},
                distributions=distributions,
                user_attrs={FAILED: failed},
                system_attrs={TOLD: told_so},
            )
        )
    history = asked(study)
    np.testing.assert_allclose(history.x, SPACE.to_unit(np.array([[0.01, 30.0], [0.1, 1.0]])), atol=1e-12)
    np.testing.assert_allclose(history.y, [-np.log(0.2 + 1e-10), np.nan])
    raw = np.array([[running.params["rate"], running.params["units"]]])
    np.testing.assert_allclose(history.pending, SPACE.to_unit(raw), atol=1e-9)


def test_nan_and_infinite_objectives_are_infeasible():
    study = study_of()

    def objective(trial):
        suggest(trial)
        return [0.5, float("nan"), float("inf")][trial.number]

    study.optimize(objective, n_trials=3)
    assert np.isfinite(asked(study).y).tolist() == [True, False, False]


def test_parameters_the_prior_does_not_know_are_sampled_without_it(caplog):
    study = study_of(independent_sampler=RandomSampler(seed=3))
    for _ in range(3):
        trial = study.ask()
        suggest(trial)
        layers, kind = trial.suggest_int("layers", 1, 8), trial.suggest_categorical("kind", ["sgd", "adam"])
        assert 1 <= layers <= 8
        assert kind in ("sgd", "adam")
        study.tell(trial, 0.1 * layers)
    assert not caplog.records


def test_a_study_of_other_parameters_is_told_that_the_prior_says_nothing(caplog):
    study = study_of()
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            study.tell(trial := study.ask(), trial.suggest_float("lr", 0.1, 1.0))
    assert [each.message for each in caplog.records] == [
        "the prior says nothing of lr: its parameters are rate, units"
    ]


def test_a_conditional_parameter_is_chosen_given_the_others():
    study = study_of()
    for number in range(4):
        trial = study.ask()
        trial.suggest_float("rate", 1e-4, 1.0, log=True)
        if number % 2:
            assert 0.0 <= trial.suggest_float("units", 0.0, 100.0) <= 100.0
        study.tell(trial, 0.1 * (number + 1))
    history = asked(study)
    # Where a trial lacks it, it is taken to be at the prior's best guess.
    guess = SPACE.to_unit(np.array([[0.01, study.sampler._guessed()["units"]]]))[0, 1]
    np.testing.assert_allclose(history.x[[0, 2], 1], guess, atol=1e-12)


def test_a_fixed_value_is_held_wherever_a_trial_lacks_the_parameter():
    study = study_of(fixed={"units": 25})
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, trial.suggest_float("rate", 1e-4, 1.0, log=True))
    np.testing.assert_allclose(asked(study).x[:, 1], 0.25, atol=1e-12)


def test_enqueued_and_partially_fixed_trials_keep_their_values():
    study = study_of()
    study.tell(trial := study.ask(), sum(suggest(trial)) / 1000)
    study.enqueue_trial({"units": 12.5})
    assert suggest(study.ask())[1] == 12.5
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        study.sampler = PartialFixedSampler({"rate": 0.25}, study.sampler)
    assert suggest(study.ask())[0] == 0.25


def test_ranges_choices_and_steps_of_the_study_are_kept():
    study = study_of()
    for number in range(5):
        trial = study.ask()
        assert trial.suggest_categorical("rate", [0.01, 1]) in (0.01, 1)
        assert trial.suggest_int("units", 8, 64, step=8) % 8 == 0
        study.tell(trial, 0.1 * (number + 1))


def test_a_seed_gives_the_same_trials():
    def run(seed):
        study = study_of(seed=seed, independent_sampler=RandomSampler(seed=0), batch="thompson_sampling")
        study.optimize(lambda trial: 0.01 + suggest(trial)[0], n_trials=3)
        return [each.params for each in study.trials]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_threads_share_a_study():
    study = study_of()
    study.optimize(lambda trial: 0.01 + suggest(trial)[0], n_trials=6, n_jobs=2)
    assert [each.state for each in study.trials] == [TrialState.COMPLETE] * 6
    assert len({tuple(each.params.values()) for each in study.trials}) == 6


def test_pruned_trials_count_with_their_last_value_and_are_not_tried_again():
    study = study_of()
    for number in range(4):
        trial = study.ask()
        suggest(trial)
        trial.report(0.5 + 0.1 * number, 1)
        study.tell(trial, state=TrialState.PRUNED)
    np.testing.assert_allclose(asked(study).y, -np.log(np.array([0.5, 0.6, 0.7, 0.8]) + 1e-10))
    assert len({tuple(each.params.values()) for each in study.trials[:4]}) == 4


def test_parameters_without_the_prior_are_drawn_anew_by_every_process():
    def layers(samplers):
        study = optuna.create_study()
        for sampler in samplers:
            study.sampler = sampler
            trial = study.ask()
            suggest(trial)
            study.tell(trial, 0.01 * trial.suggest_int("layers", 1, 1000))
        return [each.params["layers"] for each in study.trials]

    one = HyperBOSampler(PRIOR, seed=0)
    reopened = layers(HyperBOSampler(PRIOR, seed=0) for _ in range(4))
    assert layers([one] * 4) == reopened
    assert len(set(reopened)) == 4


def test_a_trial_that_did_not_suggest_what_was_proposed_lies_at_the_fixed_value():
    study = study_of(fixed={"units": 25})
    study.add_trials(told([(0.01, 30.0, 0.2)]))
    trial = study.ask()
    study.tell(trial, trial.suggest_float("rate", 1e-4, 1.0, log=True))
    np.testing.assert_allclose(asked(study).x[:, 1], [0.3, 0.25], atol=1e-12)


def test_a_trial_without_a_place_is_left_out_with_a_warning(caplog):
    study = optuna.create_study(sampler=HyperBOSampler(BETA, seed=0))
    study.enqueue_trial({"beta": 1.0})
    for value in (0.5, 0.2):
        trial = study.ask()
        trial.suggest_float("beta", 0.0, 1.0)
        study.tell(trial, value)
        study.sampler = HyperBOSampler(BETA, seed=0, search_space={"beta": FloatDistribution(0.0, 0.99)})
    assert "trial 0 is left out: log1m scaling is not defined at beta = 1.0" in caplog.text


@pytest.mark.slow
def test_a_sampler_can_be_pickled_for_other_processes():
    sampler = pickle.loads(pickle.dumps(HyperBOSampler(PRIOR, seed=0)))
    assert optuna.create_study(sampler=sampler).ask({"rate": FloatDistribution(1e-4, 1.0)}).params


def test_a_database_keeps_pending_trials_for_other_processes(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(storage=url, study_name="s", sampler=HyperBOSampler(PRIOR, seed=0))
    study.tell(trial := study.ask(), sum(suggest(trial)) / 1000)
    first = study.ask()
    first.suggest_float("rate", 1e-4, 1.0, log=True)  # the other is chosen, and not yet suggested
    other = optuna.load_study(storage=url, study_name="s", sampler=HyperBOSampler(PRIOR, seed=0))
    pending = asked(other).pending
    raw = np.array([[first.params["rate"], first.relative_params["units"]]])
    np.testing.assert_allclose(pending, SPACE.to_unit(raw), atol=1e-9)


@pytest.mark.parametrize("directions", [["maximize"], ["minimize"] * 2])
def test_other_objectives_are_refused(directions):
    study = optuna.create_study(directions=directions, sampler=HyperBOSampler(PRIOR))
    with pytest.raises(InvalidInputError, match="objective"):
        suggest(study.ask())


def test_an_objective_without_a_place_under_the_warping_is_named():
    study = study_of()
    study.add_trials(told([(0.01, 30.0, -0.5)]))
    with pytest.raises(InvalidInputError, match=r"trial 0: .* negative_log .* -0.5; tell an error"):
        suggest(study.ask())


def test_a_range_without_a_place_under_the_scaling_is_named():
    with pytest.raises(InvalidInputError, match=r"log scaling .* rate = 0.0"):
        study_of().ask({"rate": FloatDistribution(0.0, 1.0)})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch": "all"}, "unknown batch strategy 'all'; use one of kriging_believer"),
        ({"fixed": {"depth": 1}}, "no parameter depth"),
        ({"seed": -1}, "seed = -1; give one from 0"),
        ({"search_space": {"rate": FloatDistribution(0.0, 1.0)}}, "rate = 0.0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        HyperBOSampler(PRIOR, **settings)


def test_distributions_of_words_stay_without_the_prior():
    study = study_of()
    trial = study.ask({"rate": CategoricalDistribution(["low", "high"]), "units": IntDistribution(0, 100)})
    assert trial.params["rate"] in ("low", "high")
