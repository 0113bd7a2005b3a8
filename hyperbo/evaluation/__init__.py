"""Evaluations of methods: their records, measures, figures and pages.

Rooms: `records` (what runs leave behind), `measures` (numbers from records), `figures` and `pages` (SVG and
HTML), `prior` (what the page of a prior shows).
"""

from typing import TYPE_CHECKING

from hyperbo.storage.installation import attach

if TYPE_CHECKING:
    from hyperbo.evaluation.figures.diagnostics import heat_map, study_figure
    from hyperbo.evaluation.figures.online import online_figure
    from hyperbo.evaluation.figures.style import line_styles
    from hyperbo.evaluation.measures.aggregates import performance_profile, rank_methods, speedups
    from hyperbo.evaluation.measures.calibration import measure_calibration
    from hyperbo.evaluation.measures.comparisons import paired_comparison
    from hyperbo.evaluation.measures.correlations import correlate_losses
    from hyperbo.evaluation.measures.findings import findings_about, headline, simplest_ahead
    from hyperbo.evaluation.measures.leaderboard import leaderboard
    from hyperbo.evaluation.measures.promotion import PromotionDecision, decide_promotion
    from hyperbo.evaluation.measures.regret import regret_curves, regrets_of_priors, simple_regrets
    from hyperbo.evaluation.measures.study import study_points, study_table
    from hyperbo.evaluation.measures.survey import gains, rank_correlations, survey_markdown, survey_tasks
    from hyperbo.evaluation.measures.tables import summary_frame, summary_table
    from hyperbo.evaluation.measures.verdict import Verdict, verdict_of
    from hyperbo.evaluation.pages.arena import write_arena_page
    from hyperbo.evaluation.pages.prior import write_prior_page
    from hyperbo.evaluation.pages.report import write_report
    from hyperbo.evaluation.prior.view import PriorView, view_prior
    from hyperbo.evaluation.records.join import Evaluation, join_evaluations
    from hyperbo.evaluation.records.losses import read_losses, write_losses
    from hyperbo.evaluation.records.metadata import EvaluationMetadata, read_metadata, write_metadata
    from hyperbo.evaluation.records.run_array import RunArray, comparable
    from hyperbo.evaluation.records.runs import read_records, write_records

__all__ = [
    "Evaluation",
    "EvaluationMetadata",
    "PriorView",
    "PromotionDecision",
    "RunArray",
    "Verdict",
    "comparable",
    "correlate_losses",
    "decide_promotion",
    "findings_about",
    "gains",
    "headline",
    "heat_map",
    "join_evaluations",
    "leaderboard",
    "line_styles",
    "measure_calibration",
    "online_figure",
    "paired_comparison",
    "performance_profile",
    "rank_correlations",
    "rank_methods",
    "read_losses",
    "read_metadata",
    "read_records",
    "regret_curves",
    "regrets_of_priors",
    "simple_regrets",
    "simplest_ahead",
    "speedups",
    "study_figure",
    "study_points",
    "study_table",
    "summary_frame",
    "summary_table",
    "survey_markdown",
    "survey_tasks",
    "verdict_of",
    "view_prior",
    "write_arena_page",
    "write_losses",
    "write_metadata",
    "write_prior_page",
    "write_records",
    "write_report",
]
# Imported when they are used: records need neither JAX, matplotlib nor Jinja.
__getattr__, __dir__ = attach(
    __name__,
    {
        "figures.diagnostics": ["heat_map", "study_figure"],
        "figures.online": ["online_figure"],
        "figures.style": ["line_styles"],
        "measures.aggregates": ["performance_profile", "rank_methods", "speedups"],
        "measures.calibration": ["measure_calibration"],
        "measures.comparisons": ["paired_comparison"],
        "measures.correlations": ["correlate_losses"],
        "measures.findings": ["findings_about", "headline", "simplest_ahead"],
        "measures.leaderboard": ["leaderboard"],
        "measures.promotion": ["PromotionDecision", "decide_promotion"],
        "measures.regret": ["regret_curves", "regrets_of_priors", "simple_regrets"],
        "measures.study": ["study_points", "study_table"],
        "measures.survey": ["gains", "rank_correlations", "survey_markdown", "survey_tasks"],
        "measures.tables": ["summary_frame", "summary_table"],
        "measures.verdict": ["Verdict", "verdict_of"],
        "pages.arena": ["write_arena_page"],
        "pages.prior": ["write_prior_page"],
        "pages.report": ["write_report"],
        "prior.view": ["PriorView", "view_prior"],
        "records.join": ["Evaluation", "join_evaluations"],
        "records.losses": ["read_losses", "write_losses"],
        "records.metadata": ["EvaluationMetadata", "read_metadata", "write_metadata"],
        "records.run_array": ["RunArray", "comparable"],
        "records.runs": ["read_records", "write_records"],
    },
)
