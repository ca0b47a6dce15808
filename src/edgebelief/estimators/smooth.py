"""SmoothGraph: the graph on which signals are smooth, as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any, get_args

import networkx as nx
import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import validate
from ..convex import Solution, solve
from ..data.doubts import warn_of_doubts
from ..data.signals import Metric, Missing, Preprocess, distances, transformed
from ..edges import Complete, Restricted
from ..errors import InputError, InputTypeError, Remedy, Setting, SettingError
from ..progress import Stage, timed_stage
from .restricted import (
    Candidates,
    Wanted,
    from_matrix,
    from_signals,
    from_sparse,
    laplacian,
    learned_on,
    symmetric,
)

METRICS = (*get_args(Metric), "precomputed")

# The fit is refused when resamples without distances outnumber those wanted; where few are wanted,
# not before there are more than these: bad luck alone should not refuse it.
FEW_REDRAWS = 10
# With so many resamples the standard error of a frequency is 0.002 at most.
MOST_RESAMPLES = 100_000
# The eigenvalues of so many nodes take about a minute.
MOST_SCORED = 5_000


class SmoothGraph(BaseEstimator):
    """Learn the graph on which signals are smooth, without labels.

    From signals X come distances e between nodes, and from these the weights

        a = delta * argmin_{a >= 0}  2 theta a'e - sum_i log(S a)_i + ||a||^2

    with S a the weighted degrees (Kalofolias 2016): near nodes are joined, and every node keeps an
    edge. See `edgebelief.solve`, which does the work, in float64.

    Parameters
    ----------
    theta : float, optional
        Sparsity: larger means fewer edges. Give at most one of `theta`, `degree` and `density`;
        with none of them theta is 1, which suits distances of order 1.
    degree : float, optional
        The wanted mean number of edges at a node; `edgebelief.theta_for` finds the theta.
    density : float, optional
        The wanted share of all N(N-1)/2 pairs, between 0 and 1; in the same way.
    delta : float, default=1.0
        Scale of the weights. It changes no edge.
    metric : {"sqeuclidean", "log-euclidean", "correlation", "precomputed"} or callable, \
default="sqeuclidean"
        How distances come from signals, see `edgebelief.data.distances`. With "precomputed", X is
        itself the symmetric (N, N) matrix of distances. A callable takes the (n_signals, n_nodes)
        array and returns distances, (n_edges,) or (N, N).
    preprocess : {"auto", "standardize", "log", "diff", "log-returns"} or None, default="auto"
        What is done to signals first, see `edgebelief.data.transformed`. "auto" standardizes each
        column for "sqeuclidean" and "log-euclidean", so that the units of the columns do not
        matter, and does nothing for "correlation" (which needs nothing), a callable, and
        "precomputed". None compares values as they are: for signals in one unit whose level and
        variance mean something.
    missing : {"error", "pairwise"}, default="error"
        What to do about NaN in X: refuse it, or let each pair of nodes use the signals that both
        have (`edgebelief.data.distances`). A callable metric then sees the NaN and must deal with
        it. Precomputed distances can have no gaps.
    support : {"complete", "knn"} or Restricted, default="complete"
        The candidate pairs: all, the nearest neighbours of each node (`edgebelief.data.
        nearest_pairs`), or a list. With all, memory and time grow with N^2; otherwise with the
        number of candidates, and a million nodes are possible. All matrices are then sparse, and
        `metric` must be a name. With "precomputed" and "knn" X may be a sparse matrix, whose stored
        entries are the candidates (whatever `n_neighbors`).
    n_neighbors : int, default=20
        How many neighbours each node chooses as candidates, with ``support="knn"``. Twice the
        degree of the graph or more is usually enough, see `certificate_`.
    neighbors : object with ``fit_transform(X)``, optional
        What finds neighbours, see `edgebelief.data.nearest_pairs`; by default the search that suits
        the data.
    exact : bool, default=False
        Whether pairs that are missing among the candidates are added, until the graph is the one
        on all pairs (which `certificate_` then proves). Quick where signals have few dimensions;
        otherwise it computes all distances, in blocks.
    tol : float, default=1e-9
        The residual at which the solver stops, see `edgebelief.solve`.
    bootstrap : int, default=0
        How many times (at most 100,000) to resample the signals, with replacement, and learn the
        graph again, each time at the theta of the fit (`theta_`; a wanted `degree` or `density` is
        not sought anew).
        Gives `edge_frequencies_`. Signals are resampled one by one, as if they were independent:
        for time series with memory the frequencies are too near to 0 and 1.
    random_state : int, RandomState instance or None, default=None
        For the bootstrap, and the nodes at which `certificate_` checks all pairs.

    Attributes
    ----------
    adjacency_, laplacian_ : ndarray or csr_array of shape (n_nodes, n_nodes)
        The weights, symmetric with zero diagonal; and minus the weights, with the weighted degrees
        on the diagonal. Sparse unless the support is complete.
    theta_ : float
        The theta used.
    n_edges_ : int
        How many weights count as edges: those above 1e-5 of the largest.
    degree_, density_ : float
        The mean number of edges at a node, and the share of all pairs that are edges; not quite
        what was asked for where edges enter together.
    edge_frequencies_ : ndarray or csr_array of shape (n_nodes, n_nodes), or None
        In what share of the resamples each pair was an edge; None without bootstrap. These are
        not probabilities that an edge exists: they say how steady the estimate is when the
        signals change, and a steady estimate can be wrong (one common cause behind two nodes
        joins them in every resample, and theta sets how many edges there are). For probabilities,
        learn from graphs whose edges are known: `edgebelief.infer`.
    solution_ : Solution
        What the solver returned (weights before `delta`, duals, residual, whether it converged).
    certificate_ : Certificate or None
        Whether pairs that were no candidates would be edges: how many such violators there are, at
        all nodes or at a random sample of 1,000. None with the complete support, and with
        precomputed distances, where other pairs are unknown.
    stages_ : list of Stage
        How many seconds the parts of the fit took.
    node_names_ : list
        The columns of the data frame X, else 0 to n_nodes - 1.
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_nodes,)
        The number of nodes; the columns of X, if it is a data frame and all are strings.

    See Also
    --------
    edgebelief.solve : The same from distances, and for JAX.
    sklearn.covariance.GraphicalLasso : A sparse inverse covariance; its edges have signs.

    Notes
    -----
    It learns a graph and transforms nothing, so there is no `transform`, and no `set_output` of its
    own: `edge_table` is a data frame always. As the last step of a pipeline it takes the names of
    its nodes from the steps before it, by the pipeline's ``set_output(transform="pandas")``.

    A resample can be one in which distances are not defined: a node that is constant in it, under
    "correlation"; two nodes that are identical in it, under "log-euclidean"; two nodes
    never observed together, with gaps. Such resamples are drawn again, with a warning that says
    how many; the fit is refused where they are more than the usable ones.

    This is a point estimate with no regard to sign: nodes that move against each other are far
    apart under "sqeuclidean" and near under "correlation". There are warnings for signals on
    unequal scales (with ``preprocess=None``), for series that wander like prices (use
    ``preprocess="log-returns"``), and for tables that seem to have their nodes in the rows.

    Examples
    --------
    >>> from edgebelief.data import RandomGeometric, smooth_signals
    >>> from edgebelief.estimators import SmoothGraph
    >>> graph = RandomGeometric(radius=0.4).sample(key=0, n_nodes=12)
    >>> X = smooth_signals(key=1, graph=graph, n_signals=500)
    >>> model = SmoothGraph(degree=3, bootstrap=20, random_state=0).fit(X)
    >>> model.adjacency_.shape, model.n_edges_, model.degree_
    ((12, 12), 18, 3.0)
    >>> model.edge_table().columns.tolist()
    ['source', 'target', 'weight', 'frequency']
    >>> sorted(model.to_networkx().nodes) == list(range(12))
    True
    >>> near = SmoothGraph(theta=model.theta_, support="knn", n_neighbors=4, exact=True).fit(X)
    >>> near.certificate_.exact, bool(abs(near.adjacency_ - model.adjacency_).max() < 1e-8)
    (True, True)
    """

    def __init__(
        self,
        *,
        theta: float | None = None,
        degree: float | None = None,
        density: float | None = None,
        delta: float = 1.0,
        metric: Any = "sqeuclidean",
        preprocess: Any = "auto",
        missing: Missing = "error",
        support: Any = "complete",
        n_neighbors: int = 20,
        neighbors: Any = None,
        exact: bool = False,
        tol: float = 1e-9,
        bootstrap: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.theta = theta
        self.degree = degree
        self.density = density
        self.delta = delta
        self.metric = metric
        self.preprocess = preprocess
        self.missing = missing
        self.support = support
        self.n_neighbors = n_neighbors
        self.neighbors = neighbors
        self.exact = exact
        self.tol = tol
        self.bootstrap = bootstrap
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = self._is_precomputed() and not self._is_complete()
        tags.input_tags.allow_nan = self.missing == "pairwise" and not self._is_precomputed()
        return tags

    def fit(self, X: object, y: object = None) -> SmoothGraph:
        """Learn the graph.

        Parameters
        ----------
        X : array-like of shape (n_signals, n_nodes)
            A row per observation, a column per node; with ``metric="precomputed"`` the distances,
            (n_nodes, n_nodes).
        y : Ignored
            Here for scikit-learn's sake.

        Returns
        -------
        self : SmoothGraph
        """
        self._check_settings()
        stages: list[Stage] = []
        names, sparse = _names_of(X), issparse(X)
        x = self._read(X, names)
        if not sparse:
            with timed_stage("signals", stages):
                x = self._preprocessed(x, names)
                if not self._is_precomputed():
                    sides = (X.index, X.columns) if isinstance(X, pd.DataFrame) else None
                    warn_of_doubts(x, self.metric, sides)
        wanted = Wanted(self.theta, self.degree, self.density, self.tol)
        certificate = None
        if self._is_complete():
            with timed_stage("distances", stages):
                e = self._distances(x, names)
            solution = wanted.solve(e, None, stages)
        else:
            with timed_stage("candidates", stages):
                candidates = self._candidates(x, names)
            random = check_random_state(self.random_state)
            exact = bool(self.exact)
            solution, certificate = learned_on(candidates, wanted, exact, random, stages)
        frequencies = None
        if self.bootstrap:
            with timed_stage("bootstrap", stages):
                frequencies = self._edge_frequencies(x, names, solution)
        n_nodes = x.shape[1]
        self.solution_ = solution
        self.theta_ = float(solution.theta)
        if self._is_complete():
            self.adjacency_ = float(self.delta) * solution.adjacency()
            self.laplacian_ = np.diag(self.adjacency_.sum(axis=1)) - self.adjacency_
        else:
            self.adjacency_ = symmetric(solution.support, float(self.delta) * solution.weights)
            self.laplacian_ = laplacian(self.adjacency_)
        self.n_edges_ = int(solution.n_edges)
        self.degree_ = 2 * self.n_edges_ / n_nodes
        self.density_ = float(solution.support.density(solution.weights))
        self.edge_frequencies_ = frequencies
        self.certificate_ = certificate
        self.stages_ = stages
        self.node_names_ = list(range(n_nodes) if names is None else names)
        return self

    @available_if(lambda self: not self._is_precomputed())
    def score(self, X: object, y: object = None) -> float:
        """Return how likely other signals are on the learned graph, as Gaussians that are smooth.

        The mean log density of a row of X, centred, under the precision c L + r I, with L the
        learned Laplacian. The numbers c and r, the strength of the graph and the part that it does
        not explain, are those that suit X best, so that `delta` does not matter. For the choice of
        `theta`, `degree`, or `metric` by cross-validation (`sklearn.model_selection.GridSearchCV`).

        It says how well a Gaussian with this support explains signals, not whether edges are
        true; denser graphs often win. Compare models with one `preprocess` only: it changes the
        unit of X. Not there with ``metric="precomputed"``, which has no signals, and refused above
        5,000 nodes: it takes all eigenvalues of the Laplacian.

        Parameters
        ----------
        X : array-like of shape (n_signals, n_nodes)
            Signals that were not fitted, without gaps, of the same nodes; at least two.
        y : Ignored

        Returns
        -------
        float
            Larger is better.

        Examples
        --------
        >>> from edgebelief import SmoothGraph
        >>> from edgebelief.data import RandomGeometric, smooth_signals
        >>> graph = RandomGeometric(radius=0.4).sample(key=0, n_nodes=12)
        >>> X = smooth_signals(key=1, graph=graph, n_signals=300)
        >>> model = SmoothGraph(degree=4).fit(X[:200])
        >>> shuffled = X[200:, ::-1]  # signals of other nodes
        >>> model.score(X[200:]) > model.score(shuffled)
        True
        """
        check_is_fitted(self)
        names = _names_of(X)
        x = np.asarray(
            validate_data(self, X, reset=False, ensure_all_finite=False, ensure_min_samples=2),
            dtype=float,
        )
        _refuse(~np.isfinite(x), "not finite", names, ["fill the gaps", "leave those rows out"])
        x = self._preprocessed(x, names)
        if x.shape[1] > MOST_SCORED:
            problem = (
                f"a score takes all eigenvalues of the Laplacian, of up to {MOST_SCORED:,} nodes; "
                f"these are {x.shape[1]:,}"
            )
            raise InputError(problem, remedy="Score graphs of a sample of the nodes")
        dense = self.laplacian_.toarray() if issparse(self.laplacian_) else self.laplacian_
        spectrum, modes = np.linalg.eigh(dense)
        power = np.square((x - x.mean(axis=0)) @ modes).mean(axis=0)
        return _best_likelihood(spectrum, power)

    def to_networkx(self) -> nx.Graph:
        """Return the learned graph, for NetworkX.

        Returns
        -------
        graph : networkx.Graph
            All nodes, by name; an edge for each weight that counts as one, with the attribute
            ``weight`` and, after a bootstrap, ``frequency``.
        """
        rows = self.edge_table().to_dict("records")
        graph = nx.Graph()
        graph.add_nodes_from(self.node_names_)
        graph.add_edges_from((row.pop("source"), row.pop("target"), row) for row in rows)
        return graph

    def edge_table(self) -> pd.DataFrame:
        """Return the learned edges, strongest first.

        Returns
        -------
        table : pandas.DataFrame
            Columns ``source``, ``target``, ``weight`` and, after a bootstrap, ``frequency``. Pairs
            that are edges only in some resamples are not listed; see `edge_frequencies_`.
        """
        check_is_fitted(self)
        support, weights = self.solution_.support, self.solution_.weights
        edges = np.flatnonzero(support.is_edge(weights))
        edges = edges[np.argsort(-weights[edges], kind="stable")]
        rows, cols = (end[edges] for end in support.endpoints)
        columns: dict[str, object] = {
            "source": [self.node_names_[i] for i in rows],
            "target": [self.node_names_[i] for i in cols],
            "weight": _entries(self.adjacency_, rows, cols),
        }
        if self.edge_frequencies_ is not None:
            columns["frequency"] = _entries(self.edge_frequencies_, rows, cols)
        return pd.DataFrame(columns)

    def _is_precomputed(self) -> bool:
        return isinstance(self.metric, str) and self.metric == "precomputed"

    def _is_complete(self) -> bool:
        return isinstance(self.support, str) and self.support == "complete"

    def _check_settings(self) -> None:
        wanted = {name: getattr(self, name) for name in ("theta", "degree", "density")}
        given = [f"{name}={value!r}" for name, value in wanted.items() if value is not None]
        if len(given) > 1:
            raise SettingError(
                f"give at most one of theta, degree and density; got {', '.join(given)}."
            )
        if not callable(self.metric):
            validate.check_choice(self.metric, "metric", METRICS, ", or a function")
        validate.check_choice(self.missing, "missing", get_args(Missing))
        validate.check_stopping(self.tol, 0)
        self._check_support()
        ways = ("auto", None, *get_args(Preprocess))
        validate.check_choice(self.preprocess, "preprocess", ways)
        if self._is_precomputed() and self.preprocess not in ("auto", None):
            problem = "is for signals; the metric 'precomputed' says that X holds distances."
            raise SettingError(problem, argument="preprocess")
        delta = validate.check_number(self.delta, "delta")
        if not (np.isfinite(delta) and delta > 0):
            raise SettingError(f"must be positive and finite; got {delta:g}.", argument="delta")
        if (
            validate.check_whole(self.bootstrap, "bootstrap", 0, MOST_RESAMPLES)
            and self._is_precomputed()
        ):
            raise SettingError(
                "resamples signals, and with the metric 'precomputed' there are none",
                argument="bootstrap",
                remedy=[
                    "pass the signals and their metric",
                    Remedy("say {}", Setting("bootstrap", 0)),
                ],
            )

    def _check_support(self) -> None:
        if not isinstance(self.support, Restricted):
            validate.check_choice(self.support, "support", ("complete", "knn"), ", or a Restricted")
        validate.check_whole(self.n_neighbors, "n_neighbors", 1)
        if self._is_complete():
            if self.exact or self.neighbors is not None:
                problem = "'complete' has all pairs; exact and neighbors are for 'knn'"
                remedy = Remedy("say {}", Setting("support", "knn"))
                raise SettingError(problem, argument="support", remedy=remedy)
            return
        everything = Remedy("use all pairs: {}", Setting("support", "complete"))
        if callable(self.metric):
            problem = "must be a name where not all pairs are candidates"
            raise SettingError(problem, argument="metric", remedy=everything)
        if self.missing != "error":
            problem = "must be 'error' where not all pairs are candidates"
            raise SettingError(problem, argument="missing", remedy=["Fill the gaps", everything])
        if self._is_precomputed() and (self.exact or self.neighbors is not None):
            problem = "'precomputed' has no signals, which exact and neighbors need"
            raise SettingError(problem, argument="metric", remedy="Pass signals")

    def _read(self, X: Any, names: list[Hashable] | None) -> Float[np.ndarray, "rows nodes"]:
        """Return X as float64; scikit-learn checks shape and type, we look for dates and gaps."""
        precomputed = self._is_precomputed()
        if precomputed and hasattr(X, "index") and X.shape[0] == X.shape[1]:
            X = validate.same_nodes(X, "distances")
        _check_columns(X)
        if issparse(X):
            return self._read_sparse(X)
        several = self.bootstrap or precomputed
        try:
            # Whether all are finite is checked below, by a message that names the node.
            least = {"ensure_min_samples": 2 if several else 1, "ensure_min_features": 2}
            x = np.asarray(validate_data(self, X, ensure_all_finite=False, **least), dtype=float)
        except TypeError as error:
            raise InputTypeError(str(error)) from None
        except ValueError as error:
            raise InputError(str(error)) from None
        if precomputed:
            _refuse(np.isnan(x), "NaN", names, ["fill the gap", validate.LEAVE_NODE_OUT])
        else:
            _refuse(np.isinf(x), "inf", names, ["signals must be finite"])
            if self.missing == "error":
                pairwise = Remedy("use what there is", Setting("missing", "pairwise"))
                _refuse(np.isnan(x), "NaN", names, ["fill the gaps", "leave them out", pairwise])
        return x

    def _read_sparse(self, X: Any) -> Any:
        if not self._is_precomputed() or self._is_complete():
            problem = "is a sparse matrix, which can only be distances of candidate pairs"
            ways = Setting("metric", python="metric='precomputed', support='knn'")
            remedy: list[str | Remedy] = ["Pass X.toarray()", Remedy("say so: {}", ways)]
            raise InputTypeError(problem, argument="X", remedy=remedy)
        if isinstance(self.support, Restricted):
            problem = "'knn' takes the entries of a sparse matrix as candidates; a list is too much"
            raise SettingError(problem, argument="support", remedy="Pass one of the two")
        return validate_data(self, X, accept_sparse=True, ensure_all_finite=False)

    def _candidates(self, x: Any, names: list[Hashable] | None) -> Candidates:
        given = self.support if isinstance(self.support, Restricted) else None
        n_neighbors = int(self.n_neighbors)
        if issparse(x):
            return from_sparse(x)
        if self._is_precomputed():
            return from_matrix(x, given, n_neighbors)
        return from_signals(_frame(x, names), self.metric, given, n_neighbors, self.neighbors)

    def _way(self) -> Preprocess | None:
        """Return what is done to signals first."""
        if self.preprocess != "auto":
            return self.preprocess
        return "standardize" if self.metric in ("sqeuclidean", "log-euclidean") else None

    def _preprocessed(
        self, x: Float[np.ndarray, "rows nodes"], names: list[Hashable] | None
    ) -> Float[np.ndarray, "rows nodes"]:
        way = self._way()
        return x if way is None else np.asarray(transformed(_frame(x, names), way))

    def _distances(
        self, x: Float[np.ndarray, "rows nodes"], names: list[Hashable] | None
    ) -> Float[np.ndarray, " edges"]:
        if self._is_precomputed():
            return validate.check_distances(x, names=names)[0]
        if callable(self.metric):
            return validate.check_distances(self.metric(x), Complete(x.shape[1]), names)[0]
        return distances(_frame(x, names), self.metric, self.missing)

    def _edge_frequencies(
        self,
        x: Float[np.ndarray, "signals nodes"],
        names: list[Hashable] | None,
        solution: Solution,
    ) -> Any:
        """Return in what share of resamples of the rows each pair is an edge."""
        support, n_signals, n_resamples = solution.support, len(x), int(self.bootstrap)
        random = check_random_state(self.random_state)
        counts = np.zeros(support.n_edges)
        used = redrawn = 0
        while used < n_resamples:
            rows = random.randint(n_signals, size=n_signals)
            try:
                if self._is_complete():
                    e = self._distances(x[rows], names)
                else:
                    assert isinstance(support, Restricted)
                    again = from_signals(_frame(x[rows], names), self.metric, support, 1, None)
                    e = again.e
            except ValueError as error:  # all of x has distances, so these rows are at fault
                redrawn, why = redrawn + 1, error
                if redrawn > max(n_resamples, FEW_REDRAWS):
                    raise InputError(
                        f"the bootstrap drew {redrawn} resamples of the {n_signals} signals that "
                        f"have no distances, and {used} that do; pass more signals, leave the node "
                        f"out, or use another metric. The last one: "
                        f"{getattr(error, 'problem', error)}."
                    ) from error
                continue
            # Not from the duals of the fit: they are too far away to save steps at theta e about 1,
            # and cost up to seven times as many where theta e is large.
            resampled = solve(e, solution.theta, support=support, tol=self.tol)
            counts += support.is_edge(resampled.weights)
            used += 1
        if redrawn:
            warnings.warn(
                f"{redrawn} of {redrawn + used} resamples have no distances and were drawn again, "
                f"so the edge frequencies leave such resamples out. The last one: "
                f"{getattr(why, 'problem', why)}.",  # its remedy is for a whole data set
                stacklevel=3,
            )
        if self._is_complete():
            return support.to_matrix(counts / n_resamples)
        return symmetric(support, counts / n_resamples)


def _entries(matrix: Any, rows: np.ndarray, cols: np.ndarray) -> Float[np.ndarray, " edges"]:
    """Return some entries of a matrix, dense or sparse."""
    entries = matrix[rows, cols]
    return entries.toarray() if issparse(entries) else np.asarray(entries)


def _frame(x: Float[np.ndarray, "rows nodes"], names: list[Hashable] | None) -> Any:
    """Return signals as a frame, if nodes have names: messages then name the node."""
    return x if names is None else pd.DataFrame(x, columns=names)


def _best_likelihood(
    spectrum: Float[np.ndarray, " nodes"], power: Float[np.ndarray, " nodes"]
) -> float:
    """Return the largest mean log density over precisions c L + r I, in the eigenvectors of L.

    sum_k (log h_k - h_k s_k - log 2 pi) / 2 with h = c l + r; concave in c and r, at least 0.
    """
    top = max(float(spectrum[-1]), 1e-300)
    scaled, unit = np.maximum(spectrum, 0) / top, max(float(power.mean()), 1e-300)
    s = power / unit

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        c, r = np.exp(logs)
        h = c * scaled + r
        slope = s - 1 / h
        return float(h @ s - np.log(h).sum()), np.array([c * (slope @ scaled), r * slope.sum()])

    # e^23 = 1e10: a precision beyond that is a singular sample.
    best = minimize(loss, np.zeros(2), jac=True, bounds=[(-23, 23)] * 2).fun
    return -float(best + len(s) * (np.log(2 * np.pi) + np.log(unit))) / 2


def _names_of(X: object) -> list[Hashable] | None:
    """Return a data frame's columns, which must differ; None for an array."""
    if (columns := getattr(X, "columns", None)) is None:
        return None
    validate.check_names(columns, len(columns), "the columns of X")
    return list(columns)


def _check_columns(X: object) -> None:
    """Refuse columns of dates or text: scikit-learn would too, but not say which."""
    if not isinstance(X, pd.DataFrame):
        return
    for name, dtype in X.dtypes.items():
        # An object may be a number yet.
        if not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_object_dtype(dtype)):
            raise InputError(
                f"column {name!r} of X has dtype {dtype}; every column is a node and must hold "
                f"numbers",
                remedy=["Leave it out", f"make it the index: X.set_index({name!r})"],
            )


def _refuse(
    bad: np.ndarray, what: str, names: list[Hashable] | None, remedy: list[str | Remedy]
) -> None:
    if bad.any():
        p, i = (int(k) for k in np.argwhere(bad)[0])
        where = p, validate.node_name(i, names)
        problem = f"is {what} ({bad.sum()} in all)"
        raise InputError(problem, argument="X", where=where, remedy=remedy)
