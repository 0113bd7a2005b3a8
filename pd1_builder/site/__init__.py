"""The catalogue of a place, as a static site."""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from pd1_builder.site.write import write_site

__all__ = ["write_site"]
# Imported when they are used: the pages need the `report` extra.
__getattr__, __dir__, _ = lazy_loader.attach(__name__, submod_attrs={"write": ["write_site"]})
