"""A prior as numbers for figures: its most promising region, planes, slices, functions, correlations."""
