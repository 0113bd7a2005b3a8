"""Many models or runs at once: one compiled program over a leading axis, spread over the devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "batch"


def mesh() -> Mesh:
    """All devices in a row."""
    return Mesh(np.array(jax.devices()), (AXIS,))


def batch_size(tree: Any) -> int:
    """Length of the leading axis shared by all leaves."""
    return int(jax.tree.leaves(tree)[0].shape[0])


def pad_batch(tree: Any) -> Any:
    """Repeat the last row until the leading axis divides evenly over the devices, and place it on them."""
    count = batch_size(tree)
    missing = -count % jax.device_count()
    sharding = NamedSharding(mesh(), PartitionSpec(AXIS))

    def pad(leaf: Any) -> jax.Array:
        leaf = jnp.asarray(leaf)
        padded = jnp.concatenate([leaf, jnp.repeat(leaf[-1:], missing, axis=0)])
        return jax.device_put(padded, sharding)

    return jax.tree.map(pad, tree)


def batched(function: Callable[..., Any], *, shared: int = 0) -> Callable[..., Any]:
    """Compile a function over a leading batch axis, split over devices.

    An accelerator computes its part of the batch at once. A CPU device goes through it one element at a time,
    which was measured faster: small matrices stay in the cache, no element waits for the slowest line
    search, and the result does not depend on the rest of the batch (docs/decisions/cpu-factorisation.md).

    Args:
      function: acts on one element of the batch.
      shared: how many of its first arguments are the same for the whole batch.

    Returns:
      A compiled function whose remaining arguments carry the batch axis; their length must be a multiple of
      the number of devices (`pad_batch`).
    """
    one_at_a_time = jax.default_backend() == "cpu"

    def over_part(*arguments: Any) -> Any:
        common, part = arguments[:shared], arguments[shared:]

        def on_element(element: tuple[Any, ...]) -> Any:
            return function(*common, *element)

        return lax.map(on_element, part) if one_at_a_time else jax.vmap(on_element)(part)

    @jax.jit
    def run(*arguments: Any) -> Any:
        return jax.shard_map(
            over_part,
            mesh=mesh(),
            in_specs=(PartitionSpec(),) * shared + (PartitionSpec(AXIS),) * (len(arguments) - shared),
            out_specs=PartitionSpec(AXIS),
            check_vma=False,
        )(*arguments)

    return run
