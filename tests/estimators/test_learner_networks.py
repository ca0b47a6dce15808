"""The paper's other networks in a learner, and from the shell."""

import json

import numpy as np
import pytest

from edgebelief import GraphLearner, load
from edgebelief.cli import main
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.estimators.settings import network_of, prior_of
from edgebelief.infer import NUTS, EdgeModel, Modes, Prior, default_engine, fixed
from edgebelief.networks import MIMO, PDS, StochasticHead
from edgebelief.persist.modelfile import ModelFileError
from edgebelief.readouts import Affine, Shift

# So few labels leave findings.
pytestmark = pytest.mark.filterwarnings("ignore::edgebelief.infer.InferenceWarning")
SHORT = NUTS(n_warmup=20, n_draws=20, n_chains=2, target_accept=0.8)


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(3, RandomGeometric(0.5), n_graphs=6, n_nodes=8, n_signals=100)


@pytest.fixture(scope="module")
def head(data):
    """Partially stochastic, on a base that is given."""
    network = StochasticHead(MIMO(channels=2, depth=5), theta=(0.3, 0.15, 0.1, 0.4), depth=3)
    return GraphLearner(network, inference=SHORT).fit(data)


def test_names_mean_networks_engines_and_priors(data):
    assert network_of("pds", 30) == PDS(depth=30)
    assert network_of("mimo", 30) == MIMO(depth=30)
    assert network_of("mimo-e", 30) == StochasticHead(MIMO(depth=30))
    engines = {name: default_engine(EdgeModel(network_of(name, 3))) for name in ("pds", "mimo")}
    assert isinstance(engines["pds"], NUTS)
    assert isinstance(engines["mimo"], Modes)
    head = default_engine(EdgeModel(network_of("mimo-e", 3)))
    assert isinstance(head, NUTS)
    assert head.max_tree_depth < NUTS().max_tree_depth
    assert head.target_accept is not None  # one attempt
    assert prior_of("flat", data, PDS(), Shift()) == Prior.named("flat", "pds")
    for network in (PDS(depth=3), MIMO(depth=3)):
        with pytest.raises(ValueError, match="beliefs about graphs make a prior for DPG"):
            prior_of({"density": (0.1, 0.5)}, data, network, Affine())


@pytest.mark.parametrize("network", ["pds", "mimo", "mimo-e"])
@pytest.mark.parametrize("readout", ["additive", "two-slope"])
def test_other_readouts_are_for_dpg(data, network, readout):
    with pytest.raises(ValueError, match="is for DPG"):
        GraphLearner(network, depth=3, readout=readout).fit(data)


def test_a_network_without_a_converged_form_says_so(data):
    with pytest.raises(ValueError, match="no converged form"):
        GraphLearner("mimo", depth=None).fit(data)


@pytest.mark.slow
def test_a_head_predicts_explains_saves_and_reports(head, data, tmp_path):
    p = head.predict_proba(data)
    assert p.shape == (6, 8, 8)
    head.save(tmp_path / "model.eb")
    again = load(tmp_path / "model.eb")
    np.testing.assert_array_equal(again.predict_proba(data), p)
    assert again.model_.network == head.model_.network
    table = again.explain(data[:1], 0, 1)
    assert table["part"].tolist() == ["channel 1", "channel 2", "baseline", "logit"]
    assert table["contribution"].iloc[:-1].sum() == pytest.approx(table["contribution"].iloc[-1])
    page = again.report(tmp_path / "page.html", data).read_text()
    assert all(f"delta[{k}]" in page for k in (0, 1))
    checks = again.predictive_checks(data, n=20)
    assert len(checks) == 2


def test_a_file_may_not_ask_for_any_number_of_channels():
    from edgebelief.persist.learner import check_network

    with pytest.raises(ModelFileError, match="1,000 channels"):
        check_network(MIMO(channels=1000))


def test_what_is_fixed_is_saved(data, tmp_path):
    prior = Prior.named("altered").replace(theta=fixed(0.2))
    learner = GraphLearner(depth=5, prior=prior, readout="affine").fit(data)
    learner.save(tmp_path / "model.eb")
    assert load(tmp_path / "model.eb").model_.prior == prior
    assert learner.posterior_.summary()["sd"]["theta"] == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("network", ["pds", "mimo", "mimo-e"])
def test_the_whole_walk_in_a_shell(network, tmp_path, capsys):
    data, model = str(tmp_path / "data.npz"), str(tmp_path / "model.eb")
    simulate = ["simulate", "--nodes", "10", "--graphs", "12", "--signals", "500"]
    assert main([*simulate, "--out", data]) == 0
    depth = "30" if network == "pds" else "2"
    fit = ["fit", data, "--network", network, "--depth", depth, "--inference", "map"]
    fit += ["--out", model, "--json"]
    capsys.readouterr()
    assert main(fit) in (0, 4)  # so few labels may leave a finding
    answer = json.loads(capsys.readouterr().out)
    assert answer["network"] in ("PDS", "MIMO", "StochasticHead")
    assert main(["predict", model, data, "--out", str(tmp_path / "edges.csv")]) in (0, 4)
    assert main(["report", model, data, "--out", str(tmp_path / "page.html")]) in (0, 4)
    assert main(["info", model]) == 0
