"""What raised and lowered belief: of an edge, and by every term."""

from dataclasses import replace

import numpy as np
import pytest
from reports import ROADS, Page, curve, ids, posterior_of, random_report, reasoned
from scipy.special import expit

from edgebelief.belief import explain, explain_edges, predict, term_curves
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import EdgeModel
from edgebelief.networks import DPG
from edgebelief.readouts import Additive, TwoSlope
from edgebelief.report import Report, words
from edgebelief.report.payload import TERMS
from edgebelief.report.reasons import LARGEST, reasons
from edgebelief.report.summary import Summary


@pytest.fixture(autouse=True)
def no_library(monkeypatch):
    """Pages without their five megabytes of Plotly."""
    monkeypatch.setattr("edgebelief.report.page.get_plotlyjs", lambda: "Plotly")


@pytest.fixture(scope="module")
def plain():
    return GraphDataset.sample(0, RandomGeometric(0.4), n_graphs=2, n_nodes=6, n_signals=50)


@pytest.fixture(scope="module")
def made(additive):
    posterior, data = additive
    return Report.of(posterior, data, check_draws=0)


@pytest.fixture(scope="module")
def page(made):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgebelief.report.page.get_plotlyjs", lambda: "Plotly")
        return Page(made.html())


def test_edges_explained_together_are_as_one_by_one(additive):
    posterior, data = additive
    rows, cols = data[1].support.endpoints
    for edge, table in zip((2, 20), explain_edges(3, posterior, data, (2, 20), 1), strict=True):
        alone = explain(3, posterior, data, str(rows[edge]), str(cols[edge]), 1)
        assert table["part"].tolist() == alone["part"].tolist()
        for column in ("value", "contribution", "low", "high"):
            np.testing.assert_allclose(table[column], alone[column], rtol=1e-4, atol=1e-5)
        predicted = predict(posterior, data)[1].mean[edge]
        assert alone.attrs["probability"] == pytest.approx(predicted, abs=1e-6)


def test_parts_of_the_paper_s_readout_are_delta_a_and_b(plain):
    posterior = posterior_of(plain, n_draws=1)
    mean = predict(posterior, plain)[1].mean
    for edge, table in enumerate(explain_edges(0, posterior, plain, range(15), 1)):
        weight, baseline, total = table["contribution"]
        assert baseline == -3.0  # PARAMS
        assert weight >= 0
        assert total == pytest.approx(weight + baseline)
        assert expit(total) == pytest.approx(mean[edge], abs=1e-6)
        np.testing.assert_allclose(table["low"], table["high"])
        assert table["value"].isna().all()


def test_slack_is_among_the_parts(plain):
    params = {"theta": [0.2], "delta": [30.0], "slack": [2.0], "b": [3.0]}
    posterior = replace(
        posterior_of(plain, n_draws=1),
        model=EdgeModel(DPG(depth=20), TwoSlope()),
        params={name: np.array(value) for name, value in params.items()},
    )
    made = Report.of(posterior, plain, check_draws=0)
    for why in made.reasons.values():
        parts = {part.name: part.contribution for part in why.parts}
        assert min(abs(parts["weight"]), abs(parts["slack"])) == 0  # one side of the threshold
        assert sum(parts.values()) == pytest.approx(why.logit)
    text = Page(made.html()).text
    assert "How fast the probability falls with the distance of a pair from having a weight" in text
    assert "at the threshold of having a weight is an edge with probability 1/(1 + exp(b))" in text
    assert "slack how far the pair is from having a weight" in text


def test_listed_parts_and_the_others_add_up_to_the_log_odds(made):
    summary = Summary.of(made.predictions)
    listed = {(pair.graph, pair.edge) for pair in summary.firmest + summary.weakest}
    assert set(made.reasons) == listed
    for (graph, edge), why in made.reasons.items():
        sizes = [abs(part.contribution) for part in why.parts]
        assert sizes == sorted(sizes, reverse=True)
        assert why.parts[0].share == 1
        assert sum(part.contribution for part in why.parts) + why.others == pytest.approx(why.logit)
        assert len(why.parts) + why.n_others == 6  # weight, baseline, four terms
        (road,) = [part for part in why.parts if part.name == "road"]
        assert road.value == made.data[graph].covariates["road"][edge]
        (distance,) = [part for part in why.parts if part.name == "distance"]
        assert float(distance.value) == pytest.approx(made.data[graph].e[edge], rel=1e-3)


def test_many_small_parts_are_added_up(made, monkeypatch):
    monkeypatch.setattr("edgebelief.report.reasons.LARGEST", 3)
    assert LARGEST > 3
    pair = Summary.of(made.predictions).weakest[0]
    (why,) = reasons(0, made.posterior, made.data, [pair], 64).values()
    assert (len(why.parts), why.n_others) == (3, 3)
    assert sum(part.contribution for part in why.parts) + why.others == pytest.approx(why.logit)


def test_rows_tell_what_raised_and_lowered_them(made, page):
    pair = Summary.of(made.predictions).weakest[0]
    why = made.reasons[pair.graph, pair.edge]
    assert page.tags["details"] == 22  # ten and ten edges, the terms and the verdict's figures
    for part in why.parts:
        assert f"{part.name} {part.value} {words.signed(part.contribution)}" in page.text
        assert f"{words.signed(part.low)} to {words.signed(part.high)}" in page.text
    assert f"log odds {words.signed(why.logit)}" in page.text
    most = max(
        (part for part in why.parts if part.name != "baseline"), key=lambda p: p.contribution
    )
    assert why.raised == most
    assert f"Raised by {most.name} {words.signed(most.contribution)}" in page.text


def test_an_edge_without_reasons_is_a_plain_row():
    page = Page(random_report([6]).html())
    assert page.tags["details"] == 0
    assert "what raises and lowers its probability" not in page.text


def test_what_is_the_same_for_all_is_no_reason():
    why = reasoned([("baseline", -3.0), ("weight", 0.0)])
    assert (why.raised, why.lowered) == (None, None)
    why = reasoned([("weight", 4.0), ("baseline", -3.0), ("age", -1.0), ("sum", -2.0)])
    assert (why.raised.name, why.lowered.name) == ("weight", "sum")


def test_curves_are_those_of_the_posterior(made, page):
    curves = {one.name: one for one in term_curves(made.posterior, 5)}
    assert [one["name"] for one in page.data["terms"]] == [one.name for one in made.terms]
    assert {one["name"] for one in page.data["terms"]} == {"z", "rank sum", "distance", "road"}
    for one in page.data["terms"]:
        expected = curves[one["name"]]  # of other draws
        np.testing.assert_allclose(one["x"], expected.x, rtol=1e-3, atol=1e-3)
        room = 0.25 * np.ptp([expected.low, expected.high])
        np.testing.assert_allclose(one["mean"], expected.mean, atol=room)
        assert one["levels"] == (list(ROADS) if one["name"] == "road" else None)
        assert (np.array(one["low"]) <= one["mean"]).all()
        assert (np.array(one["high"]) >= one["mean"]).all()


def test_vectors_are_counted_and_not_listed(made, page):
    sizes = made.posterior.model.sizes
    assert set(page.data["marginals"]) == {"theta", "delta", "b"}
    shown = [attrs["data-parameter"] for _, attrs in page.elements if "data-parameter" in attrs]
    assert shown == ["theta", "delta", "b"]
    assert (
        f"The model has 3 scalar parameters, and {sum(sizes.values())} further parameters "
        f"({sizes['curves']} coefficients and {sizes['scales']} scales) of the curves under "
        f"“What raises or lowers the probability”."
    ) in page.text
    assert "to which the curves add nothing" in page.text  # b
    assert "further parameter" not in Page(random_report([5]).html()).text


def test_terms_have_a_section_where_there_are_terms(page):
    assert "terms" in ids(page)
    assert ("a", {"href": "#terms"}) in page.elements
    assert "Besides the weight from the network, 4 terms add to the log odds of a pair" in (
        page.text
    )
    for _, attrs in page.elements:
        if "data-term" in attrs:
            assert attrs["role"] == "img"
            assert attrs["aria-label"].startswith("What ")
    plain = Page(random_report([5]).html())
    assert "terms" not in ids(plain)
    assert plain.data["terms"] == []


def test_needed_terms_are_named():
    yes = [curve("near", 1.0), curve("<b>", 0.5)]
    no = [curve("far", 0.0), curve("wide", 0.0), curve("high", 0.0)]

    def said(*terms):
        return " ".join(words.needed(terms, "NUTS"))

    assert said(*yes, *no) == (
        "<strong>The labels need <bdi>near</bdi> and <bdi>&lt;b&gt;</bdi>.</strong> "
        "The band of <bdi>far</bdi>, <bdi>wide</bdi> and <bdi>high</bdi> includes zero "
        "everywhere: the labels do not need them."
    )
    assert said(yes[0], no[0]).endswith("everywhere: the labels do not need it.")
    assert said(*yes) == "<strong>The labels need every one of them.</strong>"
    assert said(yes[0]) == "<strong>The labels need <bdi>near</bdi>.</strong>"
    assert "the labels need none of them" in said(*no)
    some = [yes[0]._replace(share=0.4), no[0]._replace(share=0.0)]
    assert said(*some).startswith("The model is a mixture of parts with some of the terms.")
    assert "need <bdi>near</bdi>." in said(*some)
    assert said(some[1]) == "The model is a mixture of parts without any of them."
    point = curve("near", 1.0)._replace(low=np.ones(5), mean=np.ones(5), high=np.ones(5))
    assert said(point).startswith("NUTS gives a point estimate without a credible band")


def test_terms_in_numbers():
    near = curve("near", 0.0)._replace(mean=np.array([2.0, 1, 0, -1, -3.456]))
    assert words.extent(near) == ("\u22123.46 at 4", "+2.00 at 0")
    assert words.picture(near) == "What near adds: +2.00 at 0, 0 at 2, \u22123.46 at 4"
    road = curve("road", 0.0, ("a", "b", "c", "d", "e"))
    road = road._replace(mean=near.mean)
    assert words.extent(road) == ("\u22123.46 at e", "+2.00 at a")
    assert words.picture(road).startswith("What road adds: a +2.00, b +1.00, c 0")
    assert [words.signed(x) for x in (0.004, -0.006, 12.34, 1234.5)] == [
        "0", "\u22120.01", "+12.3", "+1,234.5",
    ]  # fmt: skip


def test_of_very_many_terms_the_largest_are_drawn():
    made = replace(random_report([4]), terms=tuple(curve(f"term {k}", 1.0) for k in range(30)))
    page = Page(made.html())
    assert len(page.data["terms"]) == TERMS
    assert f"The {TERMS} largest of 30 terms are drawn; the table has all." in page.text
    assert "term 29 1 yes" in page.text


def test_settings_of_an_additive_readout_can_be_read(page):
    assert (
        "readout Additive(features=('z', 'rank sum', 'distance'), covariates=('road',), "
        "relative=False, interactions=False)"
    ) in page.text
    assert words.described(Additive(("z",), relative=True)) == (
        "Additive(features=('z',), covariates=None, relative=True, interactions=False)"
    )
