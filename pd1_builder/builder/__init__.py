"""How TFDS writes a version: the recipe of its records, its builder, shards and exports."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from pd1_builder.builder.curated_builder import CuratedBuilder
    from pd1_builder.builder.recipe import Recipe
    from pd1_builder.builder.shards import export_tfrecord

__all__ = ["CuratedBuilder", "Recipe", "export_tfrecord"]
# Imported when they are used: TFDS and Beam are slow to import.
__getattr__, __dir__ = attach(
    __name__,
    {"curated_builder": ["CuratedBuilder"], "recipe": ["Recipe"], "shards": ["export_tfrecord"]},
)
