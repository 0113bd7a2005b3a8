"""Where the rows of the PD1 release keep what, and the layout of the records made from them."""

from __future__ import annotations

from hyperbo.search_space import PD1_SEARCH_SPACE
from pipelines.columns import Layout

# Where the release keeps each parameter of the PD1 search space. Its momentum is beta, not 1 - beta.
HYPERPARAMETER_COLUMNS = {
    "learning_rate": "hps.lr_hparams.initial_value",
    "power": "hps.lr_hparams.power",
    "momentum": "hps.opt_hparams.momentum",
    "decay_steps_factor": "hps.lr_hparams.decay_steps_factor",
}
_MEASURED = (
    "train_cost",
    *(f"{part}/{metric}" for part in ("train", "valid", "test") for metric in ("error_rate", "ce_loss")),
)
METRICS = tuple(f"best_{name}{suffix}" for name in _MEASURED for suffix in ("", "_index", "_step"))
ERROR_RATES = tuple(name for name in METRICS if name.endswith("/error_rate"))
CURVES = ("global_step", "epoch", "eval_time", "learning_rate", *_MEASURED)


def pd1_layout(*, curves: bool) -> Layout:
    """The layout of PD1's records, with curves or without."""
    return Layout(PD1_SEARCH_SPACE, METRICS, CURVES if curves else (), model=True)
