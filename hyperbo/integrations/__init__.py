"""Other libraries' ways to tune, with priors of this one."""
