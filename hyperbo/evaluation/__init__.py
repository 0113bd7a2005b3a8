"""What an evaluation says: regret, profiles, ranks, tables, figures; drawn from run records alone."""
