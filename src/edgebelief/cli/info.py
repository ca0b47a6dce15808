"""`edgebelief info`: what a file holds, said plainly."""

from __future__ import annotations

import platform
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from ..data.dataset import GraphDataset
from ..data.files import edges_to_matrix, read_matrix, read_signals
from ..data.npz import open_npz
from ..data.tables import read_table
from ..errors import InputError
from .graphml import read_graphml
from .inputs import Given, are_names, count, read_groups, read_json
from .paths import READ_TABLES
from .priors import read_prior
from .session import Session, verdict_to_json


def told(this: Session, path: Path | None) -> None:
    """Run `edgebelief info`."""
    if path is None:
        return _tell_machine(this)
    kinds = {
        ".eb": _tell_model,
        ".npz": _tell_arrays,
        ".graphml": _tell_graph,
        ".json": _tell_json,
        **dict.fromkeys(READ_TABLES, _tell_table),
    }
    return kinds[path.suffix.lower()](this, path)


def _tell_machine(this: Session) -> None:
    from importlib.metadata import version

    import jax

    from ..cores import n_cores
    from ..devices import VARIABLE, choose
    from ..version import __version__

    facts = {"edgebelief": __version__, "python": platform.python_version()}
    facts |= {name: version(name) for name in ("jax", "numpyro", "numpy", "scikit-learn")}
    facts |= {"devices": ", ".join(str(d) for d in jax.devices()), "cores": str(n_cores())}
    small, large = choose(0.0), choose(1e12)
    rule = small if small.device == large.device else f"small work {small}; large work {large}"
    facts["work goes to"] = f"{rule} ({VARIABLE} chooses)"
    this.answer = dict(facts)
    for name, value in facts.items():
        this.say(f"{name:14}{value}")


def _tell_model(this: Session, path: Path) -> None:
    from ..estimators import load

    learner = load(path)
    posterior = learner.posterior_
    this.say(f"{path}: a model, {learner}")
    this.say(str(posterior))
    evidence = [kind.name for kind in learner.evidence_]
    if evidence:
        this.say(f"evidence: {', '.join(evidence)}")
    this.answer = {
        "kind": "model",
        "settings": {k: str(v) for k, v in learner.get_params(False).items()},
        "evidence": evidence,
        "engine": posterior.engine,
        "posterior": posterior.summary().to_dict("index"),
        "verdict": verdict_to_json(posterior.verdict),
    }


def _tell_arrays(this: Session, path: Path) -> None:
    if (table := _edges_of(path)) is not None:
        return _tell_edges(this, path, table)
    data, _ = Given([path]).read("precomputed", "error")
    assert isinstance(data, GraphDataset)  # as an npz is
    scale = float(np.median(np.concatenate([record.e for record in data])))
    few, many = min(data.n_nodes), max(data.n_nodes)
    this.answer = {
        "kind": "data set",
        "graphs": len(data),
        "nodes": sorted(set(data.n_nodes)),
        "labels": data.n_labels,
        "median distance": scale,
    }
    this.say(
        f"{path}: a data set, {count(len(data), 'graph')} of "
        f"{few if few == many else f'{few} to {many}'} nodes, {data.n_labels} known labels, median "
        f"distance {scale:.4g}"
    )


def _edges_of(path: Path) -> pd.DataFrame | None:
    """Read the table that `predict` and `learn` write as .npz."""
    with open_npz(path) as file:
        if not {"source", "target"} <= set(file.described):
            return None  # a data set, or nothing of ours: `load_dataset` says what is wrong
        shapes = {array.shape for array in file.described.values()}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            raise InputError("its columns are not of one length.", where=path)
        return pd.DataFrame({name: file.array(name) for name in file.described})


def _tell_graph(this: Session, path: Path) -> None:
    matrix = read_graphml(path)
    edges = int(np.triu(matrix.to_numpy() != 0, 1).sum())
    this.answer = {"kind": "graph", "edges": edges}
    this.say(f"{path}: a graph, {edges} edges among {len(matrix)} nodes; it serves as --labels")
    _tell_nodes(this, matrix)


def _tell_json(this: Session, path: Path) -> None:
    content = read_json(path)
    lists = content if isinstance(content, dict) else {"": content}
    names = {key: value for key, value in lists.items() if are_names(value)}
    if names and len(names) == len(lists):
        this.answer = {"kind": "nodes", "names": {key: len(value) for key, value in names.items()}}
        for key, value in names.items():
            this.say(f"{path}{key and ':'}{key}: a list of {len(value)} node names, for --nodes")
        return
    prior = read_prior(path)
    this.answer = {"kind": "prior", "prior": {name: str(m) for name, m in prior.items()}}
    this.say(f"{path}: a prior, for --prior")
    for name, marginal in prior.items():
        this.say(f"  {name} ~ {marginal}")


def _tell_table(this: Session, path: Path) -> None:
    table = read_table(path)
    if {"source", "target"} <= set(table.columns):
        return _tell_edges(this, path, table)
    with suppress(InputError):
        return _tell_square(this, path, read_matrix(path))
    # Two columns of which the first holds names: as signals, they would be one node.
    numeric = pd.to_numeric(table.iloc[:, 0], errors="coerce").notna().any()
    if table.shape[1] == 2 and not numeric:
        return _tell_groups(this, path)
    return _tell_signals(this, path, table)


def _tell_edges(this: Session, path: Path, table: pd.DataFrame) -> None:
    ends = table[["source", "target"]].astype(str).to_numpy()
    others = [str(name) for name in table.columns if name not in ("source", "target")]
    nodes = list(dict.fromkeys(ends.ravel()))
    if "graph" not in others and len(others) < 2 and path.suffix.lower() != ".npz":
        edges_to_matrix(table, where=path)  # to be used as labels it must be sound
    this.answer = {"kind": "edges", "pairs": len(table), "nodes": len(nodes), "columns": others}
    beside = f", with {', '.join(others)}" if others else ""
    this.say(f"{path}: an edge list, {len(table)} pairs among {len(nodes)} nodes{beside}")


def _tell_square(this: Session, path: Path, matrix: pd.DataFrame) -> None:
    values = matrix.to_numpy()
    off = values[~np.eye(len(values), dtype=bool)]
    labels = bool(np.isin(off[~np.isnan(off)], (0, 1)).all())
    gaps = int(np.isnan(off).sum())
    symmetric = bool(np.array_equal(values, values.T, equal_nan=True))
    this.answer = {
        "kind": "matrix",
        "holds": "labels" if labels else "distances",
        "gaps": gaps,
        "symmetric": symmetric,
    }
    what = "labels (0, 1), for --labels" if labels else "distances, say"
    this.say(
        f"{path}: a square matrix of {len(matrix)} nodes ({what}), {gaps} gaps"
        f"{'' if symmetric else ', not symmetric'}"
    )
    _tell_nodes(this, matrix)


def _tell_groups(this: Session, path: Path) -> None:
    groups = read_groups(path)
    n_groups = len(set(groups.values()) - {""})
    this.answer = {"kind": "groups", "nodes": len(groups), "groups": n_groups}
    many = "a group" if n_groups == 1 else f"{n_groups} groups"
    this.say(f"{path}: groups, {len(groups)} nodes in {many}, for --groups")


def _tell_signals(this: Session, path: Path, table: pd.DataFrame) -> None:
    columns = [str(name) for name in table.columns]
    try:
        signals = read_signals(path)
        if signals.shape[1] < 2:
            raise InputError("a single column of numbers", where=path)
    except InputError as error:
        place = str(error.where or "").removeprefix(str(path)).lstrip(", ")
        why = error.but(where=place or None).sentence().rstrip(".")
        raise InputError(
            f"{len(table)} rows and the columns {columns[:5]}, of no known kind: not an edge list "
            f"(source, target), a matrix with names, groups (node, group) or signals ({why}).",
            where=path,
        ) from None
    gaps = int(signals.isna().sum().sum())
    this.answer = {"kind": "signals", "rows": len(signals), "gaps": gaps}
    this.say(
        f"{path}: a table of signals, {len(signals)} rows (observations), {signals.shape[1]} "
        f"columns (nodes), {gaps} gaps"
    )
    _tell_nodes(this, signals)


def _tell_nodes(this: Session, frame: pd.DataFrame) -> None:
    names = [str(name) for name in frame.columns[:10]]
    this.answer |= {"nodes": frame.shape[1], "names": names}
    this.say(f"nodes: {', '.join(names)}{' ...' if frame.shape[1] > 10 else ''}")
