"""A training command to be tuned: a small network on the digits of scikit-learn, trained with NumPy.

It prints its validation error; `hyperbo tune` reads it:

    hyperbo tune --prior pd1-mini/h-ekl --trials 20 --jobs 2 --command "python docs/examples/train_digits.py \
      --learning-rate {learning_rate} --power {power} --momentum {momentum} --decay {decay_steps_factor}"
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits

STEPS, BATCH, HIDDEN = 600, 32, 64


def train(rate: float, power: float, momentum: float, decay: float) -> float:
    """Validation error rate after training with momentum and a polynomially decaying learning rate."""
    random = np.random.default_rng(0)
    images, labels = load_digits(return_X_y=True)
    order = random.permutation(len(images))
    images, labels = images[order] / 16.0, labels[order]
    training, validation = slice(0, 1300), slice(1300, None)
    weights = [random.normal(size=shape) / np.sqrt(shape[0]) for shape in ((64, HIDDEN), (HIDDEN, 10))]
    velocities = [np.zeros_like(each) for each in weights]
    for step in range(STEPS):
        batch = random.integers(training.stop, size=BATCH)
        hidden = np.maximum(images[batch] @ weights[0], 0.0)
        scores = hidden @ weights[1]
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        slope = scores / scores.sum(axis=1, keepdims=True)
        slope[np.arange(BATCH), labels[batch]] -= 1.0
        gradients = [
            images[batch].T @ ((slope @ weights[1].T) * (hidden > 0.0)) / BATCH,
            hidden.T @ slope / BATCH,
        ]
        now = rate * max(1.0 - step / (decay * STEPS), 0.001) ** power
        for weight, velocity, gradient in zip(weights, velocities, gradients, strict=True):
            velocity *= momentum
            velocity += gradient
            weight -= now * velocity
        if not all(np.isfinite(weight).all() for weight in weights):
            return float("nan")
    scores = np.maximum(images[validation] @ weights[0], 0.0) @ weights[1]
    return float(np.mean(scores.argmax(axis=1) != labels[validation]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("learning-rate", "power", "momentum", "decay"):
        parser.add_argument(f"--{name}", type=float, required=True)
    given = parser.parse_args()
    with np.errstate(all="ignore"):
        print(f"error={train(given.learning_rate, given.power, given.momentum, given.decay)}")
