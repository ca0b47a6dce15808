import base64
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import PARAMS, Page, believed, explained, ids, posterior_of, random_report

from edgebelief import metrics, report
from edgebelief.belief import PredictiveCheck, prior_predictive
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import Finding, Verdict
from edgebelief.report import Report
from edgebelief.report.payload import EDGES, GRAPHS, LARGEST, as_json, clean, histogram
from edgebelief.report.summary import Summary

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "=cmd()",
    "{{ 7 * 7 }}",
    "a\u202eb\u2066",
    "\u2028\u2029\x00\ud800",
    "👩‍👩‍👧",
    "x" * 200,
    "&lt;b&gt;",
)


@pytest.fixture(autouse=True)
def no_library(request, monkeypatch):
    """Pages without their five megabytes of Plotly, which no test here looks at (but one)."""
    if "with_library" not in request.fixturenames:
        monkeypatch.setattr("edgebelief.report.page.get_plotlyjs", lambda: "Plotly")


@pytest.fixture
def with_library():
    """The page as it is."""


@pytest.fixture
def small():
    """Three pairs, two of them believed, one near certain; the doubtful one is wrong."""
    data = GraphDataset([[1.0, 2.0, 3.0]], [[1, 0, 0]], [["ada", "bob", "cy"]])
    predictions = believed(data, [[0.97, 0.6, 0.1]])
    other = GraphDataset([[1.0, 2.5, 3.0]], [[1, 0, 0]])
    return Report.of(
        posterior_of(data, fitted=other), data, predictions=predictions, check_draws=0
    )  # fmt: skip


def test_what_was_learned_in_words(small):
    text = Page(small.html()).text
    assert "about one graph of 3 nodes: 3 pairs that could be joined" in text
    assert "2 pairs are predicted to be edges (probability over one half); 1 of them near" in text
    assert "1 pair is uncertain, with a probability between 0.2 and 0.8." in text
    assert "0.5 of 3 pairs (17.7 %) are expected to be wrong" in text  # 0.03 + 0.4 + 0.1
    assert "The most uncertain pair is ada and cy, with probability 0.60." in text
    assert "right for 66.7 % of them; the model expected 82.3 %." in text
    assert "Always predicting “no edge” would be right for 66.7 %." in text
    # Variances 0.0291, 0.24, 0.09: ada has the first two of 0.3591, cy the last two.
    assert "node cy is the most uncertain: its pairs have 91.9 % of the variance" in text
    assert "Of the total variance, 0.3 % is epistemic" in text  # 3 * 0.02^2 / 0.3591


def test_labels_that_were_fitted_are_said_to_be_optimistic(small):
    assert "labels that the model was fitted to" not in Page(small.html()).text
    again = Report.of(
        posterior_of(small.data), small.data, predictions=small.predictions, check_draws=0
    )
    text = Page(again.html()).text
    assert "These are the labels that the model was fitted to" in text
    assert "so the scores are optimistic" in text


def test_held_out_labels_are_scored_instead_of_those_that_were_fitted(small):
    """All three predicted wrongly by the fits that have not seen the labels."""
    fitted = posterior_of(small.data)
    held_out = believed(small.data, [[0.2, 0.9, 0.6]])
    made = {"predictions": small.predictions, "check_draws": 0, "reason_draws": 0}
    page = Page(Report.of(fitted, small.data, held_out=held_out, **made).html())
    assert "The predictions are right for 0 % of them" in page.text
    assert "has not seen it" in page.text
    assert "were fitted" not in page.text
    assert "2 pairs are predicted to be edges" in page.text  # by the model itself
    assert "fitted to" in Page(Report.of(fitted, small.data, **made).html()).text


def test_scores_are_those_of_the_metrics():
    made = random_report([8, 9], labels="some")
    text, predictions = Page(made.html()).text, made.predictions
    for name, score in (
        ("NLL", metrics.nll), ("error", metrics.error), ("Brier score", metrics.brier),
        ("Brier score of the mean", metrics.brier_of_mean), ("ECE", metrics.ece),
    ):  # fmt: skip
        found = score(predictions)
        assert f"{name} {float(found):.4g} ± {found.std:.2g}" in text
    correlation = metrics.uncertainty_error_correlation(predictions).all
    assert f"correlation of error and sd {correlation:.4g}" in text
    curve = metrics.calibration_curve(predictions)
    block = Page(made.html()).data["calibration"]
    assert block["count"] == curve.count.tolist()
    live = curve.count > 0
    np.testing.assert_allclose(
        np.array(block["accuracy"], float)[live], curve.accuracy[live], rtol=1e-4
    )


def test_the_block_of_json_is_the_data():
    made = random_report([5, 7], labels="some", names=[list("abcde"), list("fghijkl")])
    for graph, record, belief in zip(
        Page(made.html()).data["graphs"], made.data, made.predictions, strict=True
    ):
        assert graph["names"] == list(record.names)
        np.testing.assert_allclose(graph["distance"], record.e, rtol=1e-4)
        np.testing.assert_allclose(graph["mean"], belief.mean, atol=1e-6)
        np.testing.assert_allclose(graph["epistemic"], belief.epistemic_sd, atol=1e-4)
        said = "".join(
            str(int(a)) if known else "?" for a, known in zip(record.a, record.known, strict=True)
        )
        assert graph["label"] == said
        assert len(graph["x"]) == len(graph["y"]) == len(record.names)
        assert 0 <= min(graph["x"]) <= max(graph["x"]) <= 1


def test_a_probability_near_one_stays_below_one_in_the_block():
    data = GraphDataset([np.ones(6)])
    means = 1 - np.array([1e-14, 3e-10, 4e-7, 1e-5, 0.0, 1.0])
    predictions = believed(data, [means], 1e-9)
    made = Report.of(posterior_of(data), data, predictions=predictions, check_draws=0)
    (graph,) = Page(made.html()).data["graphs"]
    shown = np.array(graph["mean"], float)
    assert (shown < 1).tolist() == (means < 1).tolist()
    assert shown[4:].tolist() == [1, 0]
    # The page computes the total sd from it, and shows four decimals.
    np.testing.assert_allclose(
        np.sqrt(shown * (1 - shown)), np.sqrt(means * (1 - means)), atol=2e-6
    )
    np.testing.assert_allclose(graph["epistemic"], predictions[0].epistemic_sd, rtol=1e-3)


def test_tables_list_the_surest_and_the_least_sure_pairs():
    made = random_report([30, 20])
    summary, mean = Summary.of(made.predictions), np.concatenate([b.mean for b in made.predictions])
    firm = [pair.mean for pair in summary.firmest]
    assert firm == sorted(mean, reverse=True)[: len(firm)]
    weak = [abs(pair.mean - 0.5) for pair in summary.weakest]
    np.testing.assert_allclose(weak, np.sort(np.abs(mean - 0.5))[: len(weak)])
    for pair in summary.firmest + summary.weakest:  # that the pair is the one it says
        record = made.data[pair.graph]
        i, j = record.names.index(pair.source), record.names.index(pair.target)
        assert record.distance_matrix()[i, j] == pair.distance
        assert made.predictions[pair.graph].mean[_place(len(record.names), i, j)] == pair.mean


def test_edges_that_are_not_listed_are_counted():
    data = GraphDataset([np.ones(15)])
    for n_edges, said in {10: "", 11: "… and 1 more predicted edge:", 12: "… and 2 more"}.items():
        means = np.where(np.arange(15) < n_edges, 0.9, 0.1)
        predictions = believed(data, [means])
        made = Report.of(posterior_of(data), data, predictions=predictions, check_draws=0)
        text = Page(made.html()).text
        assert said in text
        assert ("edgebelief predict writes all pairs" in text) == bool(said)


def _place(n, i, j):
    return i * n - i * (i + 1) // 2 + j - i - 1


def test_names_change_words_and_nothing_else():
    plain = [f"n{k}" for k in range(len(HOSTILE))]
    tame, wild = (
        Page(
            explained(
                random_report([len(HOSTILE)], names=[names], **_texts(text)), names, names
            ).html()
        )
        for names, text in ((plain, "plain"), (list(HOSTILE), HOSTILE[1]))
    )
    assert wild.tags == tame.tags
    assert [(tag, set(attrs)) for tag, attrs in wild.elements] == [
        (tag, set(attrs)) for tag, attrs in tame.elements
    ]
    assert wild.data["graphs"][0]["names"] == [clean(name) for name in HOSTILE]
    assert wild.data["terms"][0]["levels"] == [clean(name) for name in HOSTILE]
    assert [term["name"] for term in wild.data["terms"]][1:] == [clean(name) for name in HOSTILE]
    assert {"<script>alert(1)</script>", "=cmd()"} <= {word.strip() for word in wild.words}


def _texts(text):
    """The other places where a caller's text appears."""
    finding = Finding(text, 1.0, text)
    return {
        "title": text, "assumptions": [text], "settings": {text: text}, "recipe": text,
        "verdict": Verdict({text: 1.0}, (finding,)),
    }  # fmt: skip


@given(st.lists(st.text(max_size=30), min_size=2, max_size=4, unique=True))
@settings(max_examples=50, deadline=None)
def test_json_survives_a_script_element_whatever_the_text(texts):
    block = str(as_json(texts))
    assert json.loads(block) == texts
    assert not set("<>&\u2028\u2029") & set(block)


@pytest.mark.usefixtures("with_library")
def test_the_policy_allows_the_two_scripts_and_no_source():
    page = Page(random_report([4]).html())
    (policy,) = [
        attrs["content"] for tag, attrs in page.elements
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    ]  # fmt: skip
    for attrs, parts in page.scripts:
        digest = hashlib.sha256("".join(parts).encode()).digest()
        named = f"'sha256-{base64.b64encode(digest).decode()}'" in policy
        assert named == ("type" not in attrs)
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    assert "unsafe-eval" not in policy


def test_no_element_refers_to_anything_outside():
    page = Page(random_report([4, 3], recipe="curl https://example.org").html())
    for tag, attrs in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "form", "base")
        assert "src" not in attrs
        assert not any(name.startswith("on") for name in attrs)
        assert attrs.get("href", "#").startswith("#")
    assert "url(" not in _css()
    assert "@import" not in _css()


def test_a_large_graph_makes_a_small_page():
    n_nodes = 400
    made = random_report([n_nodes])
    html = made.html()
    assert len(html) < 1_500_000
    page = Page(html)
    (graph,) = page.data["graphs"]
    assert len(graph["names"]) == n_nodes
    assert len(graph["nodes"]) == LARGEST
    assert len(graph["mean"]) == LARGEST * (LARGEST - 1) // 2
    assert len(graph["edges"]["mean"]) == EDGES
    strongest = np.sort(made.predictions[0].mean)[::-1][:EDGES]
    np.testing.assert_allclose(graph["edges"]["mean"], strongest, atol=1e-6)
    # The matrices' pairs are those of the named nodes, in order.
    i, j = graph["nodes"][3], graph["nodes"][150]
    assert graph["mean"][_place(LARGEST, 3, 150)] == pytest.approx(
        made.predictions[0].mean[_place(n_nodes, i, j)], abs=1e-6
    )
    assert f"the matrices show the {LARGEST} nodes with the largest expected degree" in page.text
    assert "the 5,000 most probable edges are drawn" in page.text


def test_graphs_up_to_300_nodes_are_whole():
    html = random_report([300]).html()
    (graph,) = Page(html).data["graphs"]
    assert graph["nodes"] is None
    assert len(graph["mean"]) == 300 * 299 // 2
    assert len(html) < 2_000_000


def test_of_many_graphs_the_first_are_shown_and_all_are_counted():
    page = Page(random_report([6] * 40).html())
    assert len(page.data["graphs"]) == GRAPHS
    assert page.tags["option"] == 2 * GRAPHS  # two selectors
    assert f"has only the first {GRAPHS} of 40 graphs" in page.text
    assert "about 40 graphs of 6 nodes each: 600 pairs" in page.text


def test_total_size_limits_the_graphs_too():
    assert len(report.payload.Shown.of([300] * 12).reduced) == 0
    assert report.payload.Shown.of([300] * 12).n_graphs == 2  # 44,850 pairs each
    assert report.payload.Shown.of([5000, 5000]).n_graphs == 2
    assert report.payload.Shown.of([20] * 3).n_graphs == 3


def test_without_labels_nothing_is_scored():
    page = Page(random_report([6, 5], labels="none").html())
    assert "calibration" not in ids(page)
    assert "No label is known for these graphs" in page.text
    assert page.data["calibration"] is None
    assert page.data["graphs"][0]["label"] is None
    assert not any(attrs.get("data-matrix") == "label" for _, attrs in page.elements)


def test_partly_known_labels_are_counted():
    made = random_report([9], labels="some")
    known = made.data.n_labels
    assert 0 < known < 36
    assert f"The label is known for {known} of 36 pairs" in Page(made.html()).text


def test_a_point_has_no_density():
    page = Page(random_report([6], n_draws=1).html())
    assert set(page.data["marginals"].values()) == {None}
    assert "gives a point estimate" in page.text
    assert not any("data-parameter" in attrs for _, attrs in page.elements)
    assert "0.2" in page.text  # PARAMS["theta"]


def test_parameters_are_explained_with_prior_and_posterior():
    made = random_report([6])
    page, summary = Page(made.html()), made.posterior.summary()
    assert "The sparsity of the graph" in page.text
    for name in PARAMS:
        row = " ".join(f"{summary[column][name]:.4g}" for column in summary.columns)
        assert f"{name} {row}" in page.text
        low, middle, high = made.posterior.model.prior[name].quantile(np.array([0.05, 0.5, 0.95]))
        assert f"{low:.4g} {middle:.4g} {high:.4g}" in page.text
        found = page.data["marginals"][name]
        x, density = made.posterior.density(name)
        np.testing.assert_allclose(found["posterior"], np.interp(found["x"], x, density), rtol=1e-3)
        # Log-normal, from its formula.
        marginal, at = made.posterior.model.prior[name], np.array(found["x"])
        z = np.log(at / marginal.median) / marginal.log_sd
        expected = np.exp(-(z**2) / 2) / (at * marginal.log_sd * np.sqrt(2 * np.pi))
        np.testing.assert_allclose(found["prior"], expected, rtol=1e-3)


@pytest.mark.parametrize("labels", ["all", "none"])
def test_the_least_graph_has_a_page(labels):
    page = Page(random_report([2], labels=labels).html())
    assert "one graph of 2 nodes: 1 pair that could be joined" in page.text
    assert len(page.data["graphs"][0]["mean"]) == 1


def test_belief_in_nothing_is_said():
    data = GraphDataset([[1.0, 2.0, 3.0]])
    predictions = believed(data, [[0.1, 0.1, 0.1]])
    made = Report.of(posterior_of(data), data, predictions=predictions, check_draws=0)
    text = Page(made.html()).text
    assert "No pair is predicted to be an edge" in text
    assert "so no edge is predicted" in text


def test_graphs_of_different_sizes():
    page = Page(random_report([3, 9, 2], labels="some").html())
    assert "about 3 graphs of 2 to 9 nodes each: 40 pairs" in page.text
    assert [len(graph["names"]) for graph in page.data["graphs"]] == [3, 9, 2]


def test_findings_cautions_and_assumptions_are_shown():
    finding = Finding("dead network", 0.9, "the network is dead. Multiply the distances by 10.")
    far = GraphDataset([np.full(15, 100.0)], [np.zeros(15)])
    made = random_report(
        [6], verdict=Verdict({"R-hat": 1.2}, (finding,)), fitted=far,
        assumptions=["No labels: trained on 50 simulated graphs."],
    )  # fmt: skip
    text = Page(made.html()).text
    assert "2 things to know before you rely on the numbers" in text
    assert "Dead network The network is dead. Multiply the distances by 10." in text
    assert "times those that were fitted" in text
    assert "Assumptions No labels: trained on 50 simulated graphs." in text
    assert "R-hat 1.2" in text
    assert "No problem found" not in text
    assert "No problem found" in Page(random_report([6]).html()).text


def test_settings_make_it_again():
    made = random_report([6], settings={"seed": 17}, recipe="make it\nagain", key=5)
    page = Page(made.html())
    for row in (
        "network DPG(depth=20, a0=0.5, lam0=17.0)", "depth 20 layers", "engine by hand",
        "engine: tol 0.01", "seed 17", "key of the report 5",
        "prior of delta LogNormal(median=100.0, log_sd=1.4142135623730951)",
        made.posterior.fingerprint.digest, f"NumPy {np.__version__}",
    ):  # fmt: skip
        assert row in page.text
    assert any("make it\nagain" in word for word in page.words)


def test_checks_are_the_prior_and_posterior_predictive():
    data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=2, n_nodes=8)
    made = Report.of(posterior_of(data), data, check_draws=60)
    page = Page(made.html())
    for check, block in zip(made.checks, page.data["checks"], strict=True):
        assert check.source == block["source"]
        assert block["n"] == 60
        assert sum(block["share"]) == pytest.approx(1, abs=1e-4)
        density = np.concatenate([record.a for record in data]).mean()
        assert block["observed"] == pytest.approx(density)
        assert f"Over 60 data sets drawn from the {check.source}" in page.text
    again = prior_predictive(_first_key(0), made.posterior.model, data, n=60)
    np.testing.assert_array_equal(made.checks[0].values, again.values)


def _first_key(key):
    from edgebelief.data.randomness import split

    return split(key, 4)[0]


def test_same_report_same_page():
    assert random_report([6, 5]).html() == random_report([6, 5]).html()


def test_write_leaves_one_whole_file(tmp_path):
    made = random_report([4])
    path = tmp_path / "report.html"
    path.write_text("old")
    assert made.write(path) == path
    assert path.read_text("utf-8") == made.html()
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_what_does_not_fit_is_refused():
    made, other = random_report([4]), random_report([5])
    with pytest.raises(ValueError, match=r"predictions are of .*5 nodes.*4 nodes"):
        Report.of(made.posterior, made.data, predictions=other.predictions)
    with pytest.raises(TypeError, match="list of sentences"):
        Report.of(made.posterior, made.data, assumptions="one")


def test_structure_for_those_who_do_not_see_it():
    page = Page(explained(random_report([5, 4]), ["age", "rank sum"], ["yes", "no"]).html())
    assert dict(page.elements[0][1])["lang"] == "en"
    for tag in ("header", "nav", "main", "footer", "h1"):
        assert page.tags[tag] == 1
    labelled = {attrs["for"] for tag, attrs in page.elements if tag == "label" and "for" in attrs}
    for tag, attrs in page.elements:
        if tag == "section":
            assert attrs["aria-labelledby"] in ids(page)
        if "href" in attrs:
            assert attrs["href"][1:] in ids(page)
        if "plot" in attrs.get("class", "").split():
            assert attrs["role"] == "img"
            assert attrs["aria-label"]
        if tag == "select" or (tag == "input" and attrs["type"] == "range"):
            assert attrs["id"] in labelled
        if attrs.get("class") == "scroll":
            assert attrs["tabindex"] == "0"
            assert attrs["aria-label"]


@pytest.mark.parametrize("palette", ["light", "dark"])
def test_colours_have_the_contrast_of_wcag_aa(palette):
    colours = _palettes()[palette]
    for paper in ("card", "paper", "note", "fine", "warn"):
        for ink in ("ink", "muted", "link"):
            assert _contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
    for mark in ("blue", "orange", "green", "focus", "mark", "muted"):  # WCAG 1.4.11
        assert _contrast(colours[mark], colours["card"]) >= 3, mark


def _css():
    return (Path(report.__file__).parent / "page.css").read_text("utf-8")


def _palettes():
    light, dark = re.findall(r"{([^{}]*--paper:[^{}]*)}", _css())
    found = {}
    for name, block in (("light", light), ("dark", dark)):
        found[name] = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    return found


def _contrast(first, second):
    """https://www.w3.org/TR/WCAG21/#dfn-contrast-ratio"""
    bright, dim = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _luminance(colour):
    channels = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("n_values", [2, 7, 20, 21, 30, 41])
def test_bins_hold_equally_many_of_the_values_that_a_count_can_take(n_values):
    """In a graph of 380 pairs the density is a multiple of 1/380; as many draws of each of them."""
    values = np.repeat((60 + np.arange(n_values)) / 380, 3)
    drawn = histogram(PredictiveCheck(values, values[0], "density", "posterior"))
    shares = np.array(drawn["share"])
    assert shares.sum() == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(shares[:-1], shares[0])  # the last bin may end before its edge
    assert 0 < shares[-1] <= shares[0]
    assert len(shares) <= 20
