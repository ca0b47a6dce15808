"""Displays draw what they hold; here each is drawn and read back from the axes."""

import arviz_base
import jax
import matplotlib
import numpy as np
import pytest
from scipy import stats

from edgebelief.belief import EdgeBelief, TermCurve, elicit_prior, term_curves, theta_sweep
from edgebelief.belief.checks import PredictiveCheck
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import EdgeModel, Fingerprint, Posterior, Verdict
from edgebelief.infer.prepare import prepare
from edgebelief.networks import DPG
from edgebelief.plots import (
    CheckDisplay,
    EdgesDisplay,
    GraphDisplay,
    MarginalsDisplay,
    PairDisplay,
    ReliabilityDisplay,
    SweepDisplay,
    TermsDisplay,
    TraceDisplay,
)
from edgebelief.readouts import Additive


@pytest.fixture(autouse=True)
def plt():
    """A backend without windows, and no figure left open."""
    before = matplotlib.get_backend()
    import matplotlib.pyplot as pyplot

    pyplot.switch_backend("Agg")
    yield pyplot
    pyplot.close("all")
    pyplot.switch_backend(before)


@pytest.fixture(scope="module")
def record():
    data = GraphDataset.sample(0, ErdosRenyi(0.4), 1, 8, n_signals=100)
    hidden = np.where(np.arange(28) % 5 == 0, np.nan, data[0].a)
    return GraphDataset([data[0].e], [hidden], [[*"abcdefgh"]])[0]


@pytest.fixture(scope="module")
def belief():
    rng = np.random.default_rng(0)
    mean = rng.uniform(size=28)
    total = np.sqrt(mean * (1 - mean))
    return EdgeBelief.of(mean, 0.6 * total)


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(0)
    draws = {name: rng.normal(size=(3, 50)) for name in ("theta", "delta", "b")}
    diverging = np.zeros((3, 50), bool)
    diverging[1, 7] = True
    return arviz_base.from_dict({"posterior": draws, "sample_stats": {"diverging": diverging}})


def drawn(axis):
    """The lines of an axis, as (x, y)."""
    return [line.get_xydata() for line in axis.lines]


def rendered(axes):
    """Draw for good: what cannot be laid out warns, and a warning is an error here."""
    np.ravel(axes)[0].figure.canvas.draw()


def test_sweep_lines_are_the_sweep(record):
    sweep = theta_sweep([record.e, 2 * record.e])
    density, components, weights = axes = SweepDisplay(sweep).plot()
    rendered(axes)
    for axis, values in ((density, sweep.density), (components, sweep.components)):
        *graphs, mean = drawn(axis)
        np.testing.assert_allclose([line[:, 1] for line in graphs], values)
        np.testing.assert_allclose(mean, np.stack([sweep.thetas, values.mean(0)], -1))
    (median,) = drawn(weights)
    np.testing.assert_allclose(median[:, 1], sweep.median_weight)
    assert density.get_xscale() == "log"


def test_sweep_of_an_elicited_prior_shows_where_its_mass_is(record):
    prior = elicit_prior(record.e, density=(0.2, 0.8), max_components=4, mass=0.9)
    display = SweepDisplay(prior)
    assert display.band == pytest.approx(prior.interval)
    axes = display.plot()
    rendered(axes)
    for axis in axes:
        bands = [
            patch.get_extents().transformed(axis.transData.inverted()) for patch in axis.patches
        ]
        assert any((b.x0, b.x1) == pytest.approx(prior.interval, rel=1e-6) for b in bands)
        labels = [text.get_text() for text in axis.get_legend().get_texts()]
        assert "90 % of the prior" in labels
    assert any(line[0, 1] == 4 for line in drawn(axes[1]))
    assert SweepDisplay(prior.sweep).band is None


def test_check_bars_are_shares_of_replicates(rng):
    checks = {
        "one": PredictiveCheck(rng.uniform(size=100), 0.4, "density"),
        "two": PredictiveCheck(rng.uniform(size=50), 0.4, "density", "posterior"),
    }
    display = CheckDisplay(checks)
    axes = display.plot()
    rendered(axes)
    for axis, check in zip(axes, checks.values(), strict=True):
        heights = [bar.get_height() for bar in axis.patches]
        counts = np.histogram(check.values, display.edges_of(check))[0]
        np.testing.assert_allclose(heights, counts / check.values.size)
        assert sum(heights) == pytest.approx(1)
        assert drawn(axis)[0][0, 0] == check.observed


def test_checks_without_titles_are_called_by_their_source(rng):
    before, after = (
        PredictiveCheck(rng.poisson(9, 30).astype(float), None, "triangles", source)
        for source in ("prior", "posterior")
    )
    display = CheckDisplay([before, after])
    assert list(display.checks) == ["prior", "posterior"]
    assert [axis.get_title(loc="left") for axis in display.plot()] == ["prior", "posterior"]
    with pytest.raises(ValueError, match="mapping with titles"):
        CheckDisplay([before, before])
    with pytest.raises(ValueError, match=r"one statistic; got \['density', 'triangles'\]"):
        CheckDisplay([before, PredictiveCheck(np.ones(3), None, "density", "posterior")])


def test_a_narrow_posterior_is_more_than_one_bar_beside_a_wide_prior(rng):
    checks = [
        PredictiveCheck(rng.uniform(size=1000), 0.9, "density"),
        PredictiveCheck(np.round(rng.normal(0.5, 0.004, 1000), 3), 0.9, "density", "posterior"),
    ]
    axes = CheckDisplay(checks).plot()
    rendered(axes)
    for axis in axes:
        heights = np.array([bar.get_height() for bar in axis.patches])
        assert (heights > 0).sum() > 10
        assert heights.max() < 0.2
    low, high = axes[1].get_xlim()
    assert high - low < 0.06  # the labels are not on this axis ...
    assert "labels 0.9" in [text.get_text() for text in axes[1].texts]  # ... but pointed at
    assert drawn(axes[0])[0][0, 0] == 0.9


def test_counts_get_a_bar_each_and_one_value_one_bar():
    counts = PredictiveCheck(np.repeat([1.0, 2.0, 4.0], 10), None, "components")
    one = PredictiveCheck(np.full(10, 3.0), 3.0, "components", "posterior")
    display = CheckDisplay([counts, one])
    assert display.edges_of(counts).tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    low, high = display.edges_of(one)
    assert low < 3 < high
    rendered(display.plot())


def test_reliability_points_bars_and_counts():
    confidence = np.array([0.55, np.nan, 0.8, 0.99])
    accuracy = np.array([0.5, np.nan, 0.6, 1.0])
    count, edges = np.array([20, 0, 100, 50]), np.linspace(0.5, 1, 5)
    display = ReliabilityDisplay(confidence, accuracy, count, edges)
    low, high = display.band
    for k in (0, 2, 3):  # by brute force: at most 2.5 % beyond either end
        p = stats.binom.pmf(np.arange(count[k] + 1), count[k], confidence[k])
        share = np.arange(count[k] + 1) / count[k]
        assert p[share < low[k] - 1e-9].sum() <= 0.025
        assert p[share > high[k] + 1e-9].sum() <= 0.025
        assert p[share <= low[k] + 1e-9].sum() > 0.025
    assert np.isnan(low[1])
    assert display.outside.tolist() == [False, False, True, False]
    diagram, counts = axes = display.plot()
    rendered(axes)
    _, inside, outside = drawn(diagram)
    np.testing.assert_allclose(inside, [[0.55, 0.5], [0.99, 1.0]])
    np.testing.assert_allclose(outside, [[0.8, 0.6]])
    assert [bar.get_height() for bar in counts.patches] == [20, 100, 50]
    bars = [(bar.get_y(), bar.get_y() + bar.get_height()) for bar in diagram.patches]
    np.testing.assert_allclose(bars, np.stack([low, high], -1)[[0, 2, 3]])
    with pytest.raises(ValueError, match="must be as many"):
        ReliabilityDisplay(confidence, accuracy, count, edges[:-1])


def test_matrices_are_those_of_record_and_belief(record, belief):
    display = EdgesDisplay(record, belief)
    axes = display.plot()
    rendered(axes)
    rows, cols = np.triu_indices(8, 1)
    expected = (record.e, belief.mean, belief.epistemic_sd, record.label_matrix()[rows, cols])
    for axis, values in zip(axes, expected, strict=True):
        shown = np.ma.filled(axis.images[-1].get_array(), np.nan)
        np.testing.assert_allclose(shown[rows, cols], values)
        np.testing.assert_allclose(shown[cols, rows], values)
        assert np.isnan(np.diagonal(shown)).all()
        assert [label.get_text() for label in axis.get_xticklabels()] == [*"abcdefgh"]
    unknown = np.ma.filled(axes[3].images[0].get_array(), 0.0)[rows, cols]
    np.testing.assert_array_equal(unknown == 1, ~record.known)
    assert "total sd" in EdgesDisplay(record, belief, spread="total").panels


def test_graph_edges_carry_belief_and_what_the_labels_say(record, belief):
    display = GraphDisplay(record, belief, least=0.2)
    rows, cols = np.triu_indices(8, 1)
    for k, (i, j) in enumerate(zip(rows, cols, strict=True)):
        pair, mean = (record.names[i], record.names[j]), belief.mean[k]
        assert display.graph.has_edge(*pair) == (mean >= 0.2 or record.a[k] == 1)
        if display.graph.has_edge(*pair):
            kind = display.graph.edges[pair]["kind"]
            assert display.graph.edges[pair]["belief"] == mean
            assert ("no label" in kind) == (not record.known[k])
            assert (kind == "missed") == (record.a[k] == 1 and mean < 0.2)
            assert (kind == "believed, labelled no edge") == (record.known[k] and record.a[k] == 0)
    axis = display.plot()
    rendered(axis)
    from matplotlib.collections import LineCollection

    lines = [c for c in axis.collections if isinstance(c, LineCollection)]
    assert sum(len(c.get_segments()) for c in lines) == display.graph.number_of_edges()
    ends = {tuple(np.round(point, 9)) for c in lines for s in c.get_segments() for point in s}
    assert ends <= {tuple(np.round(place, 9)) for place in display.positions.values()}


def test_nodes_of_firm_edges_are_drawn_nearer():
    e, sure = np.ones(6), np.array([0.99, 0.01, 0.01, 0.01, 0.01, 0.99])
    display = GraphDisplay(GraphDataset([e])[0], EdgeBelief.of(sure))
    at = display.positions
    joined = np.linalg.norm(at["0"] - at["1"])
    apart = min(np.linalg.norm(at[i] - at[j]) for i in "01" for j in "23")
    assert joined < 0.7 * apart


def test_marginals_are_the_posterior_s_and_the_prior_s(record):
    rng = np.random.default_rng(1)
    params = {
        name: rng.lognormal(np.log(center), 0.1, 500)
        for name, center in (("theta", 0.2), ("delta", 50.0), ("b", 3.0))
    }
    data = GraphDataset([record.e], [record.a])
    model = EdgeModel(DPG(depth=5))
    posterior = Posterior(
        model, params, np.full(500, 1 / 500), "by hand", {}, Fingerprint.of(data), Verdict()
    )
    display = MarginalsDisplay.of(posterior)
    axes = display.plot()
    rendered(axes)
    for axis, name in zip(axes, params, strict=True):
        after, before = drawn(axis)
        np.testing.assert_allclose(after, np.stack(posterior.density(name), -1))
        assert np.trapezoid(after[:, 1], after[:, 0]) == pytest.approx(1, abs=0.02)
        marginal = model.prior[name]
        by_scipy = stats.lognorm(marginal.log_sd, scale=marginal.median).pdf(before[:, 0])
        np.testing.assert_allclose(before[:, 1], by_scipy, rtol=1e-4)
        assert display.densities[name].mean == pytest.approx(params[name].mean())


@pytest.fixture(scope="module")
def additive():
    """A posterior with curves, by hand: scales and coefficients from the prior."""
    drawn = GraphDataset.sample(0, ErdosRenyi(0.4), 2, 8, n_signals=50)
    kinds = [{"kind": np.array(["a", "b", "c"])[np.arange(28) % 3]} for _ in drawn]
    data = GraphDataset([r.e for r in drawn], [r.a for r in drawn], covariates=kinds)
    model = EdgeModel(DPG(depth=5), Additive(features=("distance", "rank sum")))
    model = prepare(0, model, data).model
    params = model.prior.sample(jax.random.key(0), 300, model.sizes)
    params = {name: np.asarray(value, float) for name, value in params.items()}
    return Posterior(
        model, params, np.full(300, 1 / 300), "by hand", {}, Fingerprint.of(data), Verdict()
    )


def test_terms_are_drawn_with_their_bands(additive):
    curves = term_curves(additive)
    axes = TermsDisplay.of(additive).plot()
    rendered(axes)
    assert {one.name for one in curves} == {"distance", "rank sum", "kind"}
    for axis, one in zip(axes, curves, strict=True):
        zero, mean, *_ = drawn(axis)
        assert zero[:, 1].tolist() == [0, 0]
        np.testing.assert_allclose(mean, np.stack([one.x, one.mean], -1))
        band = np.concatenate([path.vertices for c in axis.collections for path in c.get_paths()])
        assert band[:, 1].min() == pytest.approx(one.low.min())
        assert band[:, 1].max() == pytest.approx(one.high.max())
        assert axis.get_title(loc="left").startswith(f"{one.name}: {one.size:.2g}")
        assert axis.get_ylim() == axes[0].get_ylim()
    levels = next(axis for axis in axes if axis.get_xlabel() == "kind")
    assert [label.get_text() for label in levels.get_xticklabels()] == ["a", "b", "c"]


def test_terms_that_do_not_matter_are_pale_and_said_to_be():
    x, flat = np.linspace(0, 1, 5), np.zeros(5)
    rises = TermCurve("z", x, x + 1, x + 0.5, x + 2, 1.5)
    names = ("$\\href{x}$", "W" * 50)  # neither mathematics nor wider than the axis
    idle = TermCurve("$\\frac$" * 9, x[:2], flat[:2], flat[:2] - 1, flat[:2] + 1, 0.01, names)
    needed, pale = axes = TermsDisplay([rises, idle]).plot()
    rendered(axes)
    assert needed.get_title(loc="left") == "z: 1.5"
    assert pale.get_title(loc="left").endswith(": 0.01, not needed")
    assert needed.lines[1].get_color() != pale.lines[1].get_color()
    assert "threshold" in needed.get_xlabel()
    assert max(len(label.get_text()) for label in pale.get_xticklabels()) <= 12
    (only,) = TermsDisplay([rises, idle]).plot(most=1)
    assert only.get_title(loc="left") == "z: 1.5"
    with pytest.raises(ValueError, match="no curve to draw"):
        TermsDisplay([]).plot()


def test_terms_of_many_levels_name_some():
    n = 100
    curve = TermCurve(
        "town", np.arange(n), *np.zeros((3, n)), 0.0, tuple(f"t{k}" for k in range(n))
    )
    (axis,) = TermsDisplay([curve]).plot()
    rendered(axis)
    assert len(axis.get_xticklabels()) <= 12
    five = TermsDisplay([curve] * 5).plot()
    assert five.size == 5
    assert len(five[0].figure.axes) == 5  # three and two: no empty one


def test_marginals_leave_vectors_out(additive):
    assert list(MarginalsDisplay.of(additive).densities) == ["theta", "delta", "b"]


def test_trace_lines_are_the_chains_in_order(tree):
    display = TraceDisplay(tree)
    axes = display.plot()
    rendered(axes)
    for k, name in enumerate(("theta", "delta", "b")):
        chains = tree["posterior"][name].values
        *lines, ticks = drawn(axes[2 * k + 1])
        np.testing.assert_allclose([line[:, 1] for line in lines], chains)
        assert ticks[:, 0].tolist() == [7]  # the divergence
        assert axes[2 * k].get_xlabel() == name


def test_pairs_are_the_draws_divergences_apart(tree):
    axes = PairDisplay(tree).plot()
    rendered(axes)
    theta, b = (tree["posterior"][name].values.ravel() for name in ("theta", "b"))
    usual, diverged = drawn(axes[6])  # third row, first column
    assert diverged.tolist() == [[theta[57], b[57]]]
    np.testing.assert_allclose(usual, np.delete(np.stack([theta, b], -1), 57, 0))
    assert not axes[1].axison


def test_entries_of_an_array_parameter_are_drawn_one_by_one():
    values = np.random.default_rng(0).normal(size=(2, 20, 2, 2))
    display = TraceDisplay(arviz_base.from_dict({"posterior": {"theta": values}}))
    assert list(display.draws) == ["theta[0,0]", "theta[0,1]", "theta[1,0]", "theta[1,1]"]
    np.testing.assert_array_equal(display.draws["theta[1,0]"], values[:, :, 1, 0])
    assert not display.diverging.any()


def test_displays_draw_on_axes_given_and_say_how_many(plt, record, belief):
    figure, axis = plt.subplots()
    assert GraphDisplay(record, belief).plot(axis).figure is figure
    _, axes = plt.subplots(2, 2)
    assert list(EdgesDisplay(record, belief).plot(axes)) == list(axes.ravel())
    with pytest.raises(ValueError, match="draws on 4 axes; got 1"):
        EdgesDisplay(record, belief).plot(axis)


def test_nothing_is_shown(plt, record, belief, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("a display showed itself"))
    GraphDisplay(record, belief).plot()
    SweepDisplay(theta_sweep(record.e, [0.1, 1.0])).plot()


def test_drawing_leaves_no_setting_changed(record, belief):
    before = dict(matplotlib.rcParams)
    EdgesDisplay(record, belief).plot()
    assert dict(matplotlib.rcParams) == before
    assert not jax.config.jax_enable_x64
