"""The paper's posterior in plain NumPyro: what a user would write instead of installing us.

Nothing of edgebelief is imported. The model has a dense S (N x N(N-1)/2), the dual proximal
gradient iteration unrolled by `lax.scan`, `vmap` over graphs and Bernoulli labels in plates, in
float32; it runs by `NUTS(model, forward_mode_differentiation=True)` with all other settings at
their defaults. Chains run two at a time, one per core, without progress bars (which cost time).

Chains run as ``chain_method="parallel"`` runs them, a `pmap` over host devices, but with the `pmap`
written out: so it can be lowered and compiled ahead of time, and compilation is timed on its own.
`MCMC.run` would compile anew at every call with several chains. "With compile" is both; all
batches of two share one compilation. Imports and the start of JAX are left out.

Prediction pushes 4,000 posterior draws through the network for all test graphs: a compiled `vmap`
over draws in chunks, which are split over the same two devices.

    python benchmarks/plain_numpyro.py DATA.npz [--predict TEST.npz] [--chains 4] [--warmup 500]
        [--draws 1000] [--save FILE.npz]

`DATA.npz` has `e` and `a`, (graphs, edges); `TEST.npz` has `e`. Prints JSON, and its
progress on stderr.
"""

import json
import math
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from arviz_stats.base import array_stats
from common import parser
from numpyro.infer import MCMC, NUTS

DEVICES = 2  # chains at a time: one per core
DEPTH = 200
PREDICTIVE_DRAWS = 4000
CHUNK = 10  # draws pushed at a time on a device; the fastest of 1, 5, 10, 25, 50, 100


def degree_matrix(n_nodes: int) -> jax.Array:
    """Return S, (nodes, edges), with d = S a; edges in row-major upper-triangular order."""
    rows, cols = np.triu_indices(n_nodes, 1)
    S = np.zeros((n_nodes, rows.size), np.float32)
    S[rows, np.arange(rows.size)] = S[cols, np.arange(rows.size)] = 1
    return jnp.asarray(S)


def dpg(theta: jax.Array, e: jax.Array, S: jax.Array) -> jax.Array:
    """Return the edge weights of one graph after `DEPTH` dual proximal gradient steps.

    The root is taken in the form that does not cancel, by the sign of u: in float32 the printed one
    loses all digits. `a @ S.T` rather than `S @ a`, which takes half as long again under `vmap`.
    """
    n_nodes = S.shape[0]

    def layer(carry: tuple[jax.Array, jax.Array], _: None) -> tuple[Any, None]:
        a, lam = carry
        u = a @ S.T - (n_nodes - 1) * lam
        q = jnp.where(u > 0, u, -u) + jnp.sqrt(u**2 + 4 * (n_nodes - 1))
        lam = jnp.where(u > 0, 2 / q, q / (2 * (n_nodes - 1)))
        a = jax.nn.relu(lam @ S / 2 - theta * e)
        return (a, lam), None

    first = jnp.full_like(e, 0.5), jnp.full(n_nodes, 17.0, e.dtype)
    (a, _), _ = jax.lax.scan(layer, first, None, length=DEPTH)
    return a


def logits(
    theta: jax.Array, delta: jax.Array, b: jax.Array, e: jax.Array, S: jax.Array
) -> jax.Array:
    """Return the logits of all graphs, (graphs, edges)."""
    return delta * jax.vmap(lambda distances: dpg(theta, distances, S))(e) - b


def model(e: jax.Array, a: jax.Array, S: jax.Array) -> None:
    """Sample with the altered prior: lognormal, by its median and the sd of the natural log."""
    theta = numpyro.sample("theta", dist.LogNormal(math.log(10**-0.5), 2.0))
    delta = numpyro.sample("delta", dist.LogNormal(math.log(100.0), math.sqrt(2.0)))
    b = numpyro.sample("b", dist.LogNormal(0.0, math.sqrt(2.0)))
    label_logits = logits(theta, delta, b, e, S)
    with numpyro.plate("graphs", e.shape[0], dim=-2), numpyro.plate("edges", e.shape[1], dim=-1):
        numpyro.sample("a", dist.Bernoulli(logits=label_logits), obs=a)


def posterior(
    e: jax.Array, a: jax.Array, key: jax.Array, n_chains: int, n_warmup: int, n_draws: int
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return draws by name, (chains, draws), and their cost."""
    S = degree_matrix(nodes_of(e))

    def chain(key: jax.Array) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
        kernel = NUTS(model, forward_mode_differentiation=True)
        mcmc = MCMC(kernel, num_warmup=n_warmup, num_samples=n_draws, progress_bar=False)
        mcmc.run(key, e, a, S, extra_fields=("num_steps", "adapt_state.step_size"))
        return mcmc.get_samples(), mcmc.get_extra_fields()

    batches = jax.random.split(key, (n_chains // DEVICES, DEVICES))
    say("compiling NUTS")
    begin = time.perf_counter()
    run = jax.pmap(chain).lower(batches[0]).compile()
    compile_seconds = time.perf_counter() - begin
    results, seconds = [], []
    cpu = time.process_time()
    for k, keys in enumerate(batches):
        say(f"chains {DEVICES * k + 1} and {DEVICES * k + 2} of {n_chains}: {n_warmup} + {n_draws}")
        begin = time.perf_counter()
        results.append(jax.block_until_ready(run(keys)))
        seconds.append(time.perf_counter() - begin)
        say(f"took {seconds[-1]:.1f} s")
    cpu = time.process_time() - cpu
    draws, fields = jax.tree.map(lambda *parts: np.concatenate(parts), *results)
    ess = {name: bulk_ess(values) for name, values in draws.items()}
    return draws, {
        "chains": n_chains,
        "warmup": n_warmup,
        "draws": n_draws,
        "seconds": sum(seconds),
        "seconds with compile": sum(seconds) + compile_seconds,
        "seconds of each batch": seconds,
        "cores busy": cpu / sum(seconds),  # well below 2 if other work was running
        "bulk ESS": ess,
        "ESS per second": min(ess.values()) / sum(seconds),
        "ESS per second with compile": min(ess.values()) / (sum(seconds) + compile_seconds),
        "mean": {name: float(values.mean()) for name, values in draws.items()},
        "sd": {name: float(values.std(ddof=1)) for name, values in draws.items()},
        "leapfrog steps per draw": float(fields["num_steps"].mean()),
        "step size of each chain": fields["adapt_state.step_size"][:, -1].tolist(),
        "divergences": int(fields["diverging"].sum()),
    }


def gradient_seconds(
    e: jax.Array, a: jax.Array, draws: dict[str, np.ndarray], repeats: int = 30
) -> float:
    """Return the median seconds of one forward-mode gradient of the log density, run alone."""
    S = degree_matrix(nodes_of(e))

    def density(unconstrained: dict[str, jax.Array]) -> jax.Array:
        positive = {name: jnp.exp(x) for name, x in unconstrained.items()}
        return numpyro.infer.util.log_density(model, (e, a, S), {}, positive)[0]

    gradient = jax.jit(jax.jacfwd(density))
    point = {name: jnp.log(jnp.asarray(values).mean()) for name, values in draws.items()}
    jax.block_until_ready(gradient(point))
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        jax.block_until_ready(gradient(point))
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def predict(
    e: jax.Array, draws: dict[str, np.ndarray], n_draws: int = PREDICTIVE_DRAWS
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Return mean and sd over draws of every edge's probability, and their cost.

    Draws are reused where there are fewer than `n_draws`: the cost does not depend on them.
    """
    S = degree_matrix(nodes_of(e))
    flat = [jnp.asarray(np.resize(draws[name], n_draws)) for name in ("theta", "delta", "b")]

    def push(chunks: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
        def chunk(total: tuple[jax.Array, jax.Array], params: list[jax.Array]) -> tuple[Any, None]:
            p = jax.vmap(lambda t, d, b: jax.nn.sigmoid(logits(t, d, b, e, S)))(*params)
            return (total[0] + p.sum(0), total[1] + (p**2).sum(0)), None

        return jax.lax.scan(chunk, (jnp.zeros_like(e), jnp.zeros_like(e)), chunks)[0]

    # Each device takes every other draw, so that draws from one chain fall on both.
    chunks = [values.reshape(-1, CHUNK, DEVICES).transpose(2, 0, 1) for values in flat]
    say("compiling the prediction")
    begin = time.perf_counter()
    run = jax.pmap(push).lower(chunks).compile()
    compile_seconds = time.perf_counter() - begin
    say(f"pushing {n_draws} draws through the network for {len(e)} graphs")
    begin = time.perf_counter()
    total, squares = (np.asarray(part, float).sum(0) for part in run(chunks))
    seconds = time.perf_counter() - begin
    say(f"took {seconds:.1f} s")
    mean = total / n_draws
    sd = np.sqrt(np.maximum(squares / n_draws - mean**2, 0))
    cost = {"draws": n_draws, "graphs": len(e), "seconds": seconds}
    return mean, sd, {**cost, "seconds with compile": seconds + compile_seconds}


def bulk_ess(values: np.ndarray) -> float:
    """Return effective draws of (chains, draws): rank-normalised, split (Vehtari et al. 2021)."""
    return float(array_stats.ess(values, chain_axis=0, draw_axis=1, method="bulk"))


def nodes_of(e: jax.Array) -> int:
    return (1 + math.isqrt(1 + 8 * e.shape[-1])) // 2


def say(what: str) -> None:
    print(f"  [plain NumPyro] {what}", file=sys.stderr, flush=True)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("data", help="npz with e and a, (graphs, edges)")
    options.add_argument("--predict", help="npz with e of the test graphs")
    options.add_argument("--chains", type=int, default=4)
    options.add_argument("--warmup", type=int, default=500)
    options.add_argument("--draws", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--save", help="npz for the draws, and the predicted mean and sd")
    arguments = options.parse_args()
    numpyro.set_host_device_count(DEVICES)  # takes effect when JAX starts, at its first array
    if arguments.chains < DEVICES or arguments.chains % DEVICES:
        options.error(f"chains run {DEVICES} at a time; got --chains {arguments.chains}.")
    with np.load(arguments.data) as file:
        e, a = (jnp.asarray(file[name], jnp.float32) for name in ("e", "a"))
    key = jax.random.key(arguments.seed)
    draws, result = posterior(e, a, key, arguments.chains, arguments.warmup, arguments.draws)
    result["seconds per gradient, alone"] = gradient_seconds(e, a, draws)
    saved: dict[str, Any] = dict(draws)
    if arguments.predict:
        with np.load(arguments.predict) as file:
            e_test = jnp.asarray(file["e"], jnp.float32)
        saved["p_mean"], saved["p_sd"], result["prediction"] = predict(
            e_test, {name: values.ravel() for name, values in draws.items()}
        )
    if arguments.save:
        np.savez(arguments.save, **saved)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
