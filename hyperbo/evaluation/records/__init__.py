"""What an evaluation leaves behind: run records, metadata, losses of priors; checked, joined, arranged."""
