"""Amortised belief: a network trained once, on a simulated world, for graphs without labels."""
