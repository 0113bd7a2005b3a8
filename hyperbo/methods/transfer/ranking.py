"""How well models rank what was observed: losses of sampled functions, and the weights that follow."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

# Of the values that a Gaussian process is conditioned on, all but one; below it no order is left to predict.
FEWEST_OBSERVATIONS = 3


def added_ranking_loss(
    samples: Float[Array, "*models s t"], y: Float[Array, " t"], last: Int[Array, ""]
) -> Float[Array, "*models s"]:
    r"""How many pairs each sampled function puts in the wrong order of those that the last observation adds.

    With t = `last`, these are the pairs of t with the observations before it. Their sum over t is the loss

    .. math:: \sum_j \sum_k 1[(f(x_j) < f(x_k)) \oplus (y_j < y_k)]

    Args:
      samples: values of sampled functions at the observed inputs.
      y: what was observed.
      last: row of the last observation; the rows after it are room.

    >>> order = jnp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])
    >>> added_ranking_loss(order, jnp.array([1.0, 2.0, 3.0]), jnp.array(2)).tolist()
    [0.0, 4.0]
    """
    value, observed = samples[..., last, None], y[last]
    wrong = ((value < samples) ^ (observed < y)).astype(y.dtype) + ((samples < value) ^ (y < observed))
    return jnp.sum(jnp.where(jnp.arange(len(y)) < last, wrong, 0.0), axis=-1)


def left_out_ranking_loss(
    samples: Float[Array, "s t t"], y: Float[Array, " t"], mask: Bool[Array, " t"]
) -> Float[Array, " s"]:
    """How many pairs are in the wrong order, where row j is the function sampled without observation j.

    The pairs are those of the sum in `added_ranking_loss`.
    """
    at_left_out = jnp.diagonal(samples, axis1=1, axis2=2)[:, :, None]
    wrong = (at_left_out < samples) ^ (y[:, None] < y[None, :])
    return jnp.sum(wrong & mask[:, None] & mask[None, :], axis=(1, 2)).astype(y.dtype)


def left_out_samples(
    prior: Float[Array, "s t"],
    noise: Float[Array, "s t"],
    y: Float[Array, " t"],
    covariance: Float[Array, "t t"],
    inverse: Float[Array, "t t"],
) -> Float[Array, "s t t"]:
    r"""Draws of the functions that a Gaussian process of mean 0 expects without one observation each.

    By Matheron's rule a draw f of the prior becomes one of the posterior by f + K A_{-j} r_{-j}, with the
    residual r = y - f - noise and A_{-j} the inverse of the noisy covariance without row and column j. With
    A, the inverse of the whole, and u = A r:

    .. math:: f_{-j} = f + K (u - A_{\cdot j} u_j / A_{jj})

    Args:
      prior: draws of the prior at the observed inputs.
      noise: draws of the noise.
      y: what was observed.
      covariance: K, without noise; zero in padded rows and columns.
      inverse: A; that of padded rows and columns is the identity.

    Returns:
      Draws; in each, row j is the function without observation j.
    """
    solved = (y - prior - noise) @ inverse
    whole = prior + solved @ covariance
    parts = (solved / jnp.diagonal(inverse))[:, :, None] * (inverse @ covariance)[None]
    return whole[:, None, :] - parts


def ensemble_weights(
    key: PRNGKeyArray,
    base: Float[Array, "m s"],
    target: Float[Array, " s"],
    own: Bool[Array, " m"],
    time_left: Float[Array, ""],
) -> Float[Array, " models"]:
    r"""How often each model has the lowest loss; models of equal loss share.

    Against weight dilution, base model m stays with the probability

    .. math:: p_m = \left(1 - \tfrac tH\right) \tfrac1S \sum_s 1[l_{m,s} < l_{\mathrm{target},s}]

    Args:
      key: random key; a model's draw does not depend on the number of models.
      base: losses of the sampled functions of base models.
      target: those of the model of the test task.
      own: which base models are no padding.
      time_left: 1 - t / H.

    Returns:
      Weights of the base models and, last, of the target's; their sum is 1.
    """
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(len(base)))
    draws = jax.vmap(lambda key: jax.random.uniform(key, (), base.dtype))(keys)
    stays = own & (draws < time_left * jnp.mean(base < target, axis=1))
    losses = jnp.vstack([jnp.where(stays[:, None], base, jnp.inf), target])
    lowest = losses == jnp.min(losses, axis=0)
    return jnp.mean(lowest / jnp.sum(lowest, axis=0), axis=1)
