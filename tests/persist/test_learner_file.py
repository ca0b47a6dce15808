import builtins
import dataclasses
import itertools
import json
import sys
import tracemalloc
from contextlib import contextmanager
from functools import partial

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy

from edgebelief import load
from edgebelief.data import ErdosRenyi, GraphDataset, smooth_signals
from edgebelief.data.reference import Reference
from edgebelief.estimators import GraphLearner
from edgebelief.evidence import ForestImportance, Precision
from edgebelief.infer import (
    MAP,
    NUTS,
    VI,
    EdgeModel,
    Exact,
    Finding,
    Fingerprint,
    Posterior,
    Prior,
    Verdict,
    lognormal,
    loguniform,
    normal,
)
from edgebelief.networks import DPG, PDS
from edgebelief.networks.base import MOST_LAYERS
from edgebelief.persist import modelfile
from edgebelief.persist.learner import renamed
from edgebelief.persist.modelfile import ModelFileError
from problems import readable

DEPTH = 10


@pytest.fixture(scope="module")
def data():
    return GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=8, n_nodes=8, n_signals=100)


@pytest.fixture(scope="module")
def exact(data):
    return GraphLearner(readout="affine", depth=DEPTH, inference=Exact(tol=0.5)).fit(
        data[:6]
    )  # a small file


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model.eb"


@pytest.fixture(scope="module")
def contents(exact, path):
    """Of the file of `exact`: settings and arrays."""
    exact.save(path)
    return modelfile.read(path)[1:]


def loaded(learner, path):
    learner.save(path)
    return load(path)


def check_identical(learner, again, data):
    for call in (
        lambda one: one.predict_proba(data, return_std=True),
        lambda one: one.sample_graphs(data, n=50),
        lambda one: one.posterior_.weights,
        lambda one: list(one.posterior_.draws(7, 100).values()),
        lambda one: one.predictive_checks(data, n=50)[0].values,
    ):
        np.testing.assert_array_equal(call(again), call(learner))
    pd.testing.assert_frame_equal(
        again.edge_table(data), learner.edge_table(data), check_exact=True
    )
    pd.testing.assert_frame_equal(
        again.posterior_.summary(), learner.posterior_.summary(), check_exact=True
    )
    for name in ("verdict", "fingerprint", "settings", "engine", "log_evidence", "n_chains"):
        assert getattr(again.posterior_, name) == getattr(learner.posterior_, name), name
    for name, stat in learner.posterior_.sample_stats.items():
        np.testing.assert_array_equal(again.posterior_.sample_stats[name], stat)
        assert again.posterior_.sample_stats[name].dtype == stat.dtype
    assert (again.seed_, again.scale_) == (learner.seed_, learner.scale_)
    assert repr(again) == repr(learner)


def test_an_exact_posterior_comes_back_to_the_last_bit(exact, data, path):
    check_identical(exact, loaded(exact, path), data[6:])
    x, height = exact.posterior_.density("theta")
    np.testing.assert_array_equal(load(path).posterior_.density("theta"), (x, height))


def by_hand(data, engine, n_draws, n_chains=1):
    """A learner with a posterior such as that engine makes, and all that it may hold."""
    rng = np.random.default_rng(0)
    params = {"theta": rng.random(n_draws), "delta": rng.random(n_draws), "b": rng.random(n_draws)}
    weights = rng.dirichlet(np.ones(n_draws)) if engine == VI() else np.full(n_draws, 1 / n_draws)
    shape = (n_chains, n_draws // n_chains)
    stats = {"diverging": rng.random(shape) < 0.5, "n_steps": rng.integers(1, 9, shape)}
    learner = GraphLearner(readout="affine", depth=DEPTH, inference=engine, random_state=3)
    learner.model_ = EdgeModel(DPG(DEPTH))
    learner.seed_, learner.scale_, learner.comparison_ = 5, 0.25, None
    learner.first_pass_ = None
    learner.evidence_ = ()
    figures = {"R-hat": float(rng.random()), "log density": -np.inf}
    learner.posterior_ = Posterior(
        learner.model_,
        params,
        weights,
        type(engine).__name__,
        dataclasses.asdict(engine) | {"chains per device": [1, n_chains - 1]},
        dataclasses.replace(Fingerprint.of(data), scale=0.25 * Fingerprint.of(data).scale),
        Verdict(figures, (Finding("R-hat", 1.3, "Chäins disagree."),), ("of one kind",)),
        n_chains=n_chains,
        sample_stats=stats if n_chains > 1 else {},
    )
    return learner


@pytest.mark.parametrize(
    ("engine", "n_draws", "n_chains"), [(MAP(), 1, 1), (VI(), 24, 1), (NUTS(), 24, 4)], ids=readable
)
def test_draws_come_back_to_the_last_bit(data, path, engine, n_draws, n_chains):
    learner = by_hand(data, engine, n_draws, n_chains)
    check_identical(learner, loaded(learner, path), data[6:])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::edgebelief.infer.InferenceWarning")  # so few draws
@pytest.mark.parametrize(
    "engine",
    [MAP(starts=2), VI(steps=50, n_draws=40), NUTS(150, 20, 2, target_accept=0.8)],
    ids=readable,
)
def test_what_engines_make_comes_back_to_the_last_bit(data, path, engine):
    learner = GraphLearner(readout="affine", depth=2, inference=engine).fit(data[:6])
    check_identical(learner, loaded(learner, path), data[6:])


def test_a_simulated_learner_keeps_its_assumptions(path):
    learner = GraphLearner.simulated(
        ErdosRenyi(0.4), n_nodes=8, n_signals=100, n_graphs=6, depth=DEPTH, readout="affine"
    )
    again = loaded(learner, path)
    assert again.posterior_.verdict.assumptions == learner.posterior_.verdict.assumptions != ()
    assert again.scale_ == "median"
    signals = 1e3 * smooth_signals(9, ErdosRenyi(0.4).sample(9, 8), 100)
    np.testing.assert_array_equal(again.predict_proba(signals), learner.predict_proba(signals))


@pytest.mark.parametrize(
    "settings",
    [
        {"prior": {"density": (0.1, 0.8), "mean_degree": None}},
        {"prior": Prior(theta=loguniform(0.1, 3), delta=normal(0, 9.5), b=lognormal(0.1, 0.3))},
        {"prior": "flat", "scale": "auto"},
        {"scale": np.float64(2.5), "random_state": np.int64(3)},
        {"metric": "correlation", "missing": "pairwise", "preprocess": "log-returns"},
        {"metric": "log-euclidean", "scale": "median", "random_state": None},
        {"inference": NUTS(n_draws=50, target_accept=0.9, progress=False)},
        {"inference": VI(init="prior")},
        {"inference": MAP(space="unconstrained", prior=None)},
        {"inference": Exact(tol=0.2)},
        {"inference": "vi", "depth": None},
        {"network": DPG(depth=3, a0=0.1, lam0=2), "depth": 7},
        {"network": PDS(depth=None, gamma=0.01)},
        {"readout": "additive", "evidence": "none"},
        {"readout": "additive", "evidence": ["profile", Precision(ridges=(0.1, 1e-7))]},
        {"readout": "additive", "evidence": [ForestImportance(seed=10**9)]},
    ],
    ids=readable,
)
def test_settings_of_the_learner_come_back(data, path, settings):
    """Refitting a loaded learner is refitting the saved one."""
    learner = by_hand(data, MAP(), 1).set_params(**settings)
    again = loaded(learner, path).get_params()
    for name, value in learner.get_params().items():
        assert again[name] == value, name
        assert type(again[name]) is type(value) or isinstance(value, np.generic), name
    prior = again["prior"]
    if isinstance(prior, Prior):
        assert list(prior) == list(settings["prior"])  # their order is that of sampling keys


def test_a_spent_random_state_is_not_kept(data, path):
    learner = by_hand(data, MAP(), 1).set_params(random_state=np.random.RandomState(0))
    again = loaded(learner, path)
    assert again.random_state is None
    assert again.seed_ == 5


def test_a_model_of_many_graphs_is_kept(data, path):
    learner = by_hand(data, MAP(), 1)
    many = dataclasses.replace(
        learner.posterior_.fingerprint, n_graphs=200_000, n_nodes=(20,) * 200_000
    )
    learner.posterior_ = dataclasses.replace(learner.posterior_, fingerprint=many)
    assert loaded(learner, path).posterior_.fingerprint == many


def test_an_older_file_has_no_summaries_to_compare_graphs_with(exact, data, path):
    exact.save(path)
    kind, settings, arrays = modelfile.read(path)
    assert load(path).posterior_.fingerprint.reference == Reference.of(data, range(6))
    del settings["posterior"]["fingerprint"]["reference"], arrays["reference"]
    modelfile.write(path, kind, settings, arrays)
    old = load(path)
    assert len(old.posterior_.fingerprint.reference) == 0
    assert old.typicality(data)["p"].isna().all()
    np.testing.assert_array_equal(old.predict_proba(data), exact.predict_proba(data))


def test_a_comparison_comes_back_and_old_names_of_its_columns_become_new_ones(data, path):
    learner = by_hand(data, MAP(), 1)
    columns = ["elpd", "se", "behind", "se_behind", "largest_k", "refits", "log_evidence"]
    rows = [[-3.5, 1.0, 0.0, 0.0, 0.5, 1.0, np.nan], [-4.5, 1.0, 1.0, 0.2, 0.6, 0.0, -9.0]]
    table = pd.DataFrame(rows, index=["additive", "affine"], columns=columns)
    learner.comparison_ = table
    pd.testing.assert_frame_equal(loaded(learner, path).comparison_, table)
    kind, settings, arrays = modelfile.read(path)
    old = ["elpd", "se", "behind", "se of behind", "largest k", "refits", "log evidence"]
    settings["comparison"]["columns"] = old
    modelfile.write(path, kind, settings, arrays)
    pd.testing.assert_frame_equal(load(path).comparison_, table)


class OwnNetwork(DPG):
    pass


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": np.corrcoef}, "the metric is a function.*metric='precomputed'"),
        ({"network": OwnNetwork(3)}, "this learner has a OwnNetwork"),
        ({"prior": {"density": {0.1}}}, "set"),
        ({"evidence": [np.corrcoef]}, "'corrcoef' is a function.*as covariates"),
        ({"evidence": [ForestImportance(n_trees=10**6)]}, "'forest' go beyond 100,000"),
    ],
    ids=readable,
)
def test_what_a_file_does_not_keep_is_refused(data, tmp_path, settings, message):
    learner = by_hand(data, MAP(), 1).set_params(**settings)
    with pytest.raises(ModelFileError, match=message):
        learner.save(tmp_path / "model.eb")
    assert not list(tmp_path.iterdir())


def test_a_model_with_a_network_of_ones_own_is_refused(data, tmp_path):
    learner = by_hand(data, MAP(), 1)
    own = dataclasses.replace(learner.posterior_, model=EdgeModel(OwnNetwork(3)))
    learner.posterior_ = own
    with pytest.raises(ModelFileError, match="this learner has a OwnNetwork"):
        learner.save(tmp_path / "model.eb")


# Files that are sound as files (test_modelfile.py has the others) with hostile contents


DELETE = object()
MAP_OF_ONE = {"is": "LogNormal", "of": {"median": 1.0, "log_sd": 1.0}}
PROFILE = {"is": "Profile", "of": {}}  # which the readout of the file does not use
POSTERIOR, LEARNER, MODEL = ("posterior",), ("learner",), ("model",)
NETWORK = (*MODEL, "network")


def network(**fields):
    return {"is": "DPG", "of": {"depth": 10, "a0": 0.5, "lam0": 17.0, **fields}}


SETTINGS = [
    # Missing keys, at every level.
    *[((key,), DELETE) for key in ("learner", "seed", "scale", "model", "posterior")],
    *[((*MODEL, key), DELETE) for key in ("network", "readout", "prior", "likelihood")],
    *[
        ((*POSTERIOR, key), DELETE)
        for key in ("engine", "settings", "fingerprint", "verdict", "log_evidence", "n_chains")
    ],
    ((*LEARNER, "metric"), DELETE),
    ((*NETWORK, "is"), DELETE),
    ((*NETWORK, "of"), DELETE),
    ((*POSTERIOR, "fingerprint", "digest"), DELETE),
    ((*POSTERIOR, "verdict", "findings"), DELETE),
    # Wrong types.
    *[((key,), value) for key in ("learner", "model", "posterior") for value in (None, 3, "x", [])],
    *[(("seed",), value) for value in (None, "1", 1.5, True, -1, 2**32, 2**64 - 1, [1])],
    *[(("scale",), value) for value in (None, 1, "mean", -1.0, 0.0, np.inf, np.nan, [1.0], {})],
    *[((*MODEL, "prior"), value) for value in ("altered", None, MAP_OF_ONE, [])],
    ((*MODEL, "prior"), {"is": "dict", "of": dict.fromkeys(["theta", "delta", "b"], 1.0)}),
    ((*MODEL, "prior"), {"is": "Prior", "of": {"theta": MAP_OF_ONE}}),
    ((*MODEL, "prior"), {"is": "Prior", "of": dict.fromkeys(["theta", "delta", "b"], 1.0)}),
    ((*MODEL, "likelihood"), network()),
    ((*MODEL, "readout"), network()),
    *[(NETWORK, value) for value in (None, "dpg", 3, MAP_OF_ONE, {"is": "Affine", "of": {}})],
    (NETWORK, {"is": "PDS", "of": {"depth": 10, "gamma": 0.1}}),  # of other parameters
    # Numbers that are none, or absurd.
    *[
        (NETWORK, network(depth=depth))
        for depth in (-1, 0, 2.0, "3", True, MOST_LAYERS + 1, 10**9, 10**18, 2**63)
    ],
    *[(NETWORK, network(a0=a0)) for a0 in (None, "x", np.nan, np.inf, [0.5], {})],
    (NETWORK, network(more=1)),
    *[
        ((*MODEL, "prior", "of", "b"), {"is": kind, "of": fields})
        for kind, fields in (
            ("LogNormal", {"median": -1.0, "log_sd": 1.0}),
            ("LogNormal", {"median": 1.0, "log_sd": 0.0}),
            ("LogNormal", {"median": "1", "log_sd": 1.0}),
            ("LogNormal", {"median": np.nan, "log_sd": 1.0}),
            ("LogNormal", {"median": 1.0}),
            ("LogUniform", {"low": 2.0, "high": 1.0}),
            ("Normal", {"mean": 0.0, "sd": -1.0}),
        )
    ],
    *[((*LEARNER, "depth"), depth) for depth in (-1, 1.5, "3", 10**9, 10**18)],
    *[((*LEARNER, "network"), value) for value in ("gru", None, 3, MAP_OF_ONE)],
    *[((*LEARNER, "metric"), value) for value in ("cosine", None, 3, [], network())],
    *[((*LEARNER, "missing"), value) for value in ("drop", None, [])],
    *[((*LEARNER, "preprocess"), value) for value in ("sqrt", 3, "log")],
    *[((*LEARNER, "inference"), value) for value in ("gibbs", None, network())],
    ((*LEARNER, "inference"), {"is": "NUTS", "of": {"n_draws": -1}}),
    ((*LEARNER, "inference"), {"is": "NUTS", "of": {"n_draws": "x"}}),
    ((*LEARNER, "inference"), {"is": "Exact", "of": {"tol": 2.0}}),
    *[((*LEARNER, "prior"), value) for value in (3, None, [], network())],
    *[((*LEARNER, "scale"), value) for value in ([], network())],
    *[((*LEARNER, "evidence"), value) for value in ("x", 3, None, ["x"], [3], ["profile"])],
    ((*LEARNER, "evidence"), {"is": "Custom", "of": {"name": "x", "function": "eval"}}),
    *[(("evidence",), value) for value in (3, None, "x", ["profile"], [network()], [PROFILE])],
    (("evidence",), [{"is": "Precision", "of": {"ridges": [np.nan]}}]),
    (("evidence",), [{"is": "MostLikelyGraph", "of": {"max_iter": 10**15}}]),
    (("evidence",), [{"is": "Precision", "of": {"ridges": [0.001 * k for k in range(1, 999)]}}]),
    *[((*LEARNER, "random_state"), value) for value in ("x", 1.5, [])],
    ((*LEARNER, "verbose"), True),
    *[((*POSTERIOR, "engine"), value) for value in ("Gibbs", "", None, 3)],
    *[((*POSTERIOR, "settings"), value) for value in (None, 3, "x", network())],
    *[((*POSTERIOR, "n_chains"), value) for value in (0, -1, 10**18, 1.0, True, "1", None)],
    *[((*POSTERIOR, "log_evidence"), value) for value in ("x", [], True)],
    *[
        ((*POSTERIOR, "fingerprint", key), value)
        for key in ("n_graphs", "n_labels", "scale", "n_signals", "digest")
        for value in ([], {}, -1, True, np.nan)
    ],
    *[
        ((*POSTERIOR, "fingerprint", "reference"), value)
        for value in (None, "x", ["x"], [3] * 15, ["x"] * 15, {})
    ],
    ((*POSTERIOR, "fingerprint", "n_graphs"), 10**18),
    ((*POSTERIOR, "fingerprint", "n_labels"), 1e18),
    ((*POSTERIOR, "fingerprint", "n_signals"), "x"),
    *[((*POSTERIOR, "verdict", "figures"), value) for value in (None, [], {"a": "x"}, {"a": []})],
    *[
        ((*POSTERIOR, "verdict", "findings"), value)
        for value in (None, 3, "x", [1], [["a", 1.0]], [["a", "b", "c"]], [[1, 2.0, "c"]])
    ],
    *[((*POSTERIOR, "verdict", "assumptions"), value) for value in (None, 3, [1], [None])],
    # Names of what is not there.
    *[
        (place, {"is": name, "of": {}})
        for place in (NETWORK, (*LEARNER, "inference"), (*POSTERIOR, "settings"))
        for name in ("__import__", "eval", "os.system", "Network", "GraphLearner", "", None, 3, [])
    ],
    ((*LEARNER, "prior"), {"is": "__import__", "of": {"name": "os"}}),
    ((*LEARNER, "__class__"), "x"),
    ((*MODEL, "network"), {"is": "DPG", "of": {"__class__": "x"}}),
    ((*MODEL, "network"), {"is": "DPG", "of": ["depth", 3]}),
]

ARRAYS = [
    *[(name, DELETE) for name in ("weights", "n_nodes", "param.b", "family.ends", "family.cells")],
    ("param.gamma", lambda x: np.ones(3)),
    ("family.more", lambda x: np.ones(3)),
    *[
        (name, change)
        for name in ("param.theta", "weights")
        for change in (
            lambda x: x[:-1],
            lambda x: x[None],
            lambda x: x[:0],
            lambda x: x.astype(np.float32),
            lambda x: x.astype(bool),
            lambda x: np.where(np.arange(x.size) == 3, np.nan, x),
            lambda x: np.where(np.arange(x.size) == 3, -np.inf, x),
        )
    ],
    ("weights", lambda x: -x),
    ("weights", lambda x: np.where(np.arange(x.size) < 2, [[-1.0], [2.0]], 0)[0]),
    ("weights", lambda x: 2 * x),
    ("weights", lambda x: 0 * x),
    *[
        ("n_nodes", change)
        for change in (
            lambda x: x[:-1],
            lambda x: -x,
            lambda x: x.astype(float),
            lambda x: x.astype(np.int32),
            lambda x: np.ones_like(x),
            lambda x: x[None],
            lambda x: np.full(10**6, 8),
        )
    ],
    *[
        (f"family.{name}", change)
        for name in ("mean", "sd", "ends", "cumulative", "nodes", "means", "factors")
        for change in (
            lambda x: x[:-1],
            lambda x: x * np.nan,
            lambda x: x.astype(np.float32),
            lambda x: x[..., None],
            lambda x: x[:0],
        )
    ],
    *[(f"family.{name}", lambda x: x[::-1].copy()) for name in ("ends", "cumulative", "nodes")],
    ("family.cumulative", lambda x: 2 * x),
    ("family.cumulative", lambda x: -x),
    *[
        (f"family.cells.{name}", change)
        for name in ("centre", "cumulative", "sides")
        for change in (lambda x: x[:-1], lambda x: x * np.nan, lambda x: x[None], lambda x: x[:0])
    ],
    ("family.cells.cumulative", lambda x: x[::-1].copy()),
    ("family.cells.cumulative", lambda x: 0 * x),
    *[
        (name, change)
        for name in ("family.cells", "family.cells.distinct")
        for change in (
            lambda x: -x,
            lambda x: 0 * x,
            lambda x: x + 1,
            lambda x: x.astype(float),
            lambda x: x[:-1],
            lambda x: np.full_like(x, 2**62),  # whose sum runs over
            lambda x: np.full_like(x, 2**63 - 1),
            lambda x: x + np.where(np.arange(x.size) < 4, 2**62, 0),  # and comes out right
        )
    ],
    *[
        ("reference", change)
        for change in (
            lambda x: x[:, :-1],
            lambda x: x * np.nan,
            lambda x: -x,
            lambda x: x[None],
            lambda x: x.astype(np.float32),
            lambda x: np.repeat(x, 1000, axis=0),
        )
    ],
    ("stat.diverging", lambda x: np.ones((2, 3), bool)),
    ("stat.diverging", lambda x: np.ones(3)),
]


def changed(settings, place, value):
    """The settings with another value there, without changing the given ones."""
    new = dict(settings)
    key, *further = place
    if further:
        new[key] = changed(settings[key], further, value)
    elif value is DELETE:
        del new[key]
    else:
        new[key] = value
    return new


# A refusal takes at most 6,000 calls; checks of shapes, where tests make them, are calls too.
MOST_CALLS = 60_000


@contextmanager
def little_work(path):
    """Fail if more is called or allocated than it takes to read a file of this size.

    Calls and bytes, unlike seconds, do not depend on how busy the machine is. A loop without end
    ends, for the call that is one too many raises.
    """
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")
        assert calls <= MOST_CALLS

    tracemalloc.start()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 2 * path.stat().st_size + 2e6


@pytest.fixture
def refused(path, monkeypatch):
    """Whether a file with these contents is refused, with little work, and nothing runs."""

    def forbidden(function, *arguments, **options):
        caller = sys._getframe(1).f_globals["__name__"]
        if caller.startswith(("beartype.", "jaxtyping.")):  # which check shapes in tests
            return function(*arguments, **options)
        raise AssertionError("something in the file was run")

    def check(settings, arrays):
        modelfile.write(path, "GraphLearner", settings, arrays)
        with monkeypatch.context() as patch:
            for function in (exec, eval, compile):
                patch.setattr(builtins, function.__name__, partial(forbidden, function))
            with (
                pytest.raises(ModelFileError, match="cannot read the model file") as caught,
                little_work(path),
            ):
                load(path)
        assert len(str(caught.value)) < 1000

    return check


def test_much_work_would_be_noticed(contents, path):
    with pytest.raises(AssertionError), little_work(path):
        sum(len(()) for _ in itertools.count())
    with pytest.raises(AssertionError), little_work(path):
        bytearray(2 * path.stat().st_size + 2_000_001)


@pytest.mark.parametrize(
    ("place", "value"), SETTINGS, ids=lambda one: ".".join(one) if isinstance(one, tuple) else None
)
def test_hostile_settings_are_refused(contents, refused, place, value):
    settings, arrays = contents
    refused(changed(settings, place, value), arrays)


@pytest.mark.parametrize(("name", "change"), ARRAYS)
def test_hostile_arrays_are_refused(contents, refused, name, change):
    settings, arrays = contents
    arrays = dict(arrays)
    if change is DELETE:
        del arrays[name]
    else:
        arrays[name] = np.ascontiguousarray(change(arrays.get(name)))
    refused(settings, arrays)


def test_a_posterior_of_a_network_that_exact_cannot_fit_is_refused(contents, refused):
    settings, arrays = contents
    names = ["alpha", "beta", "delta", "b"]
    settings = changed(settings, NETWORK, {"is": "PDS", "of": {"depth": 10, "gamma": 0.1}})
    prior = {"is": "Prior", "of": dict.fromkeys(names, MAP_OF_ONE)}
    settings = changed(settings, (*MODEL, "prior"), prior)
    arrays = {k: v for k, v in arrays.items() if not k.startswith("param.")}
    refused(settings, arrays | {f"param.{name}": arrays["weights"] for name in names})


def test_the_unchanged_file_is_not_refused(contents, path, exact, data):
    modelfile.write(path, "GraphLearner", *contents)
    np.testing.assert_array_equal(load(path).predict_proba(data), exact.predict_proba(data))


def test_a_flipped_bit_is_refused_and_the_damaged_part_is_named(exact, path):
    exact.save(path)
    good = path.read_bytes()
    start = 8 + int.from_bytes(good[:8], "little")
    header = json.loads(good[8:start])
    ends = {name: start + header[name]["data_offsets"][1] for name in header if name[0] != "_"}
    generator = np.random.default_rng(20261118)
    for position in generator.integers(8 * len(good), size=200).tolist():
        byte, bit = divmod(position, 8)
        damaged = bytearray(good)
        damaged[byte] ^= 1 << bit
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="cannot read the model file") as caught:
            load(path)
        if byte >= start:
            _, name = min((end, name) for name, end in ends.items() if byte < end)
            assert f"the array {name!r} is not as it was saved" in str(caught.value)


def test_a_file_of_format_1_gives_the_same_predictions(exact, data, contents, path):
    """As edgebelief 0.1 wrote it: without checksums and evidence, `transform` by its old name."""
    settings, arrays = contents
    settings = {name: value for name, value in settings.items() if name != "evidence"}
    learner = {"transform" if k == "preprocess" else k: v for k, v in settings["learner"].items()}
    del learner["evidence"]
    text = json.dumps(settings | {"learner": learner})
    metadata = {"format": "edgebelief", "version": "1", "kind": "GraphLearner", "settings": text}
    path.write_bytes(safetensors.numpy.save(arrays, metadata))
    again = load(path)
    assert (again.evidence, again.evidence_) == ("none", ())
    check_identical(exact, again.set_params(evidence="auto"), data)


def test_settings_of_older_files_come_under_their_new_names():
    old = {"depth": 3, "transform": "log"}
    assert renamed(old, {"depth", "preprocess"}) == {"depth": 3, "preprocess": "log"}
    assert renamed(old, {"depth", "transform"}) == old  # where the new name is none
    assert renamed(old, {"depth", "preprocess", "evidence"})["evidence"] == "none"
    with pytest.raises(ModelFileError, match=r"preprocess.*under an older name"):
        renamed(old | {"preprocess": None}, {"depth", "preprocess"})


def test_a_model_of_another_kind_is_refused(path):
    modelfile.write(path, "SmoothGraph", {}, {})
    with pytest.raises(ModelFileError, match="holds a 'SmoothGraph', not a GraphLearner"):
        load(path)


def test_saving_over_a_model_leaves_it_whole_if_it_fails(data, path):
    learner = by_hand(data, MAP(), 1)
    learner.save(path)
    with pytest.raises(ModelFileError):
        by_hand(data, MAP(), 1).set_params(metric=np.corrcoef).save(path)
    assert load(path).seed_ == learner.seed_
