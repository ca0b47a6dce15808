"""The one table of names: networks, readouts, engines, priors, ensembles, evidence.

Settings, model files, the command line with its help texts, and error messages read it. A new
network or engine is a new file, and a line here. An entry says as text where its class lives; the
class is imported when the name is used, so that listing the names needs neither JAX nor NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """Where a named thing lives, and what it means."""

    home: str
    """Module and class, such as "networks.dpg:DPG"."""
    meaning: str = ""
    """A few words for help texts."""
    maker: str = ""
    """A function beside the class that checks the fields, where the class does not."""

    @property
    def class_name(self) -> str:
        """The name of the class, which is also its name in a model file."""
        return self.home.partition(":")[2]

    def load(self) -> type[Any]:
        """Import the class."""
        return getattr(self._module(), self.class_name)

    def make(self, **fields: Any) -> Any:
        """Make an object of the class with these fields, which are checked."""
        return getattr(self._module(), self.maker or self.class_name)(**fields)

    def _module(self) -> Any:
        return import_module(f".{self.home.partition(':')[0]}", __package__)


Table = Mapping[str, Entry]

NETWORKS: Table = {
    "dpg": Entry("networks.dpg:DPG", "one parameter, with an exact posterior"),
    "pds": Entry("networks.pds:PDS", "another iteration for the same problem"),
    "mimo": Entry("networks.mimo:MIMO", "four channels, mixed in every layer; takes minutes"),
    "mimo-e": Entry(
        "networks.head:StochasticHead", "more layers on top of a trained mimo; takes minutes"
    ),
}
READOUTS: Table = {
    "affine": Entry("readouts.affine:Affine", "the paper's"),
    "two-slope": Entry("readouts.two_slope:TwoSlope", "another slope for pairs without a weight"),
    "additive": Entry("readouts.additive:Additive", "with curves of all that is known of a pair"),
}
ENGINES: Table = {
    "exact": Entry("infer.engines.exact:Exact", "quadrature, for a network with one parameter"),
    "nuts": Entry("infer.engines.nuts:NUTS", "Markov chains, for any network"),
    "map": Entry("infer.engines.map:MAP", "the most plausible parameters, without a spread"),
    "vi": Entry("infer.engines.vi:VI", "a normal approximation, for very many graphs"),
    "laplace": Entry("infer.engines.laplace:Laplace", "a quick normal approximation of exact"),
    "modes": Entry("infer.engines.modes:Modes", "an ensemble of modes, for many parameters"),
}
PRIORS: Table = {
    "altered": Entry("infer.priors:Prior", "the paper's choice after prior checks"),
    "original": Entry("infer.priors:Prior", "the paper's first choice"),
    "flat": Entry("infer.priors:Prior", "wide in every parameter"),
}
MARGINALS: Table = {
    "lognormal": Entry("infer.priors:LogNormal", "median, log_sd", "lognormal"),
    "loguniform": Entry("infer.priors:LogUniform", "low, high", "loguniform"),
    "normal": Entry("infer.priors:Normal", "mean, sd", "normal"),
    "halfnormal": Entry("infer.priors:HalfNormal", "scale", "half_normal"),
    "halft": Entry("infer.priors:HalfT", "scale", "half_t"),
    "fixed": Entry("infer.priors:Fixed", "value", "fixed"),
}
ENSEMBLES: Table = {
    "geometric": Entry("data.ensembles:RandomGeometric", "nearby points of a square"),
    "erdos-renyi": Entry("data.ensembles:ErdosRenyi", "every pair alike"),
    "barabasi-albert": Entry("data.ensembles:BarabasiAlbert", "with hubs"),
    "watts-strogatz": Entry("data.ensembles:WattsStrogatz", "a ring with shortcuts"),
}
EVIDENCE: Table = {
    "pretrained": Entry(
        "amortise.evidence:Pretrained", "log odds by a network trained on simulated graphs"
    ),
    "likelihood": Entry(
        "evidence.likelihood:MostLikelyGraph", "the graph under which the distances are most likely"
    ),
    "precision": Entry("evidence.precision:Precision", "partial correlations from distances"),
    "diffusion": Entry("evidence.diffusion:Diffusion", "walks along small distances"),
    "profile": Entry("evidence.profile:Profile", "whether two nodes see the others alike"),
    "smooth": Entry(
        "evidence.smooth:SmoothStructure", "common neighbours on which signals are smooth"
    ),
    "partial-correlation": Entry(
        "evidence.correlation:PartialCorrelation", "partial correlations of signals"
    ),
    "correlation": Entry("evidence.correlation:SignedCorrelation", "of signals, with its sign"),
    "rank-correlation": Entry("evidence.correlation:RankCorrelation", "of the ranks of signals"),
    "mutual-information": Entry(
        "evidence.information:MutualInformation", "dependence of signals of any form"
    ),
    "forest": Entry("evidence.forest:ForestImportance", "forests that predict signals; slow"),
    "signal-precision": Entry(
        "evidence.precision:SignalPrecision", "precision from signals, for large graphs"
    ),
}
# What a predictive check may count; the functions are in `belief.checks`, by these names.
STATISTICS = ("density", "components", "degree spread", "triangles")
# Classes that a model file may hold, and that no name chooses: "affine" for PDS and for networks
# with channels; the readout of a size-aware learner; the engine of readouts that are chosen; the
# likelihoods, which follow from `weighted`; what a pretrained learner is made of.
UNNAMED = (
    Entry("infer.engines.mixture:Mixture"),
    Entry("readouts.shift:Shift"),
    Entry("readouts.channels:Channels"),
    Entry("readouts.sized:Sized"),
    Entry("readouts.given:Given"),
    Entry("amortise.evidence:PretrainedBelief"),
    Entry("infer.likelihoods:BernoulliEdges"),
    Entry("infer.likelihoods:WeightedEdges"),
)
# All that a model file may name, by the name of the class.
_TABLES = (NETWORKS, READOUTS, ENGINES, MARGINALS, EVIDENCE)
_NAMED = [entry for table in _TABLES for entry in table.values()]
PARTS: Table = {entry.class_name: entry for entry in (*_NAMED, *UNNAMED)}


def with_meanings(table: Table) -> str:
    """Return the names with their meanings, for a help text.

    Examples
    --------
    >>> from edgebelief.registry import Entry, with_meanings
    >>> with_meanings({"dpg": Entry("networks.dpg:DPG", "one parameter")})
    'dpg (one parameter)'
    """
    return ", ".join(f"{name} ({entry.meaning})" for name, entry in table.items())
