"""Tunes the learning rate of a small regression, with a prior that was trained on other networks."""

import numpy as np
import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """Error of a linear classifier after 200 steps of gradient descent with momentum."""
    rate = trial.suggest_float("learning_rate", 1e-5, 10.0, log=True)
    momentum = trial.suggest_float("momentum", 0.0, 0.999)
    draw = np.random.default_rng(0)
    x = draw.normal(size=(400, 8))
    label = np.where(x @ draw.normal(size=8) + draw.normal(size=400) > 0.0, 1.0, -1.0)
    weights, velocity = np.zeros(8), np.zeros(8)
    for _ in range(200):
        margin = np.clip(label[:200] * (x[:200] @ weights), -30.0, 30.0)
        gradient = -(x[:200] * (label[:200] / (1.0 + np.exp(margin)))[:, None]).mean(axis=0)
        velocity = momentum * velocity - rate * gradient
        weights = weights + velocity
    return float(np.mean(np.sign(x[200:] @ weights) != label[200:]))


if __name__ == "__main__":
    module = optunahub.load_module("samplers/hyperbo")
    # The prior knows two more parameters, which this objective has not: they are held.
    fixed = {"power": 1.0, "decay_steps_factor": 0.9}
    study = optuna.create_study(sampler=module.HyperBOSampler("pd1-mini/h-ekl", fixed=fixed, seed=0))
    study.optimize(objective, n_trials=20)
    print(study.best_trial.params, study.best_value)
