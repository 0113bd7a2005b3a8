"""The catalogue of a place, as a static site."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach, require_extras

if TYPE_CHECKING:
    from pd1_builder.site.write import write_site

__all__ = ["write_site"]
require_extras("report", purpose="a catalogue")
# Imported when they are used: the pages need the `report` extra.
__getattr__, __dir__ = attach(__name__, {"write": ["write_site"]})
