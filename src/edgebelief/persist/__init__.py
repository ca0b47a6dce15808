"""A fitted learner in one safe file."""
