"""Do graphs drawn from an elicited prior have the density that was believed in?

    python benchmarks/elicitation.py [--data FOLDER] [--draws 4000]

"Between 15 and 30 % of the pairs are joined, with probability 0.95" is turned into a prior for each
of three inputs and two readouts. Then graphs are drawn from the model, with random numbers of their
own, and the table says how many of them are inside, with the standard error of that share. FOLDER
has rg032.npz and the S&P 500 files; cases without their data are left out.
"""

import time
from pathlib import Path

import numpy as np
from common import ROOT, parser

from edgebelief.belief import elicit_prior, prior_predictive
from edgebelief.data import GraphDataset, RandomGeometric, sp500
from edgebelief.infer import EdgeModel, Prior
from edgebelief.infer.prepare import prepare
from edgebelief.readouts import Additive, Affine, Readout


def inputs(folder: Path) -> dict[str, GraphDataset]:
    """Return the distances of each case, without labels."""
    cases = {}
    if (folder / "rg032.npz").is_file():
        cases["rg032, 50 x 20"] = GraphDataset(np.load(folder / "rg032.npz")["train_distances"])
    if (folder / "sp500_split.json").is_file():
        train = sp500(folder).train
        cases[f"S&P 500, 1 x {train.n_nodes[0]}"] = GraphDataset([record.e for record in train])
    drawn = GraphDataset.sample(1, RandomGeometric(0.25), n_graphs=4, n_nodes=50, n_signals=500)
    cases["simulated, 4 x 50"] = GraphDataset([record.e for record in drawn])
    return cases


def densities(readout: Readout, prior: Prior, data: GraphDataset, n: int) -> np.ndarray:
    """Draw about n graphs from the model, for each input as many, and return their densities."""
    model = prepare(0, EdgeModel(readout=readout, prior=prior), data).model
    each = -(-n // len(data))
    checks = [prior_predictive(1 + t, model, data[t : t + 1], n=each) for t in range(len(data))]
    return np.concatenate([check.values for check in checks])


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--data", type=Path, default=ROOT / ".." / "shared" / "data")
    arguments.add_argument("--draws", type=int, default=4000)
    arguments.add_argument("--density", type=float, nargs=2, default=(0.15, 0.3))
    arguments.add_argument("--mass", type=float, default=0.95)
    options = arguments.parse_args()
    low, high = options.density
    print(f"density between {low:g} and {high:g}, stated mass {options.mass:g}\n")
    print("| inputs | readout | realised mass | below | above | seconds | prior |")
    print("|---|---|---|---|---|---|---|")
    for name, data in inputs(options.data).items():
        for readout in (Affine(), Additive()):
            started = time.perf_counter()
            prior = elicit_prior(data, (low, high), mass=options.mass, readout=readout)
            seconds = time.perf_counter() - started
            drawn = densities(readout, prior, data, options.draws)
            below, above = (drawn < low - 1e-9).mean(), (drawn > high + 1e-9).mean()
            share = 1 - below - above
            error = np.sqrt(share * (1 - share) / drawn.size)
            words = ", ".join(f"{k} {m.median:.3g} ({m.log_sd:.2f})" for k, m in prior.items())
            print(
                f"| {name} | {type(readout).__name__.lower()} | {share:.3f} +- {error:.3f} "
                f"| {below:.3f} | {above:.3f} | {seconds:.1f} | {words} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
