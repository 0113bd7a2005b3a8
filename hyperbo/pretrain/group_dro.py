"""Group DRO: task weights that follow the tasks that the model explains worst.

Sagawa, Koh, Hashimoto and Liang, "Distributionally Robust Neural Networks for Group Shifts", ICLR 2020,
Algorithm 1; the paper names it as a way to set the w_i of Eq. (pre-nll-weight).
"""

from __future__ import annotations

import jax
from jaxtyping import Array, Float, Int


def exponentiated_gradient(
    log_weights: Float[Array, " t"],
    tasks: Int[Array, " k"] | slice,
    losses: Float[Array, " k"],
    step: float,
) -> Float[Array, " t"]:
    r"""One ascent step on the task weights, :math:`w_i \propto w_i \exp(\eta\,\ell_i)`.

    Args:
      log_weights: ln w; -inf is a weight of 0, which stays 0.
      tasks: whose losses are known; a task that occurs twice moves twice.
      losses: of these tasks, in nats.
      step: eta, per nat.

    Returns:
      The logarithms of the new weights, which sum to 1.
    """
    return jax.nn.log_softmax(log_weights.at[tasks].add(step * losses))
