"""Pre-trained priors: their files, their names, catalogues of priors in service, and their losses."""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo.priors.catalog import add_prior, hold_back, promote, roll_back
    from hyperbo.priors.file import Prior, PriorDescription, read_prior, save_prior, trained_prior
    from hyperbo.priors.history import Line, PriorDecision
    from hyperbo.priors.losses import prior_losses
    from hyperbo.priors.names import SHIPPED, decisions_on, find_prior, lines, load_prior, read_line

__all__ = [
    "SHIPPED",
    "Line",
    "Prior",
    "PriorDecision",
    "PriorDescription",
    "add_prior",
    "decisions_on",
    "find_prior",
    "hold_back",
    "lines",
    "load_prior",
    "prior_losses",
    "promote",
    "read_line",
    "read_prior",
    "roll_back",
    "save_prior",
    "trained_prior",
]
# Imported when they are used: a list of priors needs no losses.
__getattr__, __dir__ = attach(
    __name__,
    {
        "catalog": ["add_prior", "hold_back", "promote", "roll_back"],
        "file": ["Prior", "PriorDescription", "read_prior", "save_prior", "trained_prior"],
        "history": ["Line", "PriorDecision"],
        "losses": ["prior_losses"],
        "names": ["SHIPPED", "decisions_on", "find_prior", "lines", "load_prior", "read_line"],
    },
)
