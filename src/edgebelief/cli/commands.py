"""What the commands do, once their options are read."""

from __future__ import annotations

import json
import shlex
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..amortise.predict import LostWarning
from ..atomic import replacing
from ..belief import BeliefWarning, elicit_prior
from ..data import GraphDataset, save_dataset, smooth_signals, write_edges, write_table
from ..data.coerce import graphs_from, is_edge_list
from ..data.randomness import split
from ..data.signals import SquareRootInverse, adjacency_of
from ..errors import InputError
from ..estimators import GraphLearner, SmoothGraph, load
from ..estimators.settings import network_of, readout_of
from ..estimators.simulate import Simulation
from ..infer import Finding, InferenceWarning
from ..report.words import probability
from ..room import check_room
from .inputs import Data, Given, Labels, count
from .outputs import save_picture, write_edge_table
from .paths import ONE_GRAPH, PICTURES
from .priors import prior_to_json
from .session import Misused, Session, called_with

Settings = dict[str, Any]


def simulated(
    this: Session, out: Path, labels: Path | None, wanted: Settings, seed: int, many: bool
) -> None:
    """Run `edgebelief simulate`."""
    nodes, signals, graphs = (wanted[f"n_{name}"] for name in ("nodes", "signals", "graphs"))
    check_room(nodes, graphs if many else 1)
    made = Simulation.of(**wanted, filter=SquareRootInverse(), metric="sqeuclidean")
    if many:
        with this.working(f"drawing {graphs} graphs"):
            save_dataset(out, made.sample(seed))
        this.say(f"{out}: {count(graphs, 'graph')} of {nodes} nodes, with distances and edges")
    else:
        graph_key, signal_key = split(seed, 2)
        names = [f"node{i}" for i in range(nodes)]
        with this.working(f"drawing a graph of {nodes} nodes"):
            graph = made.ensemble.sample(graph_key, nodes)
            values = smooth_signals(signal_key, graph, signals)
            write_table(out, pd.DataFrame(values, columns=names))
        this.say(f"{out}: {signals} signals on {nodes} nodes")
        if labels is not None:
            write_edges(labels, adjacency_of(graph), names, value="edge")
            this.say(f"{labels}: its {graph.number_of_edges()} edges")
    this.answer = {
        "out": str(out),
        "labels": labels and str(labels),
        "ensemble": str(made.ensemble),
        "nodes": nodes,
        "signals": signals,
        "graphs": graphs if many else 1,
        "seed": seed,
    }


def learned(this: Session, given: Given, out: Path, settings: Settings) -> None:
    """Run `edgebelief learn`."""
    all_pairs = settings["support"] == "complete"
    frame, _ = given.read(settings["metric"], settings["missing"], all_pairs=all_pairs)
    assert isinstance(frame, pd.DataFrame)  # as one table is
    learner = SmoothGraph(**settings)
    with this.working(f"learning a graph of {frame.shape[1]} nodes"):
        given.blame(lambda: learner.fit(frame))
    table = learner.edge_table()
    write_edge_table(out, table, learner.to_networkx())
    _say_preprocess(this, settings)
    this.answer = {
        "out": str(out),
        "nodes": frame.shape[1],
        "signals": len(frame) if settings["metric"] != "precomputed" else None,
        "preprocess": settings["preprocess"],
        "edges": learner.n_edges_,
        "degree": learner.degree_,
        "density": learner.density_,
        "theta": learner.theta_,
        "residual": learner.solution_.residual,
        "certificate": learner.certificate_ and learner.certificate_._asdict(),
        "strongest": table.head(10).to_dict("records"),
    }
    this.say(
        f"{learner.n_edges_} edges among {frame.shape[1]} nodes (mean degree {learner.degree_:.3g})"
        f" at theta = {learner.theta_:.4g}"
    )
    if learner.certificate_ is not None:
        this.say(learner.certificate_.sentence())
    this.show(table, "strongest edges", most=10, rest=f"more edges, in {out}")
    this.say(f"written to {out}")


def elicited(
    this: Session,
    given: Given,
    settings: Settings,
    beliefs: Settings,
    model: Settings,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Run `edgebelief elicit`."""
    X, _ = given.read(settings["metric"], settings["missing"])
    data = given.blame(lambda: graphs_from(X, **settings).data)
    network = network_of("dpg", model["depth"])
    readout = readout_of(model["readout"], network)
    with this.working("drawing graphs along theta"):
        prior = given.blame(lambda: elicit_prior(data, **beliefs, network=network, readout=readout))
    _say_preprocess(this, settings)
    table = prior.sweep.table()
    table["drawn"] = prior.drawn[:, 1]
    rows = np.linspace(0, len(table) - 1, min(len(table), 12)).astype(int)
    columns = ["theta", "density", "components", "weight_q50", "drawn"]
    this.show(table.iloc[rows][columns], "what theta means on these data")
    this.say("drawn: the median density of graphs drawn from the model at this theta")
    low, high = prior.interval
    this.say(f"{prior.share:.1%} of the graphs drawn from the model have {prior.beliefs}")
    this.say(f"theta is believed to lie between {low:.4g} and {high:.4g}; the prior:")
    for name, marginal in prior.items():
        this.say(f"  {name} ~ {marginal}")
    described = prior_to_json(prior)
    this.answer = {
        "prior": described,
        "interval": [low, high],
        "share": prior.share,
        "out": out and str(out),
        "plot": plot and str(plot),
    }
    if plot is not None:
        from ..plots import SweepDisplay  # loads Matplotlib

        save_picture(plot, lambda: SweepDisplay(prior).plot()[0].figure)
        this.say(f"picture: {plot}")
    if out is not None:
        with replacing(out) as temporary:
            temporary.write_text(json.dumps(described, indent=2) + "\n")
        usual = {"readout": "affine", "depth": 200}
        also = [f"--{name} {value}" for name, value in model.items() if value != usual[name]]
        this.say(f"written to {out}; use it with {' '.join([f'--prior {out}', *also])}")


def fitted(this: Session, given: Given, settings: Settings, out: Path) -> None:
    """Run `edgebelief fit`."""
    metric, missing, weighted = (settings[name] for name in ("metric", "missing", "weighted"))
    X, A = given.read(metric, missing, weighted, settings["support"] == "complete")
    need_labels(given, X, A, "Without any known edge, see `edgebelief learn`.")
    learner = GraphLearner(**settings)
    has_bar = settings["inference"] == "nuts" or settings["network"] in ("pds", "mimo-e")
    with this.working("finding the posterior", has_bar), warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # the verdict is said below
        given.apply(learner.fit, X, A)
    learner.save(out)
    _say_preprocess(this, settings)
    posterior = learner.posterior_
    n_labels, graphs = (
        posterior.fingerprint.n_labels,
        count(posterior.fingerprint.n_graphs, "graph"),
    )
    this.say(f"fitted to {n_labels} labels of {graphs} by {posterior.engine}")
    summary = posterior.summary()
    this.show(summary.reset_index(names="parameter"))
    if learner.comparison_ is not None:
        this.show(learner.comparison_.reset_index(names="readout"), "left-out graphs, best first")
    if learner.evidence_:
        this.say(f"evidence: {', '.join(kind.name for kind in learner.evidence_)}")
    terms = learner.terms() if learner.model_.readout.terms else None
    if terms is not None:
        rest = f"more terms; edgebelief explain {shlex.quote(str(out))} lists all"
        this.show(terms, "terms, by how much they move the logit", rest=rest)
    this.say(f"written to {out}")
    this.answer = {
        "out": str(out),
        "engine": posterior.engine,
        "posterior": summary.to_dict("index"),
        "log_evidence": posterior.log_evidence,
        "scale": learner.scale_,
        "network": type(learner.model_.network).__name__,
        "readout": type(learner.model_.readout).__name__,
        "weighted": learner.weighted,
        "preprocess": learner.preprocess,
        "evidence": [kind.name for kind in learner.evidence_],
        "terms": None if terms is None else terms.to_dict("records"),
        "comparison": _records(learner.comparison_),
    }
    if posterior.verdict.ok:
        this.say("verdict: nothing was found to be wrong with the fit", "green")
    this.conclude(posterior.verdict)


def believed(
    this: Session,
    given: Given,
    out: Path,
    report: Path | None,
    settings: Settings,
    rule: Settings,
    all_pairs: bool,
) -> None:
    """Run `edgebelief belief`."""
    X, _ = given.read(settings["metric"], settings["missing"])
    learner = given.blame(lambda: GraphLearner.pretrained(**settings))
    _say_preprocess(this, settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BeliefWarning)
        warnings.simplefilter("ignore", LostWarning)  # the verdict says the same
        _write_belief(this, learner, given, X, out, 0.9, rule, all_pairs)
        table = given.apply(learner.typicality, X)
        if report is not None:
            recipe = shlex.join(["edgebelief", *called_with.get()])
            with this.working("writing the report"):
                given.apply(partial(learner.report, report), X, recipe=recipe)
            this.say(f"report: {report.resolve().as_uri()}")
    verdict = learner.posterior_.verdict
    lost = [
        Finding("unlike the training world", float(p), message)
        for p, message in zip(table["p"], table["message"], strict=True)
        if message
    ]
    this.answer |= {"typicality": _records(table), "report": report and str(report)}
    if not lost:
        this.say("no alarm: these data look like those that the network was trained on", "green")
    this.conclude(replace(verdict, findings=tuple(lost)))


def predicted(
    this: Session,
    model: Path,
    given: Given,
    out: Path,
    level: float,
    rule: Settings,
    all_pairs: bool,
) -> None:
    """Run `edgebelief predict`."""
    learner = load(model)
    X, _ = given.read_for(learner)
    _write_belief(this, learner, given, X, out, level, rule, all_pairs)
    this.conclude(learner.posterior_.verdict)


def _write_belief(
    this: Session,
    learner: GraphLearner,
    given: Given,
    X: Data,
    out: Path,
    level: float,
    rule: Settings,
    all_pairs: bool,
) -> None:
    """Write what a learner believes of each pair, and say the most important of it."""
    one = out.suffix.lower() == ".graphml"
    if one and isinstance(X, GraphDataset) and len(X) > 1:
        raise Misused(f"{out}: {ONE_GRAPH}")
    with this.working("predicting"):
        table = given.apply(learner.edge_table, X, level=level or None, **rule)
    if len(given.paths) > 1:
        stems = [path.stem for path in given.paths]
        unique = len(set(stems)) == len(stems)
        names = stems if unique else [str(path) for path in given.paths]
        table["graph"] = [names[t] for t in table["graph"]]
    edges = table[table["decision"] == 1]
    kept = table if all_pairs and not one else edges
    made = given.apply(learner.to_networkx, X, **rule) if one else None
    write_edge_table(out, kept, made[0] if isinstance(made, list) else made)
    of, what = ("pairs", "pairs") if kept is table else ("of them", "edges")
    rest = "" if kept.empty else f". The most probable {of}:"
    this.say(f"{len(edges)} of {len(table)} pairs are decided to be edges{rest}")
    shown = ["graph", "source", "target", "probability", "logit", "low", "high", "epistemic"]
    shown += ["weight", "weight_low", "weight_high"]
    if not kept.empty:
        columns = [name for name in shown if name in table.columns]
        this.show(_ranked(kept)[columns], most=10, rest=f"more {what}, in {out}")
    this.say(f"written to {out}")
    this.answer = {
        "out": str(out),
        "pairs": len(table),
        "edges": len(edges),
        "expected_edges": float(table["probability"].sum()),
        "most_believed": _ranked(table).head(10).to_dict("records"),
    }


def checked(
    this: Session,
    model: Path | None,
    given: Given,
    settings: Settings,
    how: Settings,
    out: Path | None,
) -> None:
    """Run `edgebelief check`."""
    learner = GraphLearner(**settings) if model is None else load(model)
    X, A = given.read_for(learner, fitted=model is not None)
    with this.working("drawing graphs"):
        checks = given.apply(learner.predictive_checks, X, A, **how)
    this.answer = {
        check.source: {
            "statistic": check.statistic,
            "mean": float(check.values.mean()),
            "q5": float(np.quantile(check.values, 0.05)),
            "q95": float(np.quantile(check.values, 0.95)),
            "observed": check.observed,
            "tail": None if check.observed is None else check.tail_probability,
        }
        for check in checks
    }
    if model is None:
        _say_preprocess(this, settings)
    for check in checks:
        this.say(str(check))
    if out is not None:
        from ..plots import CheckDisplay  # loads Matplotlib

        save_picture(out, lambda: CheckDisplay(checks).plot()[0].figure)
        this.say(f"picture: {out}")
    if model is not None:
        this.conclude(learner.posterior_.verdict)


def scored(this: Session, model: Path, given: Given, cv: Literal["nodes", "graphs"] | None) -> None:
    """Run `edgebelief score`."""
    learner = load(model)
    X, A = given.read_for(learner)
    need_labels(given, X, A, "There is nothing to score without any.")
    with this.working("predicting" if cv is None else f"fitting without some {cv}, in turn"):
        scores = given.apply(learner.calibration_report, X, A, cv=cv)
        has_weights = learner.weighted and cv is None
        weights = given.apply(learner.weight_scores, X, A) if has_weights else {}
    this.answer = {"held_out": cv, **scores.as_dict(), **weights}
    if cv is not None:
        of_weights = "; weights are not scored so" if learner.weighted else ""
        held_out = "one of its nodes" if cv == "nodes" else "its graph"
        this.say(f"each label is predicted by a fit that has held out {held_out}{of_weights}")
    this.say(str(scores))
    if weights:
        this.say(
            f"weights: CRPS {weights['crps']:.4g} (of edges {weights['crps_given_edge']:.4g}); "
            f"90 % intervals hold {weights['weight_coverage']:.1%} of the edges"
        )
    this.conclude(learner.posterior_.verdict)


def explained(
    this: Session,
    model: Path,
    given: Given,
    pair: tuple[str, str, int] | None,
    out: Path | None,
) -> None:
    """Run `edgebelief explain`."""
    learner = load(model)
    if pair is not None:
        source, target, _ = pair
        X, _ = given.read_for(learner)
        table = given.apply(learner.explain, X, *pair)
        p = table.attrs["probability"]
        this.say(
            f"{source} and {target}: probability {probability(p)}. What its logit is the sum of:"
        )
        values = ["" if pd.isna(x) else f"{x:.3g}" for x in table["value"]]
        this.show(table.assign(value=values), most=len(table))  # the logit comes last
        this.answer = {"probability": p, "parts": _records(table)}
    else:
        readout = learner.model_.readout
        if not readout.terms:
            raise InputError(
                f"{model}: its readout, {type(readout).__name__}, has no terms; name a pair "
                f"(--source, --target), or fit with --readout additive."
            )
        table = learner.terms()
        this.show(table, "terms, by how much they move the logit", most=len(table))
        needed = table["needed"].sum()
        this.say(f"the labels need {needed} of {len(table)}; the bands of the others hold zero")
        if (table["share"] < 1).any():
            this.say("size and need are about the share of the mixture that has the term")
        if needed < len(table):
            this.say(
                "terms with the same information hide each other: see term_importance (Python)"
            )
        this.answer = {"terms": _records(table)}
    if out is not None:
        if out.suffix.lower() in PICTURES:
            from ..plots import TermsDisplay  # loads Matplotlib

            save_picture(out, lambda: TermsDisplay.of(learner.posterior_).plot()[0].figure)
        else:
            write_table(out, table)
        this.say(f"written to {out}")
    this.conclude(learner.posterior_.verdict)


def reported(
    this: Session,
    model: Path,
    given: Given,
    out: Path,
    title: str,
    cv: Literal["nodes", "graphs"] | None,
) -> None:
    """Run `edgebelief report`."""
    learner = load(model)
    X, A = given.read_for(learner)
    if cv is not None:
        need_labels(given, X, A, "There is nothing to hold out without any.")
    about = {
        "recipe": shlex.join(["edgebelief", *called_with.get()]),
        **({"title": title} if title else {}),
    }
    with this.working("writing the report"):
        given.apply(partial(learner.report, out), X, A, cv=cv, **about)
    this.say(f"report: {out.resolve().as_uri()}")
    this.answer = {"out": str(out)}
    this.conclude(learner.posterior_.verdict)


def _say_preprocess(this: Session, settings: Settings) -> None:
    if settings["preprocess"] == "standardize":
        this.say("columns were standardized first (--preprocess none compares them as they are)")


def _ranked(table: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of all graphs, the most probable first."""
    return table.sort_values("logit", ascending=False, kind="stable")


def need_labels(given: Given, X: Data, A: Labels, otherwise: str) -> None:
    """Refuse graphs without a known edge; `otherwise` says what else there is to do."""
    if A is None and not (isinstance(X, GraphDataset) and X.n_labels):
        raise InputError(
            f"{given.paths[0]}: no edge is known; give --labels or --groups. {otherwise}"
        )
    if A is not None and not any(_is_any_known(labels) for labels in A):
        problem = f"no edge is known: every label is empty. {otherwise}"
        raise InputError(problem, where=given.labels[0])


def _is_any_known(labels: pd.DataFrame) -> bool:
    if is_edge_list(labels):  # pairs that are not listed are known to be no edges
        return True
    values = labels.to_numpy()
    return bool(np.isfinite(values[np.triu_indices(len(values), 1)]).any())


def _records(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    """Return the rows of a table for JSON, which has no NaN."""
    if table is None:
        return None
    named = table if isinstance(table.index, pd.RangeIndex) else table.reset_index(names="name")
    return named.astype(object).where(named.notna(), None).to_dict("records")  # type: ignore[return-value]
