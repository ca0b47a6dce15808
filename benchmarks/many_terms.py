"""Is the posterior of a readout with many terms right? Against NUTS, and by calibration.

    python benchmarks/many_terms.py nuts [--data FOLDER] [--draws 1000]
    python benchmarks/many_terms.py sbc [--problems 60]

nuts: `Exact` with theta fixed at its most plausible value, so that the network is a constant,
against NumPyro's NUTS on the same design matrix with the same prior: the root mean square
difference of the mean probabilities of the test pairs. On a draw of the race's Erdos-Renyi graphs,
and on S&P 500 where FOLDER is given, with all evidence.

sbc: simulation-based calibration (Talts et al. 2018). Parameters of an additive readout with twenty
terms from their prior, theta too; labels from the model; ranks of the truth among 99 draws, of
theta, delta, b, a scale, and the log-likelihood. With their largest distance from uniformity, in
units of what is exceeded with probability 0.01 for all five together (Kolmogorov and Smirnov,
Bonferroni).
"""

import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import quality
from common import parser
from numpyro.infer import MCMC, NUTS
from scipy import stats
from scipy.special import expit
from threadpoolctl import threadpool_limits

from edgebelief.belief import predict
from edgebelief.data import ErdosRenyi, GraphDataset
from edgebelief.infer import EdgeModel, Exact, InferenceWarning, fixed
from edgebelief.infer.batch import log_likelihoods
from edgebelief.infer.exact.plugin import PlugIn
from edgebelief.infer.prepare import prepare
from edgebelief.networks import DPG
from edgebelief.readouts import Additive


def nuts(given: quality.Problem, n_draws: int) -> dict:
    """Compare the mean probabilities of the test pairs."""
    problem = prepare(0, EdgeModel(DPG(), Additive()), given.train)
    theta = float(problem.model.prior["theta"].from_z(problem.network_z))
    model = problem.model.replace(prior=problem.model.prior.replace(theta=fixed(theta)))
    start = time.perf_counter()
    posterior = Exact(n_draws=4000).run(0, model, given.train)
    seconds = time.perf_counter() - start
    ours = np.concatenate([belief.mean for belief in predict(posterior, given.test)])
    both = GraphDataset._of([*given.train, *given.test])
    with threadpool_limits(1):
        columns = PlugIn(model, both, np.ones(len(both))).columns
    x = np.concatenate(columns[: len(given.train)])
    a = np.concatenate([record.a for record in given.train])
    prior, groups = model.prior, model.readout.groups
    n_scales = int(groups.max()) + 1

    def labels(x: jax.Array, a: jax.Array) -> None:
        first = [numpyro.sample(name, prior[name].distribution) for name in ("delta", "b")]
        with numpyro.plate("groups", n_scales):
            tau = numpyro.sample("tau", prior["scales"].distribution)
        with numpyro.plate("curves", groups.size):
            u = numpyro.sample("u", dist.Normal())
        beta = jnp.concatenate([jnp.stack(first), tau[groups] * u])
        numpyro.sample("a", dist.Bernoulli(logits=x @ beta), obs=a)
        numpyro.deterministic("beta", beta)

    with jax.enable_x64(True):
        start = time.perf_counter()
        chains = MCMC(
            NUTS(labels, target_accept_prob=0.9, max_tree_depth=8),
            num_warmup=500, num_samples=n_draws, num_chains=2, chain_method="vectorized",
            progress_bar=False,
        )  # fmt: skip
        chains.run(jax.random.key(0), jnp.asarray(x), jnp.asarray(a))
        beta = np.asarray(chains.get_samples()["beta"])
        theirs_seconds = time.perf_counter() - start
    test = np.concatenate(columns[len(given.train) :])
    each = expit(test @ beta.T)
    half = each.shape[1] // 2
    return {
        "terms": len(model.readout.terms),
        "scales": n_scales,
        "rms": float(np.sqrt(np.mean((each.mean(1) - ours) ** 2))),
        "rms of the two chains of NUTS": float(
            np.sqrt(np.mean((each[:, :half].mean(1) - each[:, half:].mean(1)) ** 2))
        ),
        "seconds": round(seconds, 1),
        "seconds of NUTS": round(theirs_seconds, 1),
    }


def sbc(n_problems: int) -> dict:
    """Return the distance of ranks from uniformity, in units of the critical one."""
    inputs = GraphDataset.sample(3, ErdosRenyi(0.4), 4, 10, n_signals=30)
    rng = np.random.default_rng(20261119)
    # Eight further features, so that there are twenty.
    inputs = GraphDataset._of([
        r._replace(covariates={f"x{k}": rng.standard_normal(r.e.size) for k in range(8)})
        for r in inputs
    ])  # fmt: skip
    model = prepare(0, EdgeModel(DPG(depth=8), Additive()), inputs).model
    assert len(model.readout.terms) >= 20
    ranks = []
    for k in range(n_problems):
        # Coefficients and scales are standard normal in z, each on its own.
        truth = model.from_z(rng.standard_normal((1, model.n_free)))
        truth = {name: np.asarray(values) for name, values in truth.items()}
        logits = [
            np.asarray(model.logits({n: v[0] for n, v in truth.items()}, jnp.asarray(s.e[0]),
                                    s.support, model.pairs(s)[0]))
            for s in (GraphDataset._of([r]).stacks()[0] for r in inputs)
        ]  # fmt: skip
        a = [(rng.random(x.size) < expit(x)) * 1.0 for x in logits]
        data = GraphDataset._of([r._replace(a=each) for r, each in zip(inputs, a, strict=True)])
        posterior = Exact(n_draws=1000).run(k, model, data)
        draws = posterior.draws(k, 99)
        fits = log_likelihoods(model.forward, draws, data).sum(1)
        own = log_likelihoods(model.forward, truth, data).sum(1)
        row = [(draws[n] < truth[n]).sum() for n in ("theta", "delta", "b")]
        row += [(draws["scales"][:, 0] < truth["scales"][0, 0]).sum(), (fits < own).sum()]
        ranks.append(row)
        if k % 10 == 9:
            print(f"{k + 1} problems", flush=True)
    u = (np.array(ranks) + 0.5) / 100
    limit = stats.kstwo.ppf(1 - 0.01 / 5, n_problems)
    names = ("theta", "delta", "b", "a scale", "log-likelihood")
    return {
        name: round(float(stats.kstest(x, "uniform").statistic / limit), 2)
        for name, x in zip(names, u.T, strict=True)
    }


def main() -> None:
    options = parser(__doc__)
    options.add_argument("what", choices=["nuts", "sbc"])
    options.add_argument("--data", type=Path)
    options.add_argument("--draws", type=int, default=1000)
    options.add_argument("--problems", type=int, default=60)
    given = options.parse_args()
    warnings.simplefilter("ignore", InferenceWarning)
    if given.what == "sbc":
        print(sbc(given.problems))
        return
    for name in ("ER", "S&P 500"):
        if name == "ER" or given.data is not None:
            made = quality.informed(quality.DATA[name][0](given.data, 0), quality.metric_of(name))
            print(name, nuts(made, given.draws), flush=True)


if __name__ == "__main__":
    main()
