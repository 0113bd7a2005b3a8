"""HTML pages: the report of an evaluation, and the page of a prior."""

from hyperbo.storage.installation import require_extras

require_extras("report", purpose="a page")
