"""HTML pages: the report of an evaluation, and the page of a prior."""
