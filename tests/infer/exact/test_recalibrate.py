"""Log odds from elsewhere, corrected by a slope and a level."""

import numpy as np
import pytest
from scipy.special import expit, logit

from edgebelief.belief import predict
from edgebelief.data import GraphDataset
from edgebelief.infer import EdgeModel, Laplace, Mixture
from edgebelief.infer.exact import recalibrate
from edgebelief.infer.exact.recalibrate import LEVEL, SLOPE
from edgebelief.networks import DPG
from edgebelief.readouts import Additive
from edgebelief.readouts.curves import Term, curve_of

TERM = "belief"
PART = (TERM,)


def graphs(rng, n, slope=1.0, level=0.0):
    """Graphs whose labels follow the log odds in a covariate, on a scale that may be wrong."""
    e, a, known = [], [], []
    for _ in range(n):
        x = rng.normal(-1.0, 2.0, 28)
        known.append({TERM: x})
        a.append((rng.uniform(size=28) < expit(slope * x + level)).astype(float))
        e.append(rng.uniform(0.5, 2.0, 28))
    return GraphDataset(e, a, covariates=known)


def recalibration(data):
    x = np.concatenate([record.covariates[TERM] for record in data])
    term = Term(TERM, curve_of(x))
    return recalibrate.Recalibration(term, data, np.ones(len(data)))


def test_without_labels_the_belief_stays_as_it_is(rng):
    data = graphs(rng, 3)
    belief = recalibration(data)
    mode = belief.fit([np.zeros(28, bool)] * 3)
    beta = recalibrate.draws(mode, rng, 4000)
    np.testing.assert_allclose(beta.mean(0), [1, 0], atol=1e-12)
    np.testing.assert_allclose(beta.std(0), [SLOPE.sd, LEVEL.sd], rtol=0.05)


def test_posterior_means_are_those_of_a_dense_grid(rng):
    data = graphs(rng, 6, slope=0.6, level=0.5)
    known = [record.known for record in data]
    mode = recalibration(data).fit(known)
    beta = recalibrate.draws(mode, rng, 4000)
    x = np.concatenate([record.covariates[TERM] for record in data])
    sign = 2 * np.concatenate([record.a for record in data]) - 1
    s, v = np.meshgrid(np.linspace(0.4, 1.4, 201), np.linspace(-1.2, 1.5, 201), indexing="ij")
    f = -0.5 * ((s - 1) / SLOPE.sd) ** 2 - 0.5 * (v / LEVEL.sd) ** 2
    f -= np.logaddexp(0, -sign * (s[..., None] * x + v[..., None])).sum(-1)
    w = np.exp(f - f.max())
    w /= w.sum()
    exact = [(w * s).sum(), (w * v).sum()]
    np.testing.assert_allclose(beta.mean(0), exact, atol=0.01)
    sds = [np.sqrt((w * (at - m) ** 2).sum()) for at, m in zip((s, v), exact, strict=True)]
    np.testing.assert_allclose(beta.std(0), sds, rtol=0.06)


@pytest.fixture(scope="module")
def posterior():
    data = graphs(np.random.default_rng(0), 6)
    model = EdgeModel(DPG(5), Additive(features=("z",)))
    engine = Mixture(parts=(PART,), shares=(1.0,), engine=Laplace(), trusted=TERM)
    return data, engine.run(0, model, data)


def test_as_a_part_of_a_mixture_it_is_the_same_belief(posterior):
    data, found = posterior
    assert (found.params["delta"] == 0).all()
    slope = found.params["curves"].sum(1)
    assert (slope != 0).all()
    x = np.concatenate([record.covariates[TERM] for record in data])
    believed = np.concatenate([b.logit for b in predict(found, data)])
    line = np.polyfit(x, believed, 1)
    np.testing.assert_allclose(believed, np.polyval(line, x), atol=0.15)  # probabilities are means
    assert line[0] == pytest.approx(1, abs=0.2)
    assert line[1] == pytest.approx(0, abs=0.6)


def test_the_network_is_no_part_of_it(posterior):
    data, found = posterior
    other = GraphDataset([3 * r.e for r in data], covariates=[dict(r.covariates) for r in data])
    again = predict(found, other)
    for one, two in zip(predict(found, data), again, strict=True):
        np.testing.assert_allclose(one.mean, two.mean, atol=1e-6)


def test_cross_fitted_probabilities_follow_the_labels(rng):
    data = graphs(rng, 12, slope=1.0, level=1.5)  # the level is wrong, and the prior narrow
    belief = recalibration(data)
    mode = belief.fit([record.known for record in data])
    p = np.concatenate(belief.probabilities(mode, rng, 400))
    x = np.concatenate([record.covariates[TERM] for record in data])
    assert 0.1 < (logit(p) - x).mean() < 1.5
