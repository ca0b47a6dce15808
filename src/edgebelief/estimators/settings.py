"""What a learner's settings mean: names become parts, beliefs a prior, scales numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float

from ..belief import elicit_prior
from ..data.coerce import Nearest, check_form, rescaled
from ..data.dataset import GraphDataset
from ..errors import InputError, Remedy, Setting, SettingError, SettingTypeError
from ..infer import (
    BernoulliEdges,
    EdgeModel,
    Engine,
    Exact,
    Laplace,
    Likelihood,
    Prior,
    WeightedEdges,
)
from ..infer.flatness import best_rescaling
from ..networks import Network
from ..persist.arrays import demand
from ..persist.learner import SavedLearner, check_network
from ..readouts import Readout, Sized, papers_readout
from ..readouts.features import size_of
from ..readouts.sized import SPARSE, sparse_over_dense
from ..registry import ENGINES, NETWORKS, READOUTS
from ..validate import check_choice, check_number
from .evidence import check_used

Scale = float | str
"""A number, or one of `BY_GRAPH`."""

# Networks compute in single precision, which ends at 3e38: this leaves room for theta, and for the
# rescalings that are tried. A median below TINY has no reciprocal.
HUGE, TINY = 1e20, 1e-300
# The beliefs about graphs that a prior may be made from; the first is needed.
BELIEFS = ("density", "max_components", "mass")
# Scales that differ between graphs.
BY_GRAPH = ("median", "relative")


def refuse_unknown(given: Iterable[str], known: Sequence[str], what: str) -> None:
    """Refuse a keyword that there is not, in the name of what the user has called."""
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1)
            meant = f"Did you mean {near[0]!r}?" if near else f"It takes {', '.join(known)}."
            problem = f"{what} got an unexpected keyword argument {name!r}. {meant}"
            raise SettingTypeError(problem)


def parts_of(settings: Mapping[str, Any]) -> tuple[Network, Readout, Likelihood]:
    """Return the network, the readout, and the likelihood that settings mean.

    For "auto" the readout is the additive one, of which `candidates.chosen` takes parts; or the
    paper's, where an engine is asked for that does not fit those.
    """
    network = network_of(settings["network"], settings["depth"])
    _check_bool(settings["size_aware"], "size_aware")
    if settings["size_aware"]:
        _check_size_aware(settings, network)
        readout: Readout = Sized()
    else:
        engine = engine_of(settings["inference"])
        choice = settings["readout"]
        if is_auto(choice) and not isinstance(engine, None | Exact | Laplace):
            choice = "affine"
        readout = readout_of(choice, network)
    may_be_additive = network.kind == "dpg" and not settings["size_aware"]
    additive = Remedy("use {}", Setting("readout", "additive")) if may_be_additive else None
    check_used(settings["evidence"], readout, additive)
    return network, readout, likelihood_of(settings["weighted"])


def nearest_of(settings: Mapping[str, Any]) -> Nearest | None:
    """Return which pairs may be edges; None if all may."""
    support = settings["support"]
    check_choice(support, "support", ("complete", "knn"))
    nearest = Nearest(settings["n_neighbors"], settings["neighbors"])
    if support == "complete":
        if settings["neighbors"] is not None:
            remedy = Remedy("Say {}", Setting("support", "knn"))
            problem = "finds near neighbours, and here all pairs may be edges"
            raise SettingError(problem, argument="neighbors", remedy=remedy)
        return None
    nearest.check(settings["metric"], settings["missing"])
    if settings["size_aware"]:
        problem = "is for dense graphs, in which all pairs may be edges"
        remedy = Remedy("Leave {} out", Setting("size_aware"))
        raise SettingError(problem, argument="size_aware", remedy=remedy)
    return nearest


def is_auto(readout: object) -> bool:
    """Whether the readout is to be chosen."""
    return isinstance(readout, str) and readout == "auto"


def _check_size_aware(settings: Mapping[str, Any], network: Network) -> None:
    refused = partial(SettingError, argument="size_aware")
    readout, scale = settings["readout"], settings["scale"]
    if not (scale is None or (isinstance(scale, str) and scale == "median")):
        problem = f"takes distances over each graph's median; the scale is {scale!r}"
        raise refused(problem, remedy=Remedy("Leave {} out", Setting("scale")))
    if settings["weighted"]:
        problem = "is for edges without weights: how weights change with size is another question"
        raise refused(problem, remedy=Remedy("Leave {} out", Setting("weighted")))
    if isinstance(settings["prior"], Mapping):
        raise refused(
            "takes a named prior or a Prior; beliefs about graphs are turned into one for graphs "
            "of one size."
        )
    if not (isinstance(readout, str) and readout in ("affine", "auto")):
        raise refused(
            f"has a readout of its own, with the parameters of 'affine'; the readout is "
            f"{readout!r}",
            remedy="Leave one of them out",
        )
    if network.kind != "dpg":
        raise refused(
            f"is for DPG, of whose weights it is known how they fall with size; the network is a "
            f"{type(network).__name__}."
        )


def check_dense(data: GraphDataset, weights: Float[np.ndarray, " graphs"]) -> None:
    """Refuse labels whose density falls with the size of graphs: `Sized` is for dense graphs."""
    used = [record for record, weight in zip(data, weights, strict=True) if weight > 0]
    labelled = [record for record in used if record.known.any()]
    n_edges, n_pairs, n_nodes = np.array(
        [[r.a[r.known].sum(), r.known.sum(), len(r.names)] for r in labelled], float
    ).T
    ratio = sparse_over_dense(n_edges, n_pairs, n_nodes)
    if ratio < SPARSE:
        return
    ends = n_nodes == n_nodes.min(), n_nodes == n_nodes.max()
    low, high = (float(n_edges[end].sum() / n_pairs[end].sum()) for end in ends)
    raise InputError(
        f"size_aware is for dense graphs, where as large a share of the pairs is joined whatever "
        f"the number of nodes. Here it falls: {low:.0%} at {n_nodes.min():.0f} nodes, {high:.0%} "
        f"at {n_nodes.max():.0f}; a constant mean degree is more likely (by {ratio:.1f} in the "
        f"log-likelihood)",
        remedy=Remedy("Leave {} out", Setting("size_aware")),
    )


def network_of(network: str | Network, depth: int | None) -> Network:
    """Return the network that a name and a depth mean; a `Network` as it is."""
    if isinstance(network, Network):
        return network
    check_choice(network, "network", sorted(NETWORKS), ", or a Network")
    layers = int(depth) if isinstance(depth, np.integer) else depth
    return NETWORKS[network].load().of_depth(layers)


def readout_of(readout: object, network: Network) -> Readout:
    """Return the readout that is meant."""
    if isinstance(readout, Readout):
        return readout
    if not (isinstance(readout, str) and readout in ("auto", *READOUTS)):
        problem = f"must be auto, one of {sorted(READOUTS)}, or a Readout; got {readout!r}."
        raise SettingError(problem, argument="readout")
    if readout == "affine" or (readout == "auto" and network.kind != "dpg"):
        return papers_readout(network)
    if network.kind != "dpg":
        raise SettingError(
            f"{readout!r} is for DPG, whose weights it scales; the network is a "
            f"{type(network).__name__}",
            argument="readout",
            remedy=Remedy("Use {}, the paper's", Setting("readout", "affine")),
        )
    return READOUTS["additive" if readout == "auto" else readout].make()


def engine_of(inference: object) -> Engine | None:
    """Return the engine that is meant; None for "auto"."""
    if isinstance(inference, Engine):
        return inference
    if isinstance(inference, str) and inference == "auto":
        return None
    if not (isinstance(inference, str) and inference in ENGINES):
        problem = f"must be auto, one of {sorted(ENGINES)}, or an engine; got {inference!r}."
        raise SettingError(problem, argument="inference")
    return ENGINES[inference].make()


def likelihood_of(weighted: object) -> Likelihood:
    """Return the likelihood of edges with weights, or without."""
    _check_bool(weighted, "weighted")
    return WeightedEdges() if weighted else BernoulliEdges()


def _check_bool(value: object, what: str) -> None:
    if not isinstance(value, bool | np.bool_):
        raise SettingTypeError(f"must be True or False; got {value!r}.", argument=what)


def prior_of(prior: object, data: GraphDataset, network: Network, readout: Readout) -> Prior:
    """Return the prior that a name, or beliefs about graphs, mean on these data."""
    if isinstance(prior, Prior):
        return prior
    if isinstance(prior, str):
        return Prior.named(prior, network.kind)
    if isinstance(prior, Mapping):
        return elicit_prior(data, **_beliefs(prior), network=network, readout=readout)
    raise SettingTypeError(
        f"must be a name, a Prior, or beliefs such as {{'density': (0.05, 0.5)}}; got {prior!r}.",
        argument="prior",
    )


def _beliefs(prior: Mapping[str, Any]) -> dict[str, Any]:
    """Check which beliefs are stated; `elicit_prior` checks what they say."""
    unknown = [name for name in prior if name not in BELIEFS]
    if not unknown and "density" in prior:
        return dict(prior)
    problem = f"{unknown[0]!r} is none" if unknown else "density is missing"
    raise SettingError(
        f"as a mapping states beliefs about graphs, {', '.join(BELIEFS)}, and {problem}. The prior "
        f"of a parameter is exchanged by Prior.named('altered').replace(theta=lognormal(1, 1)).",
        argument="prior",
    )


def scale_of(
    scale: object, network: Network, prior: object, readout: Readout, data: GraphDataset
) -> Scale:
    """Return what distances are multiplied by: a number, "median" or "relative"."""
    if scale is None:
        return readout.scale or 1.0
    if isinstance(scale, str) and scale in BY_GRAPH:
        return scale
    if isinstance(scale, str) and scale == "auto":
        named = prior if isinstance(prior, str | Prior) else "altered"
        return float(best_rescaling(EdgeModel(network, prior=named), _checked_size(data)).factor)
    if isinstance(scale, str):
        problem = f"must be None, auto, median, relative or a number; got {scale!r}."
        raise SettingError(problem, argument="scale")
    factor = check_number(scale, "scale")
    if not (np.isfinite(factor) and factor > 0):
        raise SettingError(f"must be positive and finite; got {factor:g}.", argument="scale")
    return factor


def scaled_by(scale: Scale, data: GraphDataset) -> GraphDataset:
    """Return the data with distances multiplied by `scale`; refuse what overflows in a network."""
    if isinstance(scale, str):
        medians = [float(np.median(record.e)) for record in data]
        if min(medians) <= TINY:
            t = int(np.argmin(medians))
            raise InputError(
                f"the median distance is {medians[t]:g}, and cannot be divided by. The scale "
                f"{scale!r} is for positive distances.",
                graph=t,
            )
        sizes = [size_of(n) if scale == "relative" else 1.0 for n in data.n_nodes]
        factors = [1 / (m * s) for m, s in zip(medians, sizes, strict=True)]
        return _checked_size(rescaled(data, factors))
    return _checked_size(data if scale == 1 else rescaled(data, [scale] * len(data)))


def _checked_size(data: GraphDataset) -> GraphDataset:
    for t, record in enumerate(data):
        if not np.abs(record.e).max() < HUGE:
            raise InputError(
                f"its distances, scaled, reach {np.abs(record.e).max():g}, and networks count in "
                f"single precision",
                graph=t,
                remedy=Remedy("Rescale them: {}, or a small number", Setting("scale", "median")),
            )
    return data


def check_saved(saved: SavedLearner, names: Iterable[str]) -> None:
    """Refuse a file with which no learner could be fitted, or which lacks a setting of `names`."""
    settings, scale = saved.settings, saved.scale
    lacking = set(names) - set(settings)
    demand(not lacking, f"the learner's settings lack {sorted(lacking)}")
    network, *_ = parts_of(settings)
    check_network(network)
    engine_of(settings["inference"])
    check_form(settings["metric"], settings["missing"], settings["preprocess"])
    types = {"metric": str, "prior": str | Prior | dict, "scale": str | float | int | None}
    for name, type_ in {**types, "random_state": int | None}.items():
        demand(isinstance(settings[name], type_), f"its {name} is none")
    demand(scale in BY_GRAPH or (type(scale) is float and 0 < scale < np.inf), "its scale is none")
