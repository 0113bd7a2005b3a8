"""The universal prior: real histories of other spaces, how it is fitted, and what it is worth."""
