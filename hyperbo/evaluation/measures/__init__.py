"""Numbers computed from records: regret, ranks, speed-ups, calibration, comparisons, promotion, surveys."""

from hyperbo.evaluation.measures.comparisons import sign_flip_p_value
from hyperbo.evaluation.measures.regret import normalised_regret, simple_regret
from hyperbo.evaluation.measures.spread import bootstrap_interval

__all__ = ["bootstrap_interval", "normalised_regret", "sign_flip_p_value", "simple_regret"]
