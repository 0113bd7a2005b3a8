from __future__ import annotations

import math
import re
from pathlib import Path

import optuna
import pytest
from hyperbo_pipelines.trials.description import TrialsDescription
from hyperbo_pipelines.trials.parse import parse_trial
from hyperbo_pipelines.trials.rows import find_trial_files, read_rows
from hyperbo_pipelines.trials.space_file import read_space_file

from hyperbo.data.trial import Trial, validate

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CARD = ROOT / "pd1_builder" / "trials" / "README.md"


def blocks_of_the_card(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", CARD.read_text(encoding="utf-8"), re.DOTALL)


def read(paths: list[Path], description: TrialsDescription) -> list[Trial]:
    """All trials; any reject fails."""
    trials = []
    for file in find_trial_files(paths, description):
        for place, row in read_rows(file.path, description.columns):
            assert isinstance(row, dict)
            if not (description.status and description.status.skips(row)):
                trials.append(parse_trial(row, file, place, description, "test"))
                validate(trials[-1], description.space)
    return trials


def test_the_first_example_of_the_card_reads_its_table(tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(blocks_of_the_card("toml")[0])
    (tmp_path / "runs.csv").write_text(blocks_of_the_card("csv")[0])
    trials = read([tmp_path / "runs.csv"], read_space_file(tmp_path / "space.toml"))
    assert [(trial.trial_id, trial.task_dataset, trial.status) for trial in trials] == [
        ("resnet-cifar/r1", "cifar", "done"),
        ("resnet-cifar/r2", "cifar", "diverged"),
        ("mlp-cifar/r1", "cifar", "done"),
    ]
    assert trials[0].hyperparameters == {"learning_rate": 0.1, "momentum": 0.9}
    assert trials[0].metrics == {"valid/loss": 0.41, "test/loss": 0.43, "seconds": 812.0}


def test_what_the_card_shows_of_an_owners_words_is_read(tmp_path: Path) -> None:
    first, types, about, _ = blocks_of_the_card("toml")
    # Fields of the file as a whole come before the first table.
    (tmp_path / "space.toml").write_text(first + types + about)
    found = read_space_file(tmp_path / "space.toml").about
    assert found.description.startswith("Learning rates and depths")
    assert found.licence == "https://creativecommons.org/licenses/by/4.0/"
    assert found.citation.endswith("year = {2026}\n}\n")


def study() -> optuna.Study:
    """Trials in each of Optuna's states."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("learning_rate", 1e-5, 1.0, log=True)
        layers = trial.suggest_int("layers", 1, 5)
        trial.set_user_attr("seconds", 1.5)
        if trial.number == 2:
            trial.report(0.75, step=1)
            raise optuna.TrialPruned
        return math.nan if trial.number == 3 else rate + layers

    study.optimize(objective, n_trials=6)
    study.ask()
    study.enqueue_trial({"learning_rate": 0.1, "layers": 2})
    return study


@pytest.mark.parametrize("name", ["resnet.csv", "resnet.csv.gz", "resnet.parquet", "resnet.indexed.csv"])
def test_an_export_of_an_optuna_study_is_read_by_the_example_of_the_card(name: str, tmp_path: Path) -> None:
    (tmp_path / "space.toml").write_text(blocks_of_the_card("toml")[3])
    finished = study()
    path = tmp_path / name
    if path.suffix == ".parquet":
        finished.trials_dataframe().to_parquet(path)
    else:
        finished.trials_dataframe().to_csv(path, index="indexed" in name)
    trials = read([path], read_space_file(tmp_path / "space.toml"))
    states = [trial.state.name for trial in finished.trials]
    assert states == ["COMPLETE", "COMPLETE", "PRUNED", "FAIL", "COMPLETE", "COMPLETE", "RUNNING", "WAITING"]
    assert len(trials) == 6
    meaning = {"COMPLETE": "done", "FAIL": "diverged", "PRUNED": "infeasible"}
    for trial, origin in zip(trials, finished.trials, strict=False):
        assert trial.trial_id == f"{trial.task}/{origin.number}"
        assert trial.task == name.split(".csv")[0].removesuffix(".parquet")
        assert trial.status == meaning[origin.state.name]
        assert trial.hyperparameters == origin.params
        assert repr(trial.metrics["value"]) == repr(math.nan if origin.value is None else origin.value)
