"""GraphLearner: from measurements and known edges to belief in the edges of new graphs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import networkx as nx
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import belief, metrics
from ..amortise.evidence import PretrainedBelief
from ..belief.shift import warn_if_fitted
from ..data.coerce import Graphs, check_form, graphs_from, warn_if_alike, warn_if_on_their_side
from ..data.dataset import GraphDataset
from ..data.ensembles import Ensemble
from ..data.signals import Filter, Preprocess, SquareRootInverse
from ..errors import InputError, Remedy, Setting, SettingError
from ..evidence import check_names
from ..infer import (
    EdgeModel,
    Engine,
    Exact,
    InferenceWarning,
    Laplace,
    Posterior,
    Prior,
    default_engine,
)
from ..infer.exact.applies import applies
from ..infer.model import check_weights
from ..infer.prepare import prepare
from ..networks import Network
from ..persist import learner as learner_file
from ..persist.modelfile import ModelFileError
from ..readouts import Additive, Readout
from ..report import Report
from ..validate import check_choice
from .candidate_pairs import MISSED, as_matrix, missed_by, outside_table
from .candidates import (
    DESIGN,
    MANY_LABELS,
    chosen,
    engine_for,
    with_figure,
    with_first_pass,
)
from .evidence import Kinds, evidence_for, evidence_of, informed, with_covariates
from .pretrained import (
    assumption_of,
    believed,
    believing,
    cautions,
    expectations,
    posterior_of,
    tuned_to,
    typicality_table,
)
from .settings import (
    check_dense,
    check_saved,
    engine_of,
    is_auto,
    nearest_of,
    network_of,
    parts_of,
    prior_of,
    refuse_unknown,
    scale_of,
    scaled_by,
)
from .simulate import Simulation

# The keywords of methods that are passed on: a rule of `belief.decide`, and what `Report.of` takes.
RULES = ("threshold", "cost", "fdr", "top_k")
ABOUT = (
    *("title", "assumptions", "settings", "recipe"),
    *("held_out", "key", "check_draws", "reason_draws"),
)


class GraphLearner(BaseEstimator):
    """Learn from graphs whose edges are known how to believe in the edges of others.

    Supervised and Bayesian: a network that solves the smooth-signals graph problem, with three
    parameters, whose posterior given the known edges is carried over to every edge of a new graph.
    scikit-learn's conventions, except that a sample is a whole graph.

    If no graph with known edges is at hand, see `GraphLearner.simulated`; for one graph without
    belief, `SmoothGraph`.

    Parameters
    ----------
    network : "dpg", "pds", "mimo", "mimo-e" or Network
        The unrolled iteration. "dpg" has one parameter and an exact posterior. The paper's others:
        "pds", another iteration for the same problem; "mimo", four channels that are mixed in every
        layer; "mimo-e", a trained "mimo" with a few more layers whose parameters are in doubt. A
        `Network` brings its own depth.
    prior : str, Prior or mapping
        "altered" (default), "original" or "flat", the paper's; a `Prior`; or beliefs about graphs,
        such as ``{"density": (0.05, 0.5)}``, which `elicit_prior` turns into one on the training
        distances: for "dpg", and for the readout that is fitted.
    depth : int or None
        Layers; None for the converged solution.
    readout : "auto", "affine", "two-slope", "additive" or Readout
        From what the network knows to belief. "affine" is the paper's, with two parameters.
        "additive" adds a smooth curve of everything else that is known of a pair (`evidence`, and
        covariates), each on a scale that is learned. "auto" is a mixture of parts of the additive
        one: none of its terms (the paper's), a curve of z, all curves, and a smooth function of all
        features together; with the shares that predict best the labels of graphs that quick fits
        have not seen (`comparison_`). There may be a second pass, whose terms include what a first
        pass believes of the pairs around (`edgebelief.belief.structure`). Where labels of pairs
        with a common node depend on each other, they count less (`edgebelief.infer.dependence`).
        With more than 20,000 labels parts are chosen on so many of them and fitted by a normal
        approximation (`infer.Laplace`), unless `inference` names an engine.
        With fewer than three labelled graphs shares are chosen by held-out nodes, in one pass, and
        `posterior_.verdict.assumptions` says so. With `inference` other than "auto", "exact" or
        "laplace", and for networks other than "dpg", it is "affine".
    evidence : "auto", "none" or list
        What the whole graph says about each pair, as further terms of an additive readout: names
        ("precision", "forest", ...), `Evidence` objects, or functions from distances (N, N) to a
        symmetric matrix, of `edgebelief.evidence`. "auto" takes what X allows within about half a
        minute: from distances alone where X holds distances, else from the signals too, and every
        method that predicts then needs signals. It is for a readout by its name; a `Readout` object
        says itself what its terms are, and gets evidence that is listed. Evidence is computed from
        distances before `scale`, and from signals after `preprocess`; no channel of ours depends on
        their units. Other readouts use none, and listing some is an error.
    metric : "precomputed", "sqeuclidean", "log-euclidean", "correlation" or callable
        What X holds: distances, or signals to compute these distances from. A function takes
        signals (P, N) and returns distances.
    scale : None, "auto", "median", "relative" or float
        What distances are multiplied by, at fit and at predict. Never anything unless asked: None.
        "auto" is the power of ten that suits the prior; "median" divides each graph's distances by
        their median, so that only ratios matter; "relative" does, and makes theta mean the same in
        graphs of other sizes (the default of a relative readout); a number is that number. Where a
        rescaling would help, the verdict says so.
    missing : "error" or "pairwise"
        Gaps (NaN) in signals: refused, or each pair uses the signals that have both.
    preprocess : None, "log", "diff", "log-returns" or "standardize"
        What is done to signals before distances are computed: see `edgebelief.data.transformed`.
        Kept here, rather than in a step before, so that a saved model knows it. None compares
        values as they are: right for signals in one unit whose variance means something; there is
        a warning where scales are unequal. Its old name is `transform`.
    inference : "auto", "exact", "nuts", "map", "vi", "modes" or an engine
        "auto" is exact where that applies (a network with one parameter); an ensemble of modes for
        "mimo", whose posterior has many; else NUTS.
    weighted : bool
        Whether edges have weights: A then holds weights (above 0 for an edge, 0 for none, NaN for
        unknown), and `predict_weights` says what the weight of each edge would be. See
        `edgebelief.infer.WeightedEdges`.
    size_aware : bool
        Whether the model is to hold for graphs of other sizes, larger ones above all: distances
        are taken relative to their graph, weights to its number of nodes, and how belief grows
        with it is estimated, if they have several sizes. For dense graphs, where each node
        is joined to a share of the others: labels whose density falls with the size are refused.
        See `edgebelief.readouts.Sized` and docs/sizes.md.
    support : "complete" or "knn"
        Which pairs may be edges. "complete": all. "knn", for large graphs: a pair if either node is
        among the `n_neighbors` nearest of the other. Time and memory then grow with the number of
        these candidates, not with the number of pairs. Belief in them is learned from the labels of
        candidates, and every method returns sparse matrices, with an entry for each candidate. All
        other pairs are taken for no edges; how many edges that misses is estimated on the labels
        (`missed_`, `outside`). X holds signals without gaps, or distances; of a sparse matrix of
        distances the entries are the candidates. "auto" evidence is then what can be computed
        without all pairs, and there is no second pass.
    n_neighbors : int
        For "knn": how many neighbours each node chooses.
    neighbors : object with ``fit_transform(X)``, optional
        For "knn": what finds them, such as `sklearn.neighbors.KNeighborsTransformer` or an index of
        yours that behaves as it does; see `edgebelief.data.nearest_pairs`.
    random_state : int, RandomState or None
        Of the engine's chance, and of sampled graphs and intervals.

    Attributes
    ----------
    posterior_ : Posterior
        With its `verdict`.
    model_ : EdgeModel
    scale_ : float, "median" or "relative"
    evidence_ : tuple of Evidence
        What the fitted readout uses.
    comparison_ : DataFrame or None
        Of the parts of "auto": elpd, the sum of the log scores of all pairs; behind, how far below
        the best; their standard errors over graphs; and the share of each in the mixture.
    first_pass_ : Posterior or None
        What terms of a second pass are computed from, where there is one.
    classes_ : array, shape (n_nodes,)
        The columns of A, 0 to N - 1, where all fitted graphs have N nodes: scikit-learn's word for
        the outputs of a multilabel learner, as ``cross_val_predict(method="predict_proba")`` asks
        for it. For graphs of several sizes, which it cannot stack, see `cross_val_predictions`.

    Examples
    --------
    >>> from edgebelief import GraphLearner
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=6, n_nodes=8, n_signals=200)
    >>> X, A = [g.distance_matrix() for g in data], [g.label_matrix() for g in data]
    >>> learner = GraphLearner(readout="affine", depth=50).fit(X[:5], A[:5])
    >>> learner.predict_proba(X[5]).shape
    (8, 8)
    >>> learner.edge_table(X[5], level=None).columns.tolist()
    ['source', 'target', 'probability', 'logit', 'sd', 'epistemic', 'aleatoric', 'decision']

    With evidence among the terms:

    >>> from edgebelief.readouts import Additive
    >>> small = Additive(features=("z",))
    >>> learner = GraphLearner(depth=50, readout=small, evidence=["profile"]).fit(X[:5], A[:5])
    >>> sorted(learner.terms()["term"])
    ['profile', 'z']
    """

    def __init__(
        self,
        network: str | Network = "dpg",
        prior: str | Prior | Mapping[str, Any] = "altered",
        depth: int | None = 200,
        *,
        readout: str | Readout = "auto",
        evidence: Literal["auto", "none"] | Sequence[Any] = "auto",
        metric: Any = "precomputed",
        scale: Literal["auto", "median", "relative"] | float | None = None,
        missing: Literal["error", "pairwise"] = "error",
        preprocess: Preprocess | None = None,
        inference: str | Engine = "auto",
        weighted: bool = False,
        size_aware: bool = False,
        support: Literal["complete", "knn"] = "complete",
        n_neighbors: int = 20,
        neighbors: Any = None,
        random_state: Any = 0,
        **deprecated: Any,
    ):
        preprocess = renamed(deprecated, preprocess)
        self.network = network
        self.prior = prior
        self.depth = depth
        self.readout = readout
        self.evidence = evidence
        self.metric = metric
        self.scale = scale
        self.missing = missing
        self.preprocess = preprocess
        self.inference = inference
        self.weighted = weighted
        self.size_aware = size_aware
        self.support = support
        self.n_neighbors = n_neighbors
        self.neighbors = neighbors
        self.random_state = random_state

    def set_params(self, **params: Any) -> GraphLearner:
        """Set parameters, as scikit-learn does."""
        if "transform" in params:
            params["preprocess"] = renamed({"transform": params.pop("transform")}, None)
        return super().set_params(**params)

    def fit(
        self, X: Any, A: Any = None, *, covariates: Any = None, sample_weight: Any = None
    ) -> GraphLearner:
        """Compute the posterior of the parameters.

        Parameters
        ----------
        X : array_like, DataFrame, sequence of those, or GraphDataset
            One graph or several: distances (N, N), (T, N, N), or signals (P, N), (T, P, N) (rows
            observations, columns nodes), by `metric`; a list where N differs. Frames bring names.
        A : array_like, sparse matrix, networkx.Graph, DataFrame, or a sequence of those
            The known edges in the same order: 0, 1, NaN for unknown; or their weights (`weighted`).
            A frame is an adjacency or an edge list (source, target). Not needed where X is a
            `GraphDataset` with labels.
        covariates : DataFrame, mapping, or a sequence of those, optional
            What else is known of the pairs of the graph, or of each: a frame with source, target
            and a column per covariate; one with a row per node; or a mapping from names to
            matrices. See `edgebelief.data.pair_covariates`. Terms of an additive readout; every
            method that predicts then needs them too.
        sample_weight : array_like, shape (n_graphs,), optional
            How often each graph counts.
        """
        self._check_settings()
        graphs = self._graphs(X, A, covariates)
        warn_if_alike(graphs.data)
        return self._fit(graphs, sample_weight, None, covariates is not None)

    def _check_settings(self) -> None:
        """Refuse settings that there are not, before any data are looked at."""
        parts_of(self.get_params(False))
        engine_of(self.inference)
        check_form(self.metric, self.missing, self.preprocess)
        nearest_of(self.get_params(False))

    def _fit(
        self, graphs: Graphs, sample_weight: Any, kinds: Kinds | None, has_covariates: bool = False
    ) -> GraphLearner:
        """Fit to graphs; `kinds` is the evidence that they have already, None before any."""
        network, readout, likelihood = parts_of(self.get_params(False))
        engine = engine_of(self.inference)
        weights = check_weights(sample_weight, len(graphs.data))
        assumptions: list[str] = []
        if has_covariates and readout.covariates == ():
            raise InputError(
                f"covariates are terms of an additive readout; this learner's is {self.readout!r}",
                remedy=Remedy("Use {}", Setting("readout", "additive")),
            )
        if graphs.data.n_labels == 0:
            raise InputError(
                "no label is known: fit needs A, the known edges of some of the graphs (0, 1, NaN "
                "for unknown). Without any, see GraphLearner.simulated, or SmoothGraph."
            )
        if self.size_aware:
            check_dense(graphs.data, weights)
            if len(set(graphs.data.n_nodes)) == 1:
                assumptions.append(
                    f"nodes are joined to as large a share of the others in graphs of other sizes: "
                    f"all graphs that were fitted have {graphs.data.n_nodes[0]} nodes"
                )
        seed = int(check_random_state(self.random_state).randint(2**31))
        scale, data = self._scaled(network, readout, graphs.data)
        if kinds is None:
            kinds = evidence_for(self.get_params(False), readout, graphs)
            data = scaled_by(scale, informed(kinds, graphs.data, graphs.signals, is_fitted=False))
        readout = with_covariates(readout, check_names(kinds))
        prior = prior_of(self.prior, data, network, readout)
        model = EdgeModel(network, readout, prior, likelihood)
        to_choose = is_auto(self.readout) and isinstance(readout, Additive)
        if to_choose and not applies(model):  # the prior fixes delta, say
            model, to_choose = model.with_terms(()), False
        first_pass = comparison = None
        if to_choose:
            vary_scales = not (isinstance(self.prior, Prior) and "scales" in self.prior)
            by = engine if isinstance(engine, Exact | Laplace) else engine_for(data.n_labels)
            if by is not engine and isinstance(by, Laplace):
                assumptions.append(
                    f"with {data.n_labels:,} labels a normal approximation at one theta takes the "
                    f"place of integration, and parts were chosen on {MANY_LABELS:,} of them"
                )
            choice = chosen(seed, model, data, weights, by, vary_scales)
            model, engine, data = choice.model, choice.engine, choice.data
            weights = weights / choice.design_effect
            if choice.design_effect > 1:
                assumptions.append(
                    f"labels of pairs with a node in common depend on each other: "
                    f"{choice.design_effect:.1f} count as one"
                )
            first_pass, comparison = choice.first_pass, choice.comparison
            assumptions += [] if choice.assumption is None else [choice.assumption]
        posterior = (engine or default_engine(model)).run(seed, model, data, weights)
        if to_choose:
            posterior = with_figure(posterior, DESIGN, choice.design_effect)
        if (missed := missed_by(graphs.data, weights)) is not None:
            posterior = with_figure(posterior, MISSED, missed.share)
            assumptions.append(missed.sentence())
        if assumptions:
            verdict = replace(posterior.verdict, assumptions=tuple(assumptions))
            posterior = replace(posterior, verdict=verdict)
        self.seed_, self.scale_, self.comparison_ = seed, scale, comparison
        self.model_, self.posterior_, self.first_pass_ = posterior.model, posterior, first_pass
        passes = [each.model for each in (posterior, first_pass) if each is not None]
        used = {name for each in passes for name in each.readout.covariates or ()}
        self.evidence_ = tuple(kind for kind in kinds if used.intersection(kind.channels))
        return self

    @property
    def classes_(self) -> np.ndarray:
        check_is_fitted(self, "posterior_")
        sizes = set(self.posterior_.fingerprint.n_nodes)
        if len(sizes) > 1:
            raise AttributeError(
                "graphs of several sizes have no columns in common; see cross_val_predictions."
            )
        return np.arange(sizes.pop())

    @classmethod
    def simulated(
        cls,
        ensemble: Ensemble | str = "geometric",
        *,
        n_nodes: int,
        n_signals: int | None = None,
        density: float | None = None,
        n_graphs: int = 50,
        filter: Filter = SquareRootInverse(),
        metric: Any = "sqeuclidean",
        network: str | Network = "dpg",
        steps: int | None = None,
        progress: bool | None = None,
        **settings: Any,
    ) -> GraphLearner:
        """Fit a learner to simulated graphs, where no graph with known edges is at hand.

        Draws graphs that resemble yours, smooth signals on them, and learns from those. The belief
        is then as good as the resemblance, which nothing here can check: `posterior_.verdict` and
        the report carry the assumption.

        Parameters
        ----------
        ensemble : Ensemble or {"geometric", "erdos-renyi", "barabasi-albert", "watts-strogatz"}
            What kind of graph. A name needs `density`.
        n_nodes : int
            As many as yours.
        n_signals : int, optional
            As many signals as you have; by default infinitely many (for "sqeuclidean" alone).
        density : float, optional
            The share of pairs that you believe to be joined, where `ensemble` is a name.
        n_graphs : int
        filter : Filter
            How signals spread along edges.
        metric : "sqeuclidean" or "correlation"
            The distance; predict then takes signals.
        network : "dpg", "pair", ... or Network
            Of `GraphLearner`; or "pair": the pretrained network (`GraphLearner.pretrained`) is
            trained a little more, on new graphs of the simulation. For those who know what kind of
            graphs theirs are: it predicts these better than the other networks do, and better than
            before, most where they are unlike the world that it was trained on. It takes
            `n_signals`, and minutes. The `n_graphs` are held out: `posterior_.verdict` says what
            tuning was worth on them, and other data are compared with them (`typicality`).
        steps : int, optional
            For "pair": the number of training steps, by default 100 on a processor (32 graphs of 20
            nodes each, 4 of 60 or more) and 4,000 on a GPU.
        progress : bool, optional
            For "pair": whether to show a progress bar; by default if stderr is a terminal.
        **settings
            Of `GraphLearner`. `scale` is "median" by default for "sqeuclidean", since the unit of
            your signals is not that of simulated ones. With evidence="auto" it is that of distances
            alone, so that you may predict from distances too; list it for more.

        Examples
        --------
        >>> from edgebelief import GraphLearner
        >>> from edgebelief.data import ErdosRenyi, smooth_signals
        >>> learner = GraphLearner.simulated(
        ...     "erdos-renyi", density=0.3, n_nodes=10, n_signals=500, n_graphs=8, readout="affine"
        ... )
        >>> signals = smooth_signals(1, ErdosRenyi(0.3).sample(2, n_nodes=10), n_signals=500)
        >>> learner.predict_proba(1000 * signals).shape
        (10, 10)
        """
        simulation = Simulation.of(ensemble, n_nodes, n_signals, density, n_graphs, filter, metric)
        is_pair = isinstance(network, str) and network == "pair"
        if not is_pair:
            if steps is not None:
                problem = 'is for network="pair".'
                raise SettingError(problem, argument="steps")
            settings |= {"network": network}
        settings.setdefault("scale", "median" if metric == "sqeuclidean" else None)
        learner = cls(metric=metric, **settings)
        seed = int(check_random_state(learner.random_state).randint(2**31))
        learner._check_settings()
        if is_pair:
            return learner._believing(*tuned_to(simulation, seed, steps, progress), seed)
        is_listed = not isinstance(learner.evidence, str)
        learner._fit(simulation.drawn(seed, keep_signals=is_listed), None, None)
        assumed = (str(simulation), *learner.posterior_.verdict.assumptions)
        verdict = replace(learner.posterior_.verdict, assumptions=assumed)
        learner.posterior_ = replace(learner.posterior_, verdict=verdict)
        return learner

    @classmethod
    def pretrained(
        cls,
        *,
        metric: Any = "sqeuclidean",
        n_signals: float | None = None,
        density: float | tuple[float, float] | None = None,
        **settings: Any,
    ) -> GraphLearner:
        """Return a learner that believes at once, without labels and without a fit.

        Its belief is that of a network that ships with the package, trained on millions of
        simulated graphs (docs/pretrained.md). Everything a fitted learner does works, `fit` too,
        which makes it an ordinary one. Data that are unlike all that the network has seen are
        warned about, and believed less (`edgebelief.amortise`).

        Parameters
        ----------
        metric : "sqeuclidean", "log-euclidean", "correlation", "precomputed" or callable
            What X holds, as for `GraphLearner`: signals, of which the network sees distances and
            correlations, or precomputed distances: squared Euclidean ones, or logarithms.
        n_signals : float, optional
            For precomputed distances: of how many signals they are the mean; infinity for expected
            distances. Without it the network believes less.
        density : float or (float, float), optional
            What you know of the share of pairs that are joined: about so much, or between two
            shares with a probability of 0.9. It enters by Bayes' rule.
        **settings
            Of `GraphLearner`: missing, preprocess, random_state.

        Examples
        --------
        >>> from edgebelief import GraphLearner
        >>> from edgebelief.data import RandomGeometric, smooth_signals
        >>> graph = RandomGeometric(radius=0.5).sample(key=0, n_nodes=10)
        >>> signals = smooth_signals(1, graph, n_signals=200)
        >>> learner = GraphLearner.pretrained(density=(0.2, 0.6))
        >>> learner.predict_proba(signals).shape
        (10, 10)
        """
        learner = cls(metric=metric, **settings)
        learner._check_settings()
        kind = believing(metric, n_signals, density)
        seed = int(check_random_state(learner.random_state).randint(2**31))
        return learner._believing(kind, posterior_of(kind, assumption_of(kind)), seed)

    def _believing(self, kind: PretrainedBelief, posterior: Posterior, seed: int) -> GraphLearner:
        """Become a learner with the belief of a pair network."""
        self.posterior_, self.model_, self.evidence_ = posterior, posterior.model, (kind,)
        # A tuned network reads distances relative to each other, and data are compared so.
        self.seed_, self.scale_ = seed, 1.0 if kind.network is None else "median"
        self.comparison_ = self.first_pass_ = None
        return self

    def predict_proba(self, X: Any, *, covariates: Any = None, return_std: bool = False) -> Any:
        """Return the probability of each edge: (N, N), (T, N, N), or a list where N differs.

        With ``return_std=True`` also its epistemic sd: how well the labels have pinned it down.
        """
        graphs, beliefs = self._predicted(X, covariates=covariates)
        mean = self._matrices(graphs, [edges.mean for edges in beliefs])
        if not return_std:
            return mean
        return mean, self._matrices(graphs, [edges.epistemic_sd for edges in beliefs])

    def predict(self, X: Any, *, covariates: Any = None, return_std: bool = False) -> Any:
        """Return the edges with a probability above 0.5, as 0 and 1; `decide` has other rules.

        With ``return_std=True`` also the sd of each edge, sqrt(p(1 - p)).
        """
        graphs, beliefs = self._predicted(X, covariates=covariates)
        decided = self._matrices(graphs, [(edges.mean > 0.5).astype(int) for edges in beliefs])
        if not return_std:
            return decided
        return decided, self._matrices(graphs, [edges.total_sd for edges in beliefs])

    def predict_weights(
        self, X: Any, *, covariates: Any = None, level: float = 0.9
    ) -> belief.WeightBelief:
        """Predict the weight of each edge, if it is one; for a learner with ``weighted=True``.

        Parameters
        ----------
        X, covariates
            As for `predict`.
        level : float
            The probability of the intervals.

        Returns
        -------
        WeightBelief
            probability of the edge; mean, median, low and high of its weight if it is one; and
            expected, the mean of the weight where no edge is zero. Each (N, N), (T, N, N), or a
            list where N differs.

        Examples
        --------
        >>> import numpy as np
        >>> from edgebelief import GraphLearner
        >>> from edgebelief.data import ErdosRenyi, GraphDataset
        >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=6, n_nodes=8, n_signals=100)
        >>> rng = np.random.default_rng(0)
        >>> X = [g.distance_matrix() for g in data]
        >>> A = [g.a * rng.lognormal(2.0, 0.3, g.a.size) for g in data]
        >>> learner = GraphLearner(readout="affine", depth=50, weighted=True).fit(X[:5], A[:5])
        >>> learner.predict_weights(X[5]).high.shape
        (8, 8)
        """
        graphs, beliefs = self._weighed(X, covariates=covariates, level=level)
        columns = zip(*beliefs, strict=True)
        return belief.WeightBelief(*(self._matrices(graphs, list(column)) for column in columns))

    def weight_scores(
        self, X: Any, A: Any = None, *, covariates: Any = None, level: float = 0.9
    ) -> dict[str, float]:
        """Score predicted weights on graphs that were not fitted.

        Returns
        -------
        dict
            crps, crps_given_edge and weight_coverage: see `edgebelief.metrics`. The last should be
            near `level`.
        """
        _, beliefs = self._weighed(X, A, covariates, level)
        warn_if_fitted(self.posterior_.fingerprint, beliefs.data)
        scores = metrics.crps, metrics.crps_given_edge, metrics.weight_coverage
        return {score.__name__: float(score(beliefs)) for score in scores}

    def decide(self, X: Any, *, covariates: Any = None, **rule: Any) -> Any:
        """Decide on edges by a rule that says what mistakes cost; as 0 and 1.

        Parameters
        ----------
        X, covariates
            As for `predict`.
        **rule : one of threshold, cost, fdr, top_k
            See `edgebelief.belief.decide`. Each graph is decided alone.
        """
        refuse_unknown(rule, RULES, "decide")
        graphs, beliefs = self._predicted(X, covariates=covariates)
        return self._matrices(graphs, [belief.decide(b, **rule).astype(int) for b in beliefs])

    def edge_table(
        self, X: Any, *, covariates: Any = None, level: float | None = 0.9, **rule: Any
    ) -> pd.DataFrame:
        """List every pair as a row, the most probable first.

        Parameters
        ----------
        X, covariates
            As for `predict`.
        level : float or None
            The probability of the interval in columns low and high, which holds the probability of
            the edge (`edgebelief.belief.intervals`); None leaves it out (it is slow for large
            graphs).
        **rule
            As for `decide`; column decision.

        Returns
        -------
        DataFrame
            graph (where there are several), source, target, probability, logit (its log odds,
            which still differ where probabilities are 1 to all their digits), sd (of the edge),
            epistemic (sd of the probability), aleatoric, low, high, decision. Where edges have
            weights, before that: weight (its mean, if the pair is an edge) and its interval,
            weight_low and weight_high.
        """
        refuse_unknown(rule, RULES, "edge_table")
        graphs, beliefs, weights = self._predicted_all(X, covariates, level or 0.9)
        ranges = None
        if level is not None:
            ranges = belief.intervals(
                self.seed_, self.posterior_, beliefs.data, level, beliefs=beliefs
            )
        frames = []
        for t, (record, edges) in enumerate(zip(graphs.data, beliefs, strict=True)):
            names = np.array(record.names, dtype=object)
            rows, cols = record.support.endpoints
            columns: dict[str, Any] = {} if graphs.single else {"graph": t}
            columns |= {"source": names[rows], "target": names[cols]}
            columns |= {"probability": edges.mean, "logit": edges.logit, "sd": edges.total_sd}
            columns |= {"epistemic": edges.epistemic_sd, "aleatoric": edges.aleatoric_sd}
            if ranges is not None:
                columns |= {"low": ranges[t][0], "high": ranges[t][1]}
            if weights is not None:
                columns["weight"] = weights[t].mean
                if level is not None:
                    columns |= {"weight_low": weights[t].low, "weight_high": weights[t].high}
            columns["decision"] = belief.decide(edges, **rule).astype(int)
            frames.append(pd.DataFrame(columns).iloc[edges.order])
        return pd.concat(frames, ignore_index=True)

    @property
    def missed_(self) -> float:
        """The share of all edges that are between pairs that are no candidates; 0 if all are.

        Estimated on the labels of the fit; NaN where none of a pair that is no candidate was known.
        """
        check_is_fitted(self, "posterior_")
        return self.posterior_.verdict.figures.get(MISSED, 0.0)

    def outside(self, X: Any, *, covariates: Any = None) -> pd.DataFrame:
        """Say how probable an edge is between nodes that are no candidates, for each graph.

        With the share m of edges that the search for candidates misses (`missed_`) and the sum of
        the probabilities of the candidates S, m S/(1 - m) edges are expected among all other pairs.

        Returns
        -------
        DataFrame
            graph; candidates and others, the numbers of pairs; expected, the number of edges
            expected among the others; probability, that of each of these.
        """
        _, beliefs = self._predicted(X, covariates=covariates)
        return outside_table(beliefs, self.missed_)

    def sample_graphs(
        self, X: Any, n: int = 100, *, covariates: Any = None, connected: bool = False
    ) -> Any:
        """Draw `n` graphs from the posterior predictive: (n, N, N) of 0 and 1, or a list.

        Of sparse matrices, a list of `n`.

        Edges are independent given the parameters, so samples keep edge probabilities, expected
        degrees and density, but not what true graphs have beyond, such as being connected. With
        ``connected=True`` parameters and edges are drawn given that the graph is connected: see
        `edgebelief.belief.sample_graphs`.
        """
        graphs, data = self._given(X, covariates=covariates)
        drawn = belief.sample_graphs(self.seed_, self.posterior_, data, n, connected=connected)
        full = [
            _together([as_matrix(record, labels) for labels in of_record])
            for record, of_record in zip(data, drawn, strict=True)
        ]
        return full[0] if graphs.single else full

    def propagate(
        self,
        X: Any,
        function: Callable[[nx.Graph], Any],
        n: int = 100,
        *,
        covariates: Any = None,
        connected: bool = False,
    ) -> Any:
        """Draw a function of the graph from its posterior predictive.

        Parameters
        ----------
        X, covariates
            One graph, or several.
        function : callable
            Takes a `networkx.Graph` with the nodes' names, returns a number, an array, or a mapping
            (a centrality by node, say).
        n : int
            Graphs drawn from the posterior predictive.
        connected : bool
            Whether they are drawn given that they are connected, as in `sample_graphs`.

        Returns
        -------
        Series, DataFrame or array
            A row per drawn graph: a series of numbers, a frame with a column per key, or an array.
            A list of those where X holds several graphs.

        Examples
        --------
        >>> import networkx as nx
        >>> from edgebelief import GraphLearner
        >>> from edgebelief.data import ErdosRenyi, GraphDataset
        >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=6, n_nodes=8, n_signals=200)
        >>> learner = GraphLearner(readout="affine", depth=50).fit(data[:5])
        >>> learner.propagate(data[5], nx.betweenness_centrality, n=20).shape
        (20, 8)
        """
        graphs, data = self._given(X, covariates=covariates)
        values = belief.propagate(
            self.seed_, self.posterior_, data, function, n, connected=connected
        )
        return values[0] if graphs.single else values

    def explain(
        self, X: Any, source: Any, target: Any, graph: int = 0, *, covariates: Any = None
    ) -> pd.DataFrame:
        """Explain the belief in one edge by parts that add up to its logit.

        See `edgebelief.belief.explain`. `graph` says which, where X holds several.
        """
        _, data = self._given(X, covariates=covariates)
        return belief.explain(self.seed_, self.posterior_, data, source, target, graph)

    def typicality(self, X: Any, *, covariates: Any = None) -> pd.DataFrame:
        """Compare each graph with those that were fitted, by statistics of its distances.

        A small p says that the graph is unlike them, so that belief in its edges may be too sure;
        `predict_proba` warns if the graphs of a call are. See `edgebelief.belief.typicality`. Of a
        pretrained learner, compare each graph with the world that the network was trained on.

        Examples
        --------
        >>> from edgebelief import GraphLearner, data
        >>> graphs = data.GraphDataset.sample(0, data.ErdosRenyi(0.3), 34, n_nodes=15)
        >>> trees = data.GraphDataset.sample(1, data.BarabasiAlbert(1), 4, n_nodes=15)
        >>> learner = GraphLearner(readout="affine", inference="laplace").fit(graphs[:30])
        >>> bool(learner.typicality(graphs[30:])["p"].min() > learner.typicality(trees)["p"].max())
        True
        """
        kind = self._pretrained_kind
        if kind is not None and kind.network is None:
            return typicality_table(believed(kind, self._checked(X)))
        _, data = self._given(X, covariates=covariates)
        return belief.typicality(self.posterior_, data)

    @property
    def _pretrained_kind(self) -> PretrainedBelief | None:
        """What a pretrained learner believes by; None for one that was fitted."""
        check_is_fitted(self, "posterior_")
        return next((k for k in self.evidence_ if isinstance(k, PretrainedBelief)), None)

    def terms(self) -> pd.DataFrame:
        """List the terms of an additive readout: how much each moves the logit, if it is needed.

        Of several terms with the same information none is needed; see `term_importance`. The
        column `share` says how much of a mixture (``readout="auto"``) has the term; size and need
        are about that share.
        """
        check_is_fitted(self)
        return belief.term_table(self.posterior_, self.seed_)

    def term_importance(
        self,
        X: Any,
        A: Any = None,
        *,
        covariates: Any = None,
        together: Sequence[Sequence[str]] = (),
        cv: belief.HeldOut = "nodes",
        n_folds: int = 5,
        refit: bool = False,
        progress: bool | None = None,
    ) -> pd.DataFrame:
        """Say how much worse held-out labels are predicted without each term of the readout.

        It takes ``n_folds * (1 + number of terms + len(together))`` fits, each a fraction of `fit`
        unless ``refit=True``: see `edgebelief.belief.term_importance`.

        Parameters
        ----------
        X, A, covariates
            What was fitted.
        together : sequence of sequences of str
            Groups of terms to leave out together, such as ``[("x", "copy of x")]``.
        cv, n_folds
            As for `cross_val_predictions`.
        refit : bool
            Whether the network's parameters are inferred again in each fit.
        progress : bool, optional
            Whether to show a progress bar; by default if stderr is a terminal.

        Returns
        -------
        DataFrame
            term; loss, by how much the log score of all labels falls without it; its standard
            error se. The largest loss first.

        Examples
        --------
        >>> from edgebelief import GraphLearner
        >>> from edgebelief.data import GraphDataset, RandomGeometric
        >>> from edgebelief.readouts import Additive
        >>> graphs = GraphDataset.sample(0, RandomGeometric(0.4), 4, n_nodes=8, n_signals=100)
        >>> learner = GraphLearner(depth=50, readout=Additive(features=("z", "rank sum")))
        >>> learner.fit(graphs).term_importance(graphs, n_folds=2).columns.tolist()
        ['term', 'loss', 'se']
        """
        graphs = self._checked(X, A, covariates)
        if graphs.data.n_labels == 0:
            raise InputError("no label is known, so there is nothing to hold out; give A.")
        # What a first pass believes of labels that it has seen would tell them.
        data = self._as_fitted(graphs, held_out=cv)
        return belief.term_importance(
            self.seed_, self.posterior_, data, together, cv, n_folds, refit, progress
        )

    def to_networkx(self, X: Any, *, covariates: Any = None, **rule: Any) -> Any:
        """Return the decided graph with node names; edges have probability, sd and epistemic.

        And weight (its mean), where edges have weights. A list of graphs where X holds several.
        `rule` as for `decide`.
        """
        refuse_unknown(rule, RULES, "to_networkx")
        graphs, beliefs, weights = self._predicted_all(X, covariates)
        made = [
            belief.to_networkx(
                record,
                belief.decide(edges, **rule),
                probability=edges.mean,
                sd=edges.total_sd,
                epistemic=edges.epistemic_sd,
                **({} if weights is None else {"weight": weights[t].mean}),
            )
            for t, (record, edges) in enumerate(zip(graphs.data, beliefs, strict=True))
        ]
        return made[0] if graphs.single else made

    def score(
        self,
        X: Any,
        A: Any = None,
        *,
        covariates: Any = None,
        scoring: Literal["joint", "edges"] = "joint",
        sample_weight: Any = None,
        cv: belief.HeldOut | None = None,
    ) -> float:
        """Return the log predictive probability of a graph's known labels, mean over the graphs.

        Parameters
        ----------
        X, A, covariates
            As for `fit`; graphs that were not fitted, or with `cv` any.
        scoring : "joint" or "edges"
            "joint" is the log probability of all labels of a graph together, the negative of
            `edgebelief.metrics.nll`; where edges have weights, the density of these. It is the log
            of a mean over a few thousand draws, of which few count in a graph with many labels: in
            large graphs it is noisy, by several units from 100,000 labels on. "edges" is the sum
            over labels of the log of the mean probability of each, the negative of
            `edgebelief.metrics.edge_nll`; it has no such noise. Use it to compare models, in
            cross-validation too: ``cross_val_score(..., scoring=edgebelief.metrics.edge_scorer)``.
        sample_weight : array_like, shape (n_graphs,), optional
            How often each graph counts in the mean.
        cv : None, "nodes" or "graphs"
            None scores the fitted learner. Otherwise the settings are scored: see
            `cross_val_predictions`.
        """
        check_choice(scoring, "scoring", ("joint", "edges"))
        beliefs = self._to_score(X, A, covariates, cv)
        weights = check_weights(sample_weight, len(beliefs.data))
        each = (metrics.nll if scoring == "joint" else metrics.edge_nll)(beliefs).per_graph
        counted = np.where(np.isnan(each), 0.0, weights)
        if not counted.any():
            raise InputError("is 0 for every graph with labels.", argument="sample_weight")
        return -float(np.average(np.nan_to_num(each), weights=counted))

    def calibration_report(
        self,
        X: Any,
        A: Any = None,
        n_bins: int = 10,
        *,
        covariates: Any = None,
        cv: belief.HeldOut | None = None,
    ) -> belief.CalibrationReport:
        """Compare belief and labels on graphs that were not fitted, or were held out.

        Prints as a few lines; `edgebelief.plots.ReliabilityDisplay.of(report.curve)` draws it.
        With one labelled graph, ``cv="nodes"`` holds out its nodes in turn: see
        `cross_val_predictions`.
        """
        return belief.CalibrationReport.of(self._to_score(X, A, covariates, cv), n_bins)

    def predictions(self, X: Any, A: Any = None, *, covariates: Any = None) -> belief.Predictions:
        """Predict graphs, and keep their labels: what `edgebelief.metrics` score.

        Examples
        --------
        >>> from edgebelief import GraphLearner, metrics
        >>> from edgebelief.data import ErdosRenyi, GraphDataset
        >>> graphs = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=6, n_nodes=8, n_signals=100)
        >>> learner = GraphLearner(readout="affine", depth=50).fit(graphs[:4])
        >>> beliefs = learner.predictions(graphs[4:])
        >>> metrics.edge_nll(beliefs).per_graph.shape
        (2,)
        """
        return self._predicted(X, A, covariates)[1]

    def cross_val_predictions(
        self,
        X: Any,
        A: Any = None,
        *,
        covariates: Any = None,
        cv: belief.HeldOut = "nodes",
        n_folds: int = 5,
    ) -> belief.Predictions:
        """Predict each known label by a fit with these settings that has not seen it.

        Not by the posterior of this learner, which stays as it is, fitted or not.

        Parameters
        ----------
        X, A, covariates
            As for `fit`.
        cv : "nodes" or "graphs"
            What is held out. "nodes": some nodes of every graph, with all labels that touch them
            (`edgebelief.belief.cross_predict`); the way to test on one labelled graph. "graphs":
            some of the graphs.
        n_folds : int
            The number of fits; each has seen the labels among the nodes, or graphs, that it does
            not hold out.

        Returns
        -------
        Predictions
            An `EdgeBelief` for each graph, which `edgebelief.metrics` score.

        Examples
        --------
        >>> from edgebelief import GraphLearner, metrics
        >>> from edgebelief.data import ErdosRenyi, GraphDataset
        >>> graph = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=1, n_nodes=8, n_signals=100)
        >>> learner = GraphLearner(readout="affine", depth=50)
        >>> beliefs = learner.cross_val_predictions(graph, n_folds=2)
        >>> bool(metrics.edge_nll(beliefs) > 0)
        True
        """
        _, readout, _ = parts_of(self.get_params(False))
        graphs = self._graphs(X, A, covariates)
        if graphs.data.n_labels == 0:
            raise InputError("no label is known, so there is nothing to hold out; give A.")
        warn_if_alike(graphs.data)
        # Evidence uses no labels: once for all folds.
        kinds = evidence_for(self.get_params(False), readout, graphs)
        data = informed(kinds, graphs.data, graphs.signals, is_fitted=False)

        def fit_and_predict(train: GraphDataset, test: GraphDataset) -> belief.Predictions:
            with warnings.catch_warnings():
                # Findings of a fit to a part of the labels are not findings of this learner.
                warnings.simplefilter("ignore", InferenceWarning)
                learner = clone(self)._fit(Graphs(train, False), None, kinds)
            return belief.predict(learner.posterior_, learner._scaled_as_fitted(test))

        seed = int(check_random_state(self.random_state).randint(2**31))
        return belief.cross_predict(seed, data, fit_and_predict, cv, n_folds)

    def _to_score(
        self, X: Any, A: Any, covariates: Any, cv: belief.HeldOut | None
    ) -> belief.Predictions:
        """Predict labels to be scored: by this learner, or by others that have not seen them."""
        if cv is not None:
            return self.cross_val_predictions(X, A, covariates=covariates, cv=cv)
        _, beliefs = self._predicted(X, A, covariates)
        warn_if_fitted(self.posterior_.fingerprint, beliefs.data)
        return beliefs

    def predictive_checks(
        self,
        X: Any,
        A: Any = None,
        *,
        covariates: Any = None,
        statistic: Any = "density",
        n: int = 1000,
        key: int | None = None,
    ) -> tuple[belief.PredictiveCheck, ...]:
        """Check which graphs the prior expects of these inputs, and, once fitted, the posterior.

        Parameters
        ----------
        X, A, covariates
            As for `fit`; labels, where given, are what is compared.
        statistic, n
            See `edgebelief.belief.prior_predictive`.
        key : int, optional
            By default that of the fit, or 0.
        """
        graphs = self._graphs(X, A, covariates)
        fitted = hasattr(self, "posterior_")
        if fitted:
            data, model = self._as_fitted(graphs), self.model_
        else:
            network, readout, likelihood = parts_of(self.get_params(False))
            scale, _ = self._scaled(network, readout, graphs.data)
            kinds = evidence_for(self.get_params(False), readout, graphs)
            readout = with_covariates(readout, check_names(kinds))
            data = scaled_by(scale, informed(kinds, graphs.data, graphs.signals, is_fitted=False))
            prior = prior_of(self.prior, data, network, readout)
            model = prepare(0, EdgeModel(network, readout, prior, likelihood), data).model
        seed = (self.seed_ if fitted else 0) if key is None else key
        before = belief.prior_predictive(seed, model, data, statistic, n)
        if not fitted:
            return (before,)
        return before, belief.posterior_predictive(seed, self.posterior_, data, statistic, n)

    def report(
        self,
        path: str | Path,
        X: Any,
        A: Any = None,
        *,
        covariates: Any = None,
        cv: belief.HeldOut | None = None,
        **about: Any,
    ) -> Path:
        """Write one self-contained page about these graphs, to open in a browser.

        Parameters
        ----------
        path : path
            An .html file.
        X, A, covariates
            As for `fit`; labels are optional.
        cv : None, "nodes" or "graphs"
            What the labels are compared with: None for the predictions of this learner; otherwise
            those of fits that have not seen them, see `cross_val_predictions`. The rest of the page
            is about this learner.
        **about
            Of `edgebelief.report.Report.of`: title, assumptions, settings, recipe, held_out, key,
            check_draws, reason_draws.
        """
        refuse_unknown(about, ABOUT, "report")
        graphs, beliefs = self._predicted(X, A, covariates)
        if (kind := self._pretrained_kind) is not None:
            # No prior and no parameter of a model stand behind this belief.
            about |= {"check_draws": 0, "reason_draws": 0}
            if kind.network is None:
                each = believed(kind, graphs)
                about["expectations"] = expectations(each)
                about["cautions"] = list(cautions(each).values())
        if cv is not None:
            about["held_out"] = self.cross_val_predictions(X, A, covariates=covariates, cv=cv)
        about.setdefault("assumptions", self.posterior_.verdict.assumptions)
        about.setdefault("settings", self._settings())
        about.setdefault("key", self.seed_)
        Report.of(self.posterior_, beliefs.data, predictions=beliefs, **about).write(path)
        return Path(path)

    def save(self, path: str | Path) -> None:
        """Write the fitted learner to one file; `edgebelief.load` reads it back.

        Settings, posterior and verdict, no data. No pickle: reading a file executes nothing.
        """
        check_is_fitted(self)
        if not isinstance(self.metric, str):
            raise ModelFileError(
                "the metric is a function, which a model file does not keep. Compute the distances "
                "with it yourself and fit with metric='precomputed'."
            )
        if self.neighbors is not None:
            raise ModelFileError(
                "the search for neighbours is an object, which a model file does not keep. Set "
                "learner.neighbors = None; a loaded model then searches by default."
            )
        learner_file.check_network(network_of(self.network, self.depth))
        learner_file.check_evidence([*(evidence_of(self.evidence) or ()), *self.evidence_])
        kept = self.seed_, self.scale_, self.comparison_, self.posterior_, self.evidence_
        saved = learner_file.SavedLearner(self.get_params(False), *kept, self.first_pass_)
        learner_file.write(path, saved)

    def _settings(self) -> dict[str, object]:
        """Return all settings as given, and what "auto" settings became, for a report."""
        given = {
            f"GraphLearner: {name}": _shown(value)
            for name, value in self.get_params(deep=False).items()
        }
        used = ", ".join(kind.name for kind in self.evidence_) or "none"
        return {
            **given,
            "scale that was applied": self.scale_,
            "evidence that was used": used,
            "passes": 1 if self.first_pass_ is None else 2,
        }

    def _scaled(
        self, network: Network, readout: Readout, data: GraphDataset
    ) -> tuple[float | str, GraphDataset]:
        """Decide on `scale_`, and scale the data by it."""
        scale = scale_of(self.scale, network, self.prior, readout, data)
        return scale, scaled_by(scale, data)

    def _graphs(self, X: Any, A: Any = None, covariates: Any = None) -> Graphs:
        how = {"metric": self.metric, "missing": self.missing, "preprocess": self.preprocess}
        nearest = nearest_of(self.get_params(False))
        return graphs_from(X, A, covariates, **how, weighted=self.weighted, nearest=nearest)

    def _given(self, X: Any, A: Any = None, covariates: Any = None) -> tuple[Graphs, GraphDataset]:
        """Return the graphs, and their data with evidence and scale as in the fit."""
        graphs = self._checked(X, A, covariates)
        return graphs, self._as_fitted(graphs)

    def _checked(self, X: Any, A: Any = None, covariates: Any = None) -> Graphs:
        check_is_fitted(self)
        graphs = self._graphs(X, A, covariates)
        warn_if_on_their_side(graphs.data, self.posterior_.fingerprint.n_nodes)
        return graphs

    def _as_fitted(self, graphs: Graphs, held_out: belief.HeldOut | None = None) -> GraphDataset:
        """Return data with the evidence of the fit, and distances scaled as in the fit."""
        data = informed(self.evidence_, graphs.data, graphs.signals, is_fitted=True)
        return self._scaled_as_fitted(data, held_out)

    def _scaled_as_fitted(
        self, data: GraphDataset, held_out: belief.HeldOut | None = None
    ) -> GraphDataset:
        """Scale distances as in the fit; add what a first pass believes, where there was one.

        With `held_out`, that of first passes which have not seen the labels of a pair.
        """
        data = scaled_by(self.scale_, data)
        if self.first_pass_ is None:
            return data
        return with_first_pass(self.seed_, self.first_pass_, data, held_out)

    def _predicted(
        self, X: Any, A: Any = None, covariates: Any = None
    ) -> tuple[Graphs, belief.Predictions]:
        graphs, data = self._given(X, A, covariates)
        return graphs, belief.predict(self.posterior_, data)

    def _weighed(
        self, X: Any, A: Any = None, covariates: Any = None, level: float = 0.9
    ) -> tuple[Graphs, belief.WeightPredictions]:
        graphs, data = self._given(X, A, covariates)
        return graphs, belief.predict_weights(self.seed_, self.posterior_, data, level)

    def _predicted_all(
        self, X: Any, covariates: Any = None, level: float = 0.9
    ) -> tuple[Graphs, belief.Predictions, belief.WeightPredictions | None]:
        """Predict edges, and their weights where they have some."""
        check_is_fitted(self)
        if not self.model_.likelihood.weighted:
            return *self._predicted(X, covariates=covariates), None
        graphs, weights = self._weighed(X, covariates=covariates, level=level)
        return graphs, weights.presence, weights

    @staticmethod
    def _matrices(graphs: Graphs, vectors: list[np.ndarray]) -> Any:
        pairs = zip(graphs.data, vectors, strict=True)
        return graphs.shaped([as_matrix(record, vector) for record, vector in pairs])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags


def _together(matrices: list[Any]) -> Any:
    """Stack matrices, if they are dense."""
    return np.stack(matrices) if isinstance(matrices[0], np.ndarray) else matrices


def _shown(setting: Any) -> Any:
    """Return a setting as a report lists it: a function by its name."""
    if isinstance(setting, list | tuple):
        return type(setting)(_shown(each) for each in setting)
    return getattr(setting, "__name__", setting)


def renamed(deprecated: dict[str, Any], preprocess: Any) -> Any:
    """Return `preprocess`, by its old name `transform` too; refuse any other keyword."""
    if unknown := sorted(set(deprecated) - {"transform"}):
        refuse_unknown(unknown, GraphLearner._get_param_names(), "GraphLearner")
    if not deprecated:
        return preprocess
    if preprocess is not None:
        raise SettingError("transform is the old name of preprocess; give one of them.")
    words = "the parameter transform is called preprocess now; the old name will be removed."
    warnings.warn(words, FutureWarning, stacklevel=3)
    return deprecated["transform"]


def load(path: str | Path) -> GraphLearner:
    """Read a learner that `GraphLearner.save` wrote.

    Nothing in the file is executed. A file that is damaged, of a newer version or no model at all
    is refused with a message.

    Parameters
    ----------
    path : path

    Returns
    -------
    GraphLearner
        Fitted; its predictions are the same numbers as before.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from edgebelief import GraphLearner, load
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=5, n_nodes=8, n_signals=200)
    >>> learner = GraphLearner(readout="affine", depth=50).fit(data)
    >>> with TemporaryDirectory() as folder:
    ...     learner.save(Path(folder) / "model.eb")
    ...     again = load(Path(folder) / "model.eb")
    >>> bool(np.array_equal(again.predict_proba(data), learner.predict_proba(data)))
    True
    """
    saved = learner_file.read(path, GraphLearner().get_params(False))
    with learner_file.reading(path):
        learner = GraphLearner(**saved.settings)
        check_saved(saved, learner.get_params(False))
    learner.seed_, learner.scale_, learner.comparison_ = saved.seed, saved.scale, saved.comparison
    learner.model_, learner.posterior_ = saved.posterior.model, saved.posterior
    learner.evidence_, learner.first_pass_ = saved.evidence, saved.first_pass
    return learner
