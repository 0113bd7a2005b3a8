"""What the paper's theorems promise of a prior estimated from N tasks, and what simulations find.

python docs/examples/theory_bounds.py
"""

from __future__ import annotations

import numpy as np

from hyperbo.theory import (
    RegretSetting,
    greedy_information_gain,
    posterior_bound,
    simulate_posteriors,
    simulate_regret,
    ucb_coefficient,
    ucb_regret_bound,
    variance_bias,
    within_posterior_bound,
)

INPUTS, DELTA, NOISE = 8, 0.1, 0.01


def main(simulations: int = 200) -> None:
    """Print the bounds of Theorems 5 (posterior_bound) and 16 (regret_ucb) beside simulated values."""
    x = np.linspace(0.0, 1.0, INPUTS)
    covariance = np.exp(-0.5 * (np.subtract.outer(x, x) / 0.3) ** 2) + 1e-6 * np.eye(INPUTS)
    mean = np.sin(3.0 * x)
    print("Posterior at the last of 8 inputs, given the others")
    print("tasks N | bound a on the mean | variance ratio expected, simulated | both statements hold")
    for tasks in (20, 100, 1000):
        bound = posterior_bound(tasks, INPUTS, DELTA)
        noisy = covariance + NOISE * np.eye(INPUTS)
        found = simulate_posteriors(mean, noisy, tasks, simulations, seed=0)
        hold = np.logical_and(*within_posterior_bound(found, tasks, DELTA))[:, -1].mean()
        ratio = found.variance_ratios[:, -1].mean()
        print(
            f"{tasks:7} | {bound.a:19.2f} | {variance_bias(tasks, INPUTS):24.2f}, {ratio:8.2f} | {hold:.0%}"
        )
    setting = RegretSetting(training_functions=200, iterations=10, delta=DELTA)
    gain = greedy_information_gain(covariance, NOISE, setting.iterations, repeats=True).upper_bound
    limit = ucb_regret_bound(setting, float(covariance.max()), NOISE, gain)
    regret = simulate_regret("ucb", mean, covariance, NOISE, setting, simulations, seed=0).regret
    quantile = np.quantile(regret, 1.0 - DELTA)
    print(f"GP-UCB with N = 200, T = 10 and the coefficient {ucb_coefficient(setting):.1f}:")
    print(f"with probability {1.0 - DELTA} the regret is at most {limit:.1f}; simulated: {quantile:.3f}")


if __name__ == "__main__":
    main()
