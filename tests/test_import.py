import subprocess
import sys

QUIET = """
import sys
import edgebelief
assert not {"jax", "numpy", "scipy", "networkx", "pandas"} & set(sys.modules), "not lazy"
assert "solve" in dir(edgebelief)
import jax
before = dict(jax.config.values)
from edgebelief import convex, data, networks, readouts, solve, theta_for
changed = {k for k, v in jax.config.values.items() if before.get(k) != v}
assert not changed, changed
assert not {"matplotlib", "sklearn", "mlxtend", "numpyro"} & set(sys.modules)
try:
    edgebelief.nothing
except AttributeError as error:
    assert "nothing" in str(error)
"""


def test_import_is_lazy_silent_and_changes_no_setting():
    done = subprocess.run([sys.executable, "-W", "error", "-c", QUIET], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b""
    assert done.stderr == b""


def test_every_public_name_is_there_whatever_was_imported_before():
    each = "import edgebelief; [getattr(edgebelief, name) for name in edgebelief.__all__]"
    done = subprocess.run([sys.executable, "-c", each], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


WALK = """
import sys, tempfile
from pathlib import Path
import numpy as np
from edgebelief import GraphLearner, SmoothGraph, load, solve, theta_for
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import Exact, lognormal
from edgebelief.networks import DPG
from edgebelief.persist.modelfile import write

data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=4, n_nodes=6, n_signals=50)
learner = GraphLearner(depth=5, readout="affine", inference=Exact(tol=0.5)).fit(data)
file = Path(tempfile.mkdtemp()) / "model.eb"
learner.save(file)
print(load(file).predict_proba(data).tolist())
print(learner.decide(data, fdr=0.1).sum())
file.write_bytes(file.read_bytes()[:-8])
write(file.with_name("other.eb"), "GraphLearner", {}, {})
distances = data[0].e
REFUSED = {
    "NaN": lambda: solve(np.full(6, np.nan), theta=1.0),
    "length": lambda: solve(np.ones(7), theta=1.0),
    "theta": lambda: theta_for(distances, density=2),
    "labels": lambda: GraphDataset([distances], [np.full(15, 2.0)]),
    "no labels": lambda: GraphLearner().fit(GraphDataset([distances])),
    "depth": lambda: DPG(depth=-1),
    "tolerance": lambda: Exact(tol=2.0),
    "prior": lambda: lognormal(-1, 1),
    "not fitted": lambda: GraphLearner().predict_proba(data),
    "damaged file": lambda: load(file),
    "other file": lambda: load(file.with_name("other.eb")),
    "signals": lambda: SmoothGraph(degree=2).fit([[1.0, np.inf], [0.0, 1.0]]),
    "false discoveries": lambda: learner.decide(data, fdr=2),
}
for name, bad in REFUSED.items():
    try:
        bad()
    except Exception as error:
        print(name, type(error).__name__, str(error).replace(str(file.parent), ""))
    else:
        print(name, "was accepted")
sys.exit(0 if __debug__ else 3)
"""


def test_without_asserts_all_is_the_same():
    """`python -O` takes asserts out: results and refusals must not depend on them."""
    runs = [
        subprocess.run([sys.executable, *options, "-c", WALK], capture_output=True, text=True)
        for options in ([], ["-O"])
    ]
    assert [run.returncode for run in runs] == [0, 3], [run.stderr for run in runs]
    assert runs[0].stdout == runs[1].stdout
    assert "AssertionError" not in runs[0].stdout
    assert "was accepted" not in runs[0].stdout


CORE = """
import sys, warnings

ABSENT = {
    "arviz", "arviz_base", "arviz_stats", "arviz_plots", "jinja2", "matplotlib", "networkx",
    "numpyro", "plotly", "rich", "scoringrules", "typer",
}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"{name} is absent", name=name)

sys.meta_path.insert(0, Absent())
try:
    import networkx
except ModuleNotFoundError:
    pass
else:
    sys.exit("networkx is not absent")

import numpy as np
from edgebelief import belief, metrics, solve
from edgebelief.data import GraphDataset
from edgebelief.infer import EdgeModel, Exact
from edgebelief.networks import DPG

rng = np.random.default_rng(0)
e = rng.uniform(0.1, 1.0, (4, 15))
a = (rng.uniform(size=e.shape) < 1.2 - e).astype(float)
print(solve(e[0], theta=1.0).weights.sum() > 0)
data = GraphDataset(e, a)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # so few labels say little
    posterior = Exact(tol=0.5).run(0, EdgeModel(DPG(depth=4)), data)
    beliefs = belief.predict(posterior, data)
print(metrics.edge_nll(beliefs) < 15 * np.log(2))  # better than a coin
"""


def test_the_numerical_core_needs_neither_plots_nor_shell_nor_samplers():
    done = subprocess.run([sys.executable, "-c", CORE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\nTrue\n"
