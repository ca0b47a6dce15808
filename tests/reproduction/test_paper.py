"""Items of the paper: stored once computed, compared with what was published, named if missing."""

import importlib
import json

import numpy as np
import pytest
from reproduction.item import jsonable, save_outcome, slug
from reproduction.models import quietly, scores, thinned

from edgebelief.belief import predict
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import NUTS, EdgeModel
from edgebelief.networks import DPG
from reproduction import ITEMS, Outcome, Row, Table, Work, page, published, reproduce

called = []


def counted(n, fail=False):
    called.append(n)
    if fail:
        raise KeyboardInterrupt
    return {"twice": 2 * n, "array": np.arange(2), "nan": np.float64("nan")}


@pytest.fixture
def work(tmp_path):
    called.clear()
    return Work(tmp_path, small=True)


def test_a_piece_is_computed_once(work):
    first, again = work.once(counted, 3), work.once(counted, 3)
    assert first == again == {"twice": 6, "array": [0, 1], "nan": None}
    assert called == [3]
    assert work.once(counted, 4)["twice"] == 8
    assert called == [3, 4]


def test_paths_do_not_change_the_key_of_a_piece(work):
    work.once(counted, 3, using=(False,))
    work.once(counted, 3, using=())
    assert called == [3]


def test_an_interrupted_piece_is_computed_again(work):
    with pytest.raises(KeyboardInterrupt):
        work.once(counted, 5, using=(True,))
    assert work.once(counted, 5)["twice"] == 10


def test_distance_from_the_paper_is_in_standard_errors():
    assert Row("x", 3.0, 0.5, 2.0).away == 2.0
    assert Row("x", 3.0, None, 2.0).away is None
    assert Row("x", 3.0, 0.5).away is None


def test_an_outcome_is_saved_as_numbers_and_pictures(work):
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots()
    axis.plot([0, 1])
    outcome = Outcome(["It holds."], [Row("x", np.float64(1.0))], [Table("t", ["a"], [[1]])])
    outcome.figures["Some words, here"] = figure
    results = save_outcome("sweep", outcome, work)
    assert results == json.loads((work.out / "sweep.json").read_text())
    for suffix in ("png", "svg"):
        assert (work.out / f"images/reproduction/sweep-some-words-here.{suffix}").stat().st_size
    assert "It holds." in page(work).read_text()


def test_the_page_names_every_item_and_those_not_run(work):
    text = page(work).read_text()
    for number, name in enumerate(ITEMS, 1):
        assert f"## {number}. " in text
        assert f"Not run: `python -m reproduction {name}`." in text


def test_missing_data_are_named_and_described(work):
    results = reproduce("stocks", work)
    assert results["missing"] == "sp500_prices.csv"
    assert "Needs `sp500_prices.csv`" in page(work).read_text()


def test_an_unknown_item_is_refused(work):
    with pytest.raises(ValueError, match="no item is called 'nothing'; the items are sweep"):
        reproduce("nothing", work)


@pytest.mark.parametrize("name", ITEMS)
def test_an_item_says_what_the_paper_says(name):
    module = importlib.import_module(f"reproduction.{name}")
    assert module.TITLE
    assert len(module.CLAIM) > 40
    assert callable(module.run)


def test_jsonable_and_slug():
    assert jsonable({1: (np.float32(0.5), np.inf)}) == {"1": [0.5, None]}
    assert slug("NLL, at P = 10 (all)") == "nll-at-p-10-all"


@pytest.mark.slow
def test_thinned_chains_predict_nearly_the_same():
    data = GraphDataset.sample(3, RandomGeometric(0.5), 12, 8, n_signals=30)
    engine = NUTS(150, 100, target_accept=0.8)
    with quietly():
        posterior = engine.run(0, EdgeModel(DPG(depth=10)), data[:8])
    fewer = thinned(posterior, 80)
    assert fewer.n_draws == 80
    assert np.isclose(fewer.weights.sum(), 1)
    full, thin = (scores(predict(p, data[8:]))["NLL"] for p in (posterior, fewer))
    assert abs(full - thin) < 0.05 * full
    assert thinned(posterior, 400) is posterior


def four(row):
    """The four scores, in the units of `published`."""
    return row["NLL_mean"], 100 * row["BS_mean"], 100 * row["error_mean"], row["ECE"]


def test_published_figures_are_those_of_the_reference(shared_data):
    path = shared_data.parent / "reference" / "published.json"
    if not path.is_file():
        pytest.skip("the published figures are not beside the project")
    reference = json.loads(path.read_text())
    names = {"DPG": "DPG", "PDS": "PDS", "MIMO": "DPG-MIMO", "MIMO-E": "DPG-MIMO-E"}
    kinds = {"RG(1/3)": "RG_.32", "RG(1/2)": "RG_.5", "ER(1/2)": "ER_.5", "BA(1)": "BA_1"}
    for name, theirs in names.items():
        for kind, key in kinds.items():
            row = reference["iid_and_label_mismatch"][theirs][key]
            np.testing.assert_allclose(published.ENSEMBLES[name][kind], four(row), rtol=1e-3)
        for p, row in reference["covariate_shift"][theirs].items():
            np.testing.assert_allclose(published.SIGNALS[name][p], four(row), rtol=1e-3)
