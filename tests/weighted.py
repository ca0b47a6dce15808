"""Weighted graphs that are drawn from the model."""

import equinox as eqx
import numpy as np

from edgebelief.data import GraphDataset

PARAMS = {"theta": 0.16, "delta": 50.0, "b": 5.0, "level": 1.0, "slope": 0.8, "weight_sd": 0.4}


def drawn_from(model, params, base, seed):
    """Presence and weights from the model, on the distances of `base`."""
    rng = np.random.default_rng(seed)
    logits, f = looked_at(model, params, base)
    there = rng.random(f.shape) < 1 / (1 + np.exp(-logits))
    noise = params["weight_sd"] * rng.standard_normal(f.shape)
    w = there * np.exp(params["level"] + params["slope"] * f + noise)
    return GraphDataset([r.e for r in base], list(w), n_signals=base[0].n_signals, weighted=True)


def looked_at(model, params, data):
    """Logits, and what weights follow: (graphs, edges) each."""
    (stack,) = data.stacks()
    forward, batch = model.forward, model.forward.batch(stack).as_jax()

    @eqx.filter_jit
    def evaluate(values):
        parameters = forward.split(values)
        reduced = forward.run(parameters, batch)
        return forward.logits(parameters, reduced), reduced.likelihood

    return [np.asarray(x, float) for x in evaluate(params)]
