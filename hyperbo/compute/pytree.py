"""One decorator: a frozen dataclass whose fields JAX sees as the leaves of a pytree."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform

from jax.tree_util import GetAttrKey, register_pytree_with_keys

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def pytree(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass and a pytree; fields marked `metadata={"static": True}` are no data.

    JAX takes nodes apart and rebuilds them around batched arrays and placeholders. That does not go through
    the constructor, so the shapes annotated there are those of one element, and can be checked.
    """
    node_type: Any = dataclass(frozen=True)(cls)
    static = [field.name for field in fields(node_type) if field.metadata.get("static", False)]
    data = [field.name for field in fields(node_type) if field.name not in static]

    def flatten(node: Any) -> Any:
        leaves = [(GetAttrKey(name), getattr(node, name)) for name in data]
        return leaves, tuple(getattr(node, name) for name in static)

    def unflatten(settings: tuple[Any, ...], leaves: Any) -> Any:
        node = object.__new__(node_type)
        for name, value in zip((*data, *static), (*leaves, *settings), strict=True):
            object.__setattr__(node, name, value)
        return node

    register_pytree_with_keys(node_type, flatten, unflatten)
    return node_type
