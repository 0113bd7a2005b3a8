"""The simplest prior: a table of the mean and the covariance of a few candidates, estimated from past tasks.

    python docs/examples/table_prior.py

Where all tasks were observed at the same candidates, no kernel is needed: Proposition 4 (gpexist).
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from hyperbo.acquisition import acquisition_values
from hyperbo.gp import double_precision, estimate_table, variance_correction

CANDIDATES, TASKS, NOISE = 12, 40, 1e-4


@double_precision
def main() -> None:
    """Estimate the table from 40 tasks, and optimize the next one by it."""
    random = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, CANDIDATES)
    heights, peaks = random.normal(size=TASKS + 1), random.normal(0.6, 0.1, TASKS + 1)
    y = heights - 4.0 * (x[:, None] - peaks) ** 2 + 0.01 * random.normal(size=(CANDIDATES, TASKS + 1))
    past, new = y[:, :-1], y[:, -1]
    posterior = estimate_table(past, NOISE).unobserved(capacity=5)
    best = None
    for step in range(5):
        # The variance of a table from few tasks is too small: Theorem 5 (posterior_bound).
        factor = float(variance_correction(TASKS, observations=step))
        variance, noise = factor * np.asarray(posterior.variance), factor * NOISE
        values = acquisition_values(
            "expected_improvement", posterior.mean, variance, noise_variance=noise, best=best
        )
        chosen = int(np.argmax(values))
        best = new[chosen] if best is None else max(best, new[chosen])
        posterior = posterior.observe(jnp.asarray(step), jnp.asarray(chosen), jnp.asarray(new[chosen]))
        print(f"trial {step + 1}: candidate {chosen}, y = {new[chosen]:.3f}, regret {new.max() - best:.3f}")


if __name__ == "__main__":
    main()
