"""The whole walk on built-in data: what a newcomer runs first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ..belief import elicit_prior
from ..data import GraphDataset, digits, save_dataset, write_table
from ..estimators import GraphLearner
from .session import Session

# Three graphs of 50 images to learn from, three to be judged on.
TRAIN, TEST, CLASSES = 3, 3, (2, 7)
RECIPE = """\
from edgebelief import GraphLearner
from edgebelief.data import digits

train, test = digits(key={seed}, n_train={train}, n_test={test}, classes={classes})
learner = GraphLearner(prior={{"density": (0.2, 0.8)}}).fit(train)
print(learner.posterior_)
print(learner.calibration_report(test))
learner.report("report.html", test)"""


def walk(this: Session, paths: dict[str, Path], seed: int) -> None:
    """Walk through elicit, fit, predict, score and report on handwritten digits."""
    this.say("1  The data: images of the digits 2 and 7, their distances, and which are alike")
    train, test = digits(seed, TRAIN, TEST, classes=CLASSES)
    save_dataset(paths["held-out graphs"], test)
    this.say(f"   {TRAIN} graphs of {train.n_nodes[0]} images to learn from, {TEST} to judge it on")

    this.say("2  A belief, before any label: between 20 and 80 % of the pairs are alike")
    with this.working("drawing graphs along theta"):
        prior = elicit_prior(train, density=(0.2, 0.8))
    low, high = prior.interval
    this.say(f"   so theta, the sparsity, is believed to lie between {low:.2g} and {high:.2g}:")
    this.say(f"   {prior.share:.0%} of the graphs that the model then draws have such a density")

    this.say("3  The posterior, given the labels of the training graphs")
    learner = GraphLearner(prior=prior, random_state=seed)
    with this.working("finding the posterior"):
        learner.fit(train)
    learner.save(paths["model"])
    for name, row in learner.posterior_.summary().iterrows():
        this.say(f"   {name:6} {row['mean']:8.4g} +- {row['sd']:.3g}")
    verdict = learner.posterior_.verdict
    this.say(f"   verdict: {'nothing was found to be wrong' if verdict.ok else str(verdict)}")

    this.say("4  Belief in the pairs of graphs it has not seen")
    with this.working("predicting"):
        table = learner.edge_table(test)
        scores = learner.calibration_report(test)
    write_table(paths["edges"], table)
    p, sure = table["probability"], 0.95
    certain = ((p > sure) | (p < 1 - sure)).mean()
    this.say(f"   {len(table)} pairs; of {certain:.0%} it is at least 95 % sure")

    this.say("5  Is it right to be so sure?")
    for line in str(scores).splitlines():
        this.say(f"   {line}")
    confident = _accuracy_when_sure(table, test, sure)
    this.say(f"   where it was at least 95 % sure, it was right {confident:.1%} of the time")

    with this.working("writing the report"):
        learner.report(
            paths["report"],
            test,
            title="Which images show the same digit?",
            recipe=RECIPE.format(seed=seed, train=TRAIN, test=TEST, classes=CLASSES),
        )
    this.say()
    this.say(f"Open the report: {paths['report'].resolve().as_uri()}", "bold")
    this.answer = {
        **{name: str(path) for name, path in paths.items()},
        "scores": scores.as_dict(),
        "right when sure": confident,
    }
    this.end(verdict)


def _accuracy_when_sure(table: pd.DataFrame, test: GraphDataset, sure: float) -> float:
    labels = {
        (t, record.names[i], record.names[j]): a
        for t, record in enumerate(test)
        for i, j, a in zip(*record.support.endpoints, record.a, strict=True)
    }
    pairs = zip(table.graph, table.source, table.target, strict=True)
    truth = np.array([labels[pair] for pair in pairs])
    p = table["probability"].to_numpy()
    certain = (p > sure) | (p < 1 - sure)
    return float(((p > 0.5) == truth)[certain].mean())
