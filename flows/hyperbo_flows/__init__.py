"""Prefect: when things happen; every step is one call into a package below. Also the command line."""
