"""Draw one figure per display, from a small study on simulated data.

Elicits a prior from beliefs about graphs, checks it, fits a model, checks that, predicts graphs
that were not fitted, and draws each step.

    python examples/gallery.py [folder]
"""

import sys
from pathlib import Path
from typing import Protocol

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from edgebelief.belief import predict
from edgebelief.belief.checks import posterior_predictive, prior_predictive
from edgebelief.belief.elicit import elicit_prior
from edgebelief.belief.metrics import calibration_curve
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.data.dataset import GraphRecord
from edgebelief.infer import NUTS, EdgeModel, Exact
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

N_NODES, N_SIGNALS, N_TRAIN, N_TEST = 20, 500, 10, 40
NAMES = [*"ABCDEFGHIJKLMNOPQRST"]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    ensemble = RandomGeometric(radius=0.32)
    train, test = (
        GraphDataset.sample(key, ensemble, n_graphs, N_NODES, n_signals=N_SIGNALS)
        for key, n_graphs in ((1, N_TRAIN), (2, N_TEST))
    )
    example = named(test[2])

    prior = elicit_prior(train, density=(0.15, 0.35), mass=0.9)
    save(folder, "sweep", SweepDisplay(prior))

    model = EdgeModel(DPG(depth=200), prior=prior)
    posterior = Exact().run(0, model, train)
    print(posterior)
    save(folder, "marginals", MarginalsDisplay.of(posterior))

    wide = EdgeModel(DPG(depth=200), prior="original")
    checks = {
        "the paper's first prior": prior_predictive(3, wide, train[:5], n=2000),
        "elicited prior": prior_predictive(3, model, train[:5], n=2000),
        "posterior": posterior_predictive(3, posterior, train[:5], n=2000),
    }
    save(folder, "check", CheckDisplay(checks))

    curve = calibration_curve(predict(posterior, test))
    save(folder, "reliability", ReliabilityDisplay.of(curve))

    belief = predict(posterior, example)[0]
    save(folder, "edges", EdgesDisplay(example[0], belief))
    save(folder, "graph", GraphDisplay(example[0], belief))

    of_curves = elicit_prior(train, density=(0.15, 0.35), mass=0.9, readout=Additive())
    additive = EdgeModel(DPG(depth=200), Additive(), of_curves)
    save(folder, "terms", TermsDisplay.of(Exact().run(0, additive, train)))

    tree = NUTS(n_draws=500, n_chains=2).run(4, model, train).to_arviz(train)
    save(folder, "trace", TraceDisplay(tree))
    save(folder, "pair", PairDisplay(tree))


class Display(Protocol):
    """A display of `edgebelief.plots`."""

    def plot(self) -> object: ...


def named(record: GraphRecord) -> GraphDataset:
    """Return a data set of one graph, with node names and a tenth of its labels unknown."""
    hidden = np.arange(record.a.size) % 10 == 0
    return GraphDataset(
        [record.e], [np.where(hidden, np.nan, record.a)], [NAMES], n_signals=record.n_signals
    )


def save(folder: Path, name: str, display: Display) -> None:
    axes = np.ravel(display.plot())
    path = folder / f"gallery-{name}.png"
    axes[0].figure.savefig(path, dpi=110)
    plt.close(axes[0].figure)
    print(f"figure: {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "gallery-output"))
