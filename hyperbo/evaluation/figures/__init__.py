"""Figures of evaluations and priors, as SVG."""

from hyperbo.storage.installation import require_extras

require_extras("report", purpose="a figure")
