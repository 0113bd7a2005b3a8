"""Checkpoints: the state of a training on disk, from which it goes on with the exact result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from hyperbo.errors import InvalidInputError, VersionConflictError, require_positive
from hyperbo.storage.installation import require_extras


def checkpoints_available() -> bool:
    """Whether orbax-checkpoint is installed; the answer does not import it."""
    # The first part of the name may belong to another package of the orbax family.
    return find_spec("orbax") is not None and find_spec("orbax.checkpoint") is not None


@dataclass(frozen=True)
class CheckpointFolder:
    """Where the checkpoints of one training are kept, and how often one is written.

    A checkpoint counts only once it is complete, so a killed process leaves the one before. The folder is its
    training's alone, one process at a time; the caller deletes it when the result is safe.

    Attributes:
      path: the folder; it is made where it is missing.
      every_calls: calls of the compiled loop between two checkpoints; one more is written at the end.
    """

    path: Path
    every_calls: int = 10

    def __post_init__(self) -> None:
        require_positive(self, "every_calls")

    @contextmanager
    def open(self, identity: Mapping[str, Any]) -> Iterator[Checkpoints]:
        """Open the folder for a training.

        Args:
          identity: all that the result depends on, as JSON.

        Raises:
          MissingExtraError: orbax-checkpoint is not installed.
        """
        require_extras("checkpoints", purpose="a checkpoint")
        # It takes half a second to import, and only those who ask for checkpoints need it.
        from orbax import checkpoint

        options = checkpoint.CheckpointManagerOptions(max_to_keep=1, enable_async_checkpointing=False)
        with checkpoint.CheckpointManager(self.path.absolute(), options=options) as manager:
            yield Checkpoints(self, manager, json.loads(json.dumps(identity)))


@dataclass(frozen=True)
class Checkpoints:
    """An open folder of checkpoints; made by `CheckpointFolder.open`."""

    folder: CheckpointFolder
    _manager: Any
    _identity: dict[str, Any]

    def restore(self, state: Any) -> tuple[int, Any]:
        """The number of calls done and the state after them; 0 and `state` where there is no checkpoint.

        `state` is the state at the start: the structure and the placement on devices are taken from it.

        Raises:
          VersionConflictError: the checkpoint is of another training; the message says what differs.
          InvalidInputError: the checkpoint cannot be read.
        """
        from orbax.checkpoint import args

        done = self._manager.latest_step()
        if done is None:
            return 0, state
        where = str(self.folder.path)
        try:
            found = self._manager.restore(done, args=args.Composite(identity=args.JsonRestore())).identity
            different = differences(found, self._identity)
            if different:
                raise VersionConflictError(
                    f"{where}: a checkpoint of another training: {'; '.join(different)}; use another folder, "
                    "or delete this one to train from the start"
                )
            template = _named_arrays(state)
            restored = self._manager.restore(
                done, args=args.Composite(state=args.StandardRestore(template))
            ).state
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(
                f"the checkpoint cannot be read: {error!r}",
                where=where,
                fix="delete the folder to train from the start",
            ) from error
        leaves, structure = jax.tree.flatten(state)
        arrays = [
            jax.random.wrap_key_data(array) if _is_key(leaf) else array
            for leaf, array in zip(leaves, (restored[name] for name in template), strict=True)
        ]
        return done, jax.tree.unflatten(structure, arrays)

    def save(self, done: int, state: Any) -> None:
        """Write the state after `done` calls, and forget the one before once this is complete."""
        from orbax.checkpoint import args

        self._manager.save(
            done,
            args=args.Composite(
                state=args.StandardSave(_named_arrays(state)), identity=args.JsonSave(self._identity)
            ),
        )


def run_calls(
    state: Any,
    calls: int,
    call: Callable[[Any, int], Any],
    folder: CheckpointFolder | None,
    identity: Callable[[], Mapping[str, Any]],
) -> Any:
    """The state after all calls of a training; those before the newest checkpoint are not made again.

    `call` takes the state and the number of calls done. `identity` is all that the result depends on.
    """
    if folder is None:
        return reduce(call, range(calls), state)
    with folder.open(identity()) as checkpoints:
        begin, state = checkpoints.restore(state)
        for done in range(begin, calls):
            state = call(state, done)
            if (done + 1) % folder.every_calls == 0 or done + 1 == calls:
                checkpoints.save(done + 1, state)
    return state


def _is_key(leaf: jax.Array | np.ndarray) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _named_arrays(state: Any) -> dict[str, jax.Array | np.ndarray]:
    """The leaves by name; random keys as the integers that they are."""
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): (
            jax.random.key_data(leaf) if _is_key(leaf) else leaf
        )
        for path, leaf in jax.tree_util.tree_leaves_with_path(state)
    }


def differences(found: Any, expected: Any, place: str = "") -> list[str]:
    """What differs between two JSON values, one line each.

    >>> differences({"seed": 1, "tasks": ["a", "b"]}, {"seed": 2, "tasks": ["a"]})
    ['seed is 1, not 2', 'tasks has 2 entries, not 1']
    """
    if isinstance(found, dict) and isinstance(expected, dict):
        missing = [f"{place}{name} is missing" for name in sorted(expected.keys() - found.keys())]
        extra = [f"{place}{name} is unknown" for name in sorted(found.keys() - expected.keys())]
        shared = sorted(found.keys() & expected.keys())
        inner = [differences(found[name], expected[name], f"{place}{name}.") for name in shared]
        return [*missing, *extra, *(line for lines in inner for line in lines)]
    place = place.removesuffix(".")
    if isinstance(found, list) and isinstance(expected, list):
        if len(found) != len(expected):
            return [f"{place} has {len(found)} entries, not {len(expected)}"]
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for i, pair in pairs for line in differences(*pair, f"{place}[{i}].")]
    return [] if found == expected else [f"{place} is {found!r}, not {expected!r}"]
