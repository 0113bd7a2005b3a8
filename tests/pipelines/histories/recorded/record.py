"""Writes the recorded histories beside it, each with its own tool: python record.py TOOL FOLDER.

Run it in an environment that has the tool. The README says which versions the recorded files were made with.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

TASKS = ("digits", "wine")


def loss(task: str, values: dict[str, Any]) -> float:
    """A number for each setting; it stands in for a training."""
    bend = {"sgd": 0.3, "adam": 0.1, "rmsprop": 0.2}[values["optimizer"]]
    far = math.log10(values["learning_rate"]) + (2.0 if task == "digits" else 3.0)
    extra = 0.1 * abs(values.get("momentum", 0.9) - 0.9)
    return bend + 0.1 * far**2 + 0.05 * abs(values["layers"] - 2) + extra + 8.0 / values["width"]


def smac(folder: Path) -> None:
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
    from smac import HyperparameterOptimizationFacade, Scenario

    for task in TASKS:
        space = ConfigurationSpace(seed=0)
        optimizer = Categorical("optimizer", ["sgd", "adam", "rmsprop"])
        momentum = Float("momentum", (0.0, 0.99), default=0.9)
        space.add(
            Float("learning_rate", (1e-5, 1.0), default=1e-3, log=True),
            Integer("width", (8, 512), default=64, log=True),
            Integer("layers", (1, 5), default=2),
            optimizer,
            momentum,
            EqualsCondition(momentum, optimizer, "sgd"),
        )

        def train(config: Any, seed: int = 0, task: str = task) -> float:
            values = dict(config)
            if values["layers"] == 4:
                raise RuntimeError("out of memory")
            return loss(task, values)

        scenario = Scenario(
            space, name=task, n_trials=8, output_directory=folder, seed=3, deterministic=True, crash_cost=9.0
        )
        initial = HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=6)
        HyperparameterOptimizationFacade(scenario, train, initial_design=initial, overwrite=True).optimize()


def keras_tuner(folder: Path) -> None:
    os.environ["KERAS_BACKEND"] = "numpy"
    import keras_tuner as kt

    for task in TASKS:

        class Tuner(kt.RandomSearch):
            def run_trial(self, trial: Any, *args: Any, task: str = task, **kwargs: Any) -> Any:
                values = kt.HyperParameters()
                values = trial.hyperparameters
                found = {
                    "learning_rate": values.Float("learning_rate", 1e-5, 1.0, sampling="log"),
                    "width": values.Int("width", 8, 512, sampling="log"),
                    "layers": values.Int("layers", 1, 5),
                    "optimizer": values.Choice("optimizer", ["sgd", "adam", "rmsprop"]),
                    "batch_norm": values.Boolean("batch_norm"),
                    "seed": values.Fixed("seed", 7),
                }
                if found["optimizer"] == "sgd":
                    with values.conditional_scope("optimizer", ["sgd"]):
                        found["momentum"] = values.Float("momentum", 0.0, 0.99)
                if found["layers"] == 3:
                    raise kt.errors.FailedTrialError("out of memory")
                return {"accuracy": 1.0 / (1.0 + loss(task, found)), "parameters": 100.0 * found["width"]}

        def build(values: Any) -> None:
            values.Float("learning_rate", 1e-5, 1.0, sampling="log")
            values.Int("width", 8, 512, sampling="log")
            values.Int("layers", 1, 5)
            values.Choice("optimizer", ["sgd", "adam", "rmsprop"])
            with values.conditional_scope("optimizer", ["sgd"]):
                values.Float("momentum", 0.0, 0.99)
            values.Boolean("batch_norm")
            values.Fixed("seed", 7)

        declared = kt.HyperParameters()
        build(declared)
        tuner = Tuner(
            hypermodel=None,
            hyperparameters=declared,
            objective=kt.Objective("accuracy", "max"),
            max_trials=8,
            seed=3,
            directory=str(folder),
            project_name=task,
            max_consecutive_failed_trials=5,
        )
        tuner.search()


def mlflow(folder: Path) -> None:
    import random

    import mlflow as tool

    for store in ("mlruns", "mlflow.db"):
        where = folder / store
        tool.set_tracking_uri(where.as_uri() if store == "mlruns" else f"sqlite:///{where}")
        for task in TASKS:
            draw = random.Random(task)
            experiment = tool.create_experiment(task, artifact_location="file:///artifacts")
            for number in range(6):
                values = drawn(draw)
                run = tool.start_run(experiment_id=experiment, run_name=f"run-{number}")
                tool.log_params(values)
                if number == 3:
                    tool.end_run("FAILED")
                    continue
                if number == 5:
                    tool.log_metric("val_loss", float("nan"))
                    tool.end_run("FINISHED")
                    continue
                for step in range(3):
                    tool.log_metric("val_loss", loss(task, values) * (3 - step), step=step)
                tool.log_metric("train_seconds", 1.5 + number)
                tool.set_tag("dataset", task)
                if number != 4:
                    tool.end_run("FINISHED")
                else:  # Goes on: it has no end.
                    tool.tracking.fluent._active_run_stack.get().clear()
                assert run


def drawn(draw: Any) -> dict[str, Any]:
    """Hyperparameters drawn from the space that the other tools declare."""
    values: dict[str, Any] = {
        "learning_rate": 10 ** draw.uniform(-5, 0),
        "width": int(2 ** draw.uniform(3, 9)),
        "layers": draw.randint(1, 5),
        "optimizer": draw.choice(["sgd", "adam", "rmsprop"]),
        "batch_norm": draw.random() < 0.5,
    }
    if values["optimizer"] == "sgd":
        values["momentum"] = draw.uniform(0.0, 0.99)
    return values


def wandb(folder: Path) -> None:
    import random

    os.environ["WANDB_MODE"] = "offline"
    os.environ["WANDB_SILENT"] = "true"
    import wandb as tool

    for task in TASKS:
        draw = random.Random(task)
        for number in range(5):
            values = drawn(draw)
            run = tool.init(
                project=task,
                name=f"run-{number}",
                dir=folder,
                config=values | {"dataset": task},
                settings=tool.Settings(
                    x_disable_stats=True,
                    console="off",
                    x_disable_meta=True,
                    disable_git=True,
                    disable_code=True,
                ),
            )
            for step in range(3):
                if number != 3:
                    run.log({"val_loss": loss(task, values) * (3 - step), "epoch": step})
            run.finish(exit_code=1 if number == 3 else 0)


def ray(folder: Path) -> None:
    import ray as cluster
    from ray import tune

    def train(config: dict[str, Any]) -> None:
        values = {name: value for name, value in config.items() if name != "dataset"}
        if values["layers"] == 5:
            raise RuntimeError("out of memory")
        for step in range(3):
            found = loss(config["dataset"], values) * (3 - step)
            tune.report({"val_loss": math.nan if values["width"] > 400 else found, "epoch": step})

    cluster.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
    for task in TASKS:
        space = {
            "learning_rate": tune.loguniform(1e-5, 1.0),
            "width": tune.lograndint(8, 512),
            "layers": tune.randint(1, 6),
            "optimizer": tune.choice(["sgd", "adam", "rmsprop"]),
            "batch_norm": tune.choice([False, True]),
            "dataset": task,
        }
        tuner = tune.Tuner(
            train,
            param_space=space,
            tune_config=tune.TuneConfig(metric="val_loss", mode="min", num_samples=6),
            run_config=tune.RunConfig(name=task, storage_path=str(folder), verbose=0),
        )
        tuner.fit()


def vizier(folder: Path) -> None:
    import random

    from vizier.service import clients
    from vizier.service import pyvizier as vz

    clients.environment_variables.servicer_kwargs["database_url"] = f"sqlite:///{folder / 'vizier.db'}"
    for task in TASKS:
        config = vz.StudyConfig(algorithm="RANDOM_SEARCH")
        root = config.search_space.root
        root.add_float_param("learning_rate", 1e-5, 1.0, scale_type=vz.ScaleType.LOG)
        root.add_discrete_param("width", [8, 32, 128, 512])
        root.add_int_param("layers", 1, 5)
        optimizer = root.add_categorical_param("optimizer", ["sgd", "adam", "rmsprop"])
        optimizer.select_values(["sgd"]).add_float_param("momentum", 0.0, 0.99)
        root.add_bool_param("batch_norm")
        config.metric_information.append(
            vz.MetricInformation("accuracy", goal=vz.ObjectiveMetricGoal.MAXIMIZE)
        )
        study = clients.Study.from_study_config(config, owner="lab", study_id=task)
        draw = random.Random(task)
        for number in range(7):
            values = drawn(draw)
            values["width"] = draw.choice([8, 32, 128, 512])
            shown = {name: str(value) if isinstance(value, bool) else value for name, value in values.items()}
            # The client's own `add_trial` refuses spaces with conditions; what was added is suggested first.
            study._client.add_trial(vz.Trial(parameters=shown))
            (trial,) = study.suggest(count=1, client_id=f"worker-{number}")
            if number == 6:
                continue
            if number == 2:
                trial.complete(infeasible_reason="out of memory")
                continue
            accuracy = 1.0 / (1.0 + loss(task, values))
            for step in range(2):
                seconds = step + 1.0
                trial.add_measurement(
                    vz.Measurement({"accuracy": accuracy * step}, steps=step + 1, elapsed_secs=seconds)
                )
            metrics = {"accuracy": accuracy, "parameters": 100.0 * values["width"]}
            trial.complete(vz.Measurement(metrics, elapsed_secs=2.5))


def ax(folder: Path) -> None:
    from ax.api.client import Client
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

    for task in TASKS:
        client = Client(random_seed=3)
        client.configure_experiment(
            name=task,
            parameters=[
                RangeParameterConfig("learning_rate", (1e-5, 1.0), parameter_type="float", scaling="log"),
                RangeParameterConfig("width", (8, 512), parameter_type="int", scaling="log"),
                RangeParameterConfig("layers", (1, 5), parameter_type="int"),
                ChoiceParameterConfig(
                    "optimizer", ["sgd", "adam", "rmsprop"], parameter_type="str", is_ordered=False
                ),
                ChoiceParameterConfig("batch_norm", [False, True], parameter_type="bool", is_ordered=False),
                ChoiceParameterConfig("batch_size", [32, 64, 128], parameter_type="int", is_ordered=True),
            ],
        )
        client.configure_optimization(objective="-val_loss")
        client.configure_generation_strategy(method="random_search")
        for number, (index, values) in enumerate(client.get_next_trials(max_trials=6).items()):
            if number == 2:
                client.mark_trial_failed(index)
            elif number == 4:
                client.mark_trial_abandoned(index)
            elif number != 5:
                found = loss(task, values)
                client.complete_trial(index, raw_data={"val_loss": found, "seconds": 1.0 + number})
        client.save_to_json_file(str(folder / f"{task}.json"))


def syne_tune(folder: Path) -> None:
    os.environ["SYNETUNE_FOLDER"] = str(folder)
    from syne_tune import StoppingCriterion, Tuner
    from syne_tune.backend import LocalBackend
    from syne_tune.config_space import choice, lograndint, loguniform, randint
    from syne_tune.optimizer.baselines import ASHA

    script = folder / "train.py"
    script.write_text(
        "import argparse, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from record import loss\n"
        "from syne_tune import Reporter\n"
        "parser = argparse.ArgumentParser()\n"
        "for name, kind in dict(learning_rate=float, width=int, layers=int, optimizer=str, dataset=str, "
        "epochs=int).items():\n"
        "    parser.add_argument('--' + name, type=kind)\n"
        "values = vars(parser.parse_known_args()[0])\n"
        "if values['layers'] == 4: raise RuntimeError('out of memory')\n"
        "report = Reporter()\n"
        "for step in range(3):\n"
        "    report(epoch=step + 1, val_loss=loss(values['dataset'], values) * (3 - step))\n"
    )
    for task in TASKS:
        space = {
            "learning_rate": loguniform(1e-5, 1.0),
            "width": lograndint(8, 512),
            "layers": randint(1, 5),
            "optimizer": choice(["sgd", "adam", "rmsprop"]),
            "dataset": task,
            "epochs": 3,
        }
        tuner = Tuner(
            trial_backend=LocalBackend(entry_point=str(script)),
            scheduler=ASHA(
                space, metric="val_loss", do_minimize=True, time_attr="epoch", max_t=3, random_seed=3
            ),
            stop_criterion=StoppingCriterion(max_num_trials_started=6),
            n_workers=1,
            tuner_name=f"{task}",
            sleep_time=0.2,
            max_failures=10,
        )
        tuner.run()


if __name__ == "__main__":
    target = Path(sys.argv[2]).resolve()
    target.mkdir(parents=True, exist_ok=True)
    {each.__name__: each for each in (smac, keras_tuner, mlflow, wandb, ray, vizier, ax, syne_tune)}[
        sys.argv[1]
    ](target)
