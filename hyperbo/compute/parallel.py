"""Many models or runs at once: one compiled program over a leading axis, spread over the devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "batch"


def mesh(count: int) -> Mesh:
    """The devices that a batch of `count` elements is split over, in a row.

    Their number is the smallest that finishes as early as all would: more devices would only compute padding.
    A batch that is padded to a multiple of that number gets the same devices.
    """
    devices = jax.devices()
    on_each = -(-count // len(devices))
    return Mesh(np.array(devices[: -(-count // on_each)]), (AXIS,))


def batch_size(tree: Any) -> int:
    """Length of the leading axis shared by all leaves."""
    return int(jax.tree.leaves(tree)[0].shape[0])


def stack(trees: Sequence[Any]) -> Any:
    """Trees of equal structure as one, with a leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def unstack(tree: Any, count: int) -> list[Any]:
    """The first elements of a batch, their leaves NumPy arrays of their own."""
    leaves = jax.tree.map(np.asarray, tree)
    return [jax.tree.map(lambda leaf, i=i: np.array(leaf[i]), leaves) for i in range(count)]


def pad_batch(tree: Any) -> Any:
    """Repeat the last row until the leading axis divides evenly over its devices, and place it on them."""
    count = batch_size(tree)
    devices = mesh(count)
    missing = -count % devices.size
    sharding = NamedSharding(devices, PartitionSpec(AXIS))

    def pad(leaf: Any) -> jax.Array:
        leaf = jnp.asarray(leaf)
        padded = jnp.concatenate([leaf, jnp.repeat(leaf[-1:], missing, axis=0)])
        return jax.device_put(padded, sharding)

    return jax.tree.map(pad, tree)


def batched(function: Callable[..., Any], *, shared: int = 0, at_once: bool = True) -> Callable[..., Any]:
    """Compile a function of one element over a leading batch axis, split over devices.

    An accelerator computes its part of the batch at once. A CPU device goes through it one element at a time,
    which was measured faster: small matrices stay in the cache, no element waits for the slowest line
    search, and the result does not depend on the rest of the batch.

    Args:
      function: acts on one element of the batch.
      shared: how many of its first arguments are the same for the whole batch.
      at_once: False where the batch would not fit in the memory of an accelerator, which then computes one
        element at a time, as a CPU does.

    Returns:
      A compiled function whose remaining arguments carry the batch axis, padded as by `pad_batch`.
    """
    one_at_a_time = _one_at_a_time() or not at_once

    def over_part(*arguments: Any) -> Any:
        common, part = arguments[:shared], arguments[shared:]

        def on_element(element: tuple[Any, ...]) -> Any:
            return function(*common, *element)

        return lax.map(on_element, part) if one_at_a_time else jax.vmap(on_element)(part)

    @jax.jit
    def run(*arguments: Any) -> Any:
        return jax.shard_map(
            over_part,
            mesh=mesh(batch_size(arguments[shared:])),
            in_specs=(PartitionSpec(),) * shared + (PartitionSpec(AXIS),) * (len(arguments) - shared),
            out_specs=PartitionSpec(AXIS),
            check_vma=False,
        )(*arguments)

    return run


def _one_at_a_time() -> bool:
    return jax.default_backend() == "cpu"
