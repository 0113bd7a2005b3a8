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


def mesh(count: int) -> Mesh:
    """The devices that a batch of `count` elements is split over, in a row.

    They are as few as finish as early as all would: padding on the others would only take cores from them.
    Padded to a multiple of their number, a batch goes over the same ones.
    """
    devices = jax.devices()
    on_each = -(-count // len(devices))
    return Mesh(np.array(devices[: -(-count // on_each)]), (AXIS,))


def batch_size(tree: Any) -> int:
    """Length of the leading axis shared by all leaves."""
    return int(jax.tree.leaves(tree)[0].shape[0])


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
    """Compile a function over a leading batch axis, split over devices.

    An accelerator computes its part of the batch at once. A CPU device goes through it one element at a time,
    which was measured faster: small matrices stay in the cache, no element waits for the slowest line
    search, and the result does not depend on the rest of the batch (docs/decisions/cpu-factorisation.md).

    Args:
      function: acts on one element of the batch.
      shared: how many of its first arguments are the same for the whole batch.
      at_once: False where the batch would not fit an accelerator: it too goes through it one at a time.

    Returns:
      A compiled function whose remaining arguments carry the batch axis; their length must divide
      over the devices of its `mesh`, as that of `pad_batch` does.
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
