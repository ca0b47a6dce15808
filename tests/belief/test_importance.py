"""What terms carry alone, and what they carry together."""

import numpy as np
import pytest

from edgebelief import GraphLearner
from edgebelief.belief import term_importance
from edgebelief.belief.importance import _standard_error
from edgebelief.data import GraphDataset
from edgebelief.infer import Exact
from edgebelief.readouts import Additive

N = 16


@pytest.fixture(scope="module")
def fitted():
    """Labels that a covariate explains, which is there twice; distances are noise."""
    rng = np.random.default_rng(0)
    x, e = (np.triu(rng.normal(size=(N, N)), 1) for _ in range(2))
    x, e = x + x.T, np.abs(e + e.T)
    a = np.triu(rng.random((N, N)) < 1 / (1 + np.exp(1 - 2.5 * x)), 1).astype(float)
    readout = Additive(features=(), covariates=("x", "copy"))
    learner = GraphLearner(depth=5, readout=readout, inference=Exact(n_draws=200))
    given = {"X": e, "A": a + a.T, "covariates": {"x": x, "copy": x}}
    return learner.fit(**given), given


def test_copies_of_a_covariate_matter_together_and_not_alone(fitted):
    learner, given = fitted
    assert not learner.terms()["needed"].any()  # each band holds zero, since the other may do it
    how = {"together": [("x", "copy")], "n_folds": 2, "progress": False}
    table = learner.term_importance(**given, **how).set_index("term")
    both = table.loc["x + copy"]
    assert both.loss > 10
    assert both.loss > 3 * both.se
    for name in ("x", "copy"):
        assert abs(table.loc[name].loss) < 0.15 * both.loss


def test_groups_must_be_of_terms(fitted):
    learner, given = fitted
    for group in ("x", ("x",), ("x", "y")):
        with pytest.raises(ValueError, match=r"together is a list of groups.*\['x', 'copy'\]"):
            learner.term_importance(**given, together=[group])
    plain = GraphLearner(depth=5, readout="affine").fit(given["X"], given["A"])
    with pytest.raises(TypeError, match="Affine has no terms"):
        term_importance(0, plain.posterior_, GraphDataset([given["X"]], [given["A"]]))


def test_the_standard_error_within_a_graph_counts_pairs_that_share_a_node(rng):
    """Against a loop over all pairs of pairs."""
    n = 9
    ends = np.stack(np.triu_indices(n, 1), 1)
    nodes = rng.normal(size=n)
    d = nodes[ends].sum(1) + 0.1 * rng.normal(size=len(ends))
    known = rng.random(len(ends)) < 0.8
    a = np.where(known, 1.0, np.nan)
    d = np.where(known, d, 0.0)
    centred = np.where(known, d - d[known].mean(), 0)
    total = sum(
        centred[p] * centred[q]
        for p in range(len(ends))
        for q in range(len(ends))
        if set(ends[p]) & set(ends[q])
    )
    data = GraphDataset([np.ones(len(ends))], [a])
    assert _standard_error(data, [d], "nodes") == pytest.approx(np.sqrt(total))


def test_the_standard_error_over_graphs_is_that_of_a_sum():
    data = GraphDataset([np.ones(3)] * 4, [[1, 0, 1]] * 3 + [[np.nan] * 3])
    each = [np.array([x, 0.0, 1.0]) for x in (1.0, 2.0, 4.0)] + [np.zeros(3)]
    found = _standard_error(data, each, "graphs")
    assert found == pytest.approx(np.sqrt(3) * np.std([2, 3, 5], ddof=1))
