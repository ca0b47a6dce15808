"""The posterior and what it predicts: ours against plain NumPyro, in one run.

The rival is `plain_numpyro.py`: the same model by NUTS, 4 chains of 500 + 1000, two at a time, and
4,000 draws pushed through the network for the test graphs. Every contestant runs in a process of
its own, one after the other. Imports and the start of JAX are left out on all sides.

With compile: the first call of a fresh process. Without: for us a second call with another key in
the same process, for the rival the run of a program compiled ahead of time. Agreement is the
largest difference of posterior means, in posterior standard deviations; two means of independent
draws differ by about sqrt(2 / ESS) of them. Effective draws are bulk ESS, the least of the three
parameters, by the same function on both sides.

    python benchmarks/inference.py [--data PATH/rg032.npz] [--quick] [--json FILE]
    python benchmarks/inference.py --scale [--json FILE]

Without `--data`, graphs like those of the file are drawn: RG(0.32), 20 nodes, 50 to learn from and
100 to predict, expected distances. `--quick` shortens the rival to 2 chains of 50 + 50 and scales
up (marked "~"): steps a draw times the time of a gradient, a rough figure.
`--scale` is `Exact` alone on 10 graphs of 200 nodes, ER(0.25): seconds, memory, and how far the
means move at a finer tolerance.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
PLAIN = HERE / "plain_numpyro.py"
PARAMETERS = ("theta", "delta", "b")
FULL, QUICK = (4, 500, 1000), (2, 50, 50)  # chains, warm-up, draws of the rival
COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"  # JAX's name for it
SCALE = {"n_graphs": 10, "n_nodes": 200}
# Of Exact: its default, and twice the resolution: half the step is 1/16 of a cubic's error.
TOLERANCES = (0.01, 0.01 / 16)


# What runs in a process of its own: each prints one line of JSON.


def run_exact(folder):
    """Exact twice, and the prediction of the test graphs twice."""
    import jax

    from edgebelief.belief import predict
    from edgebelief.infer import EdgeModel, Exact

    jax.block_until_ready(jax.numpy.ones(3) + 1)
    train, test = (read(folder / f"{part}.npz") for part in ("train", "test"))
    first, _ = seconds(lambda: Exact().run(0, EdgeModel(), train))
    say(f"Exact, first call: {first:.2f} s")
    second, posterior = seconds(lambda: Exact().run(1, EdgeModel(), train))
    say(f"Exact, second call: {second:.2f} s")
    first_prediction, _ = seconds(lambda: predict(posterior, test))
    say(f"prediction, first call: {first_prediction:.2f} s")
    second_prediction, prediction = seconds(lambda: predict(posterior, test))
    say(f"prediction, second call: {second_prediction:.2f} s")
    np.savez(folder / "ours.npz", p_mean=np.stack([belief.mean for belief in prediction]))
    return {
        **moments(posterior),
        "seconds": second,
        "seconds with compile": first,
        "theta nodes": posterior.verdict.figures["theta nodes"],
        "prediction": {"seconds": second_prediction, "seconds with compile": first_prediction},
    }


def run_nuts(folder):
    """NUTS twice."""
    import jax
    from plain_numpyro import bulk_ess

    from edgebelief.infer import NUTS, EdgeModel

    jax.block_until_ready(jax.numpy.ones(3) + 1)
    train = read(folder / "train.npz")
    compiling, result = [], {}
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, taken, **_: compiling.append(taken) if event == COMPILE_EVENT else None
    )
    for call, suffix in enumerate((" with compile", "")):
        compiling.clear()
        taken, posterior = seconds(lambda key=call: NUTS().run(key, EdgeModel(), train))
        chains = [posterior.params[name].reshape(posterior.n_chains, -1) for name in PARAMETERS]
        ess = min(bulk_ess(values) for values in chains)
        say(
            f"NUTS, call {call + 1}: {taken:.2f} s, of which XLA compiled {sum(compiling):.2f} s; "
            f"{ess:.0f} effective draws"
        )
        result |= {f"seconds{suffix}": taken, f"ESS per second{suffix}": ess / taken}
        result[f"seconds of XLA compiling, call {call + 1}"] = sum(compiling)
    return result | moments(posterior) | {"ESS": ess, "settings": str(posterior.settings)}


def run_scale(tol):
    """Exact once on large graphs, with the peak of its memory."""
    import jax
    from memory import peak_bytes

    from edgebelief.data import ErdosRenyi, GraphDataset
    from edgebelief.infer import EdgeModel, Exact

    data = GraphDataset.sample(0, ErdosRenyi(0.25), **SCALE)
    jax.block_until_ready(jax.numpy.ones(3) + 1)
    before = peak_bytes()
    taken, posterior = seconds(lambda: Exact(tol=tol).run(0, EdgeModel(), data))
    cost = {"seconds with compile": taken, "peak bytes": peak_bytes()}
    return {
        "tol": tol, **cost, "peak bytes over import": cost["peak bytes"] - before,
        "theta nodes": posterior.verdict.figures["theta nodes"], **moments(posterior),
    }  # fmt: skip


def moments(posterior):
    table = posterior.summary()
    return {
        "mean": {name: float(table.loc[name, "mean"]) for name in PARAMETERS},
        "sd": {name: float(table.loc[name, "sd"]) for name in PARAMETERS},
        "findings": list(posterior.verdict.names),
    }


def seconds(run):
    begin = time.perf_counter()
    result = run()
    return time.perf_counter() - begin, result


def read(path):
    from edgebelief.data import GraphDataset

    with np.load(path) as file:
        return GraphDataset(file["e"], file["a"], n_signals=np.inf)


def say(what):
    print(f"  [edgebelief] {what}", file=sys.stderr, flush=True)


# The process that starts them.


def write_data(folder, source):
    """train.npz and test.npz, each with e and a (graphs, edges)."""
    rows, cols = np.triu_indices(20, 1)
    for part, n_graphs, key in (("train", 50, 0), ("test", 100, 1)):
        if source is None:
            from edgebelief.data import GraphDataset, RandomGeometric

            stack = GraphDataset.sample(key, RandomGeometric(0.32), n_graphs, 20).stacks()[0]
            e, a = stack.e, stack.a
        else:
            with np.load(source) as file:
                e = file[f"{part}_distances"][:, rows, cols]
                a = file[f"{part}_adjacency"][:, rows, cols]
        np.savez(folder / f"{part}.npz", e=e, a=a.astype(float))


def child(*command):
    """What a process printed as JSON; what it says on stderr is passed on."""
    # No compiled programs from earlier runs, if JAX is set to keep them.
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    command = [sys.executable, *map(str, command)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed; what it said is above.")
    return json.loads(done.stdout)


def apart(ours, other):
    """The largest difference of the means, in standard deviations of `other`."""
    return max(abs(ours["mean"][n] - other["mean"][n]) / other["sd"][n] for n in PARAMETERS)


def scaled_up(plain):
    """The cost of the full chains, from the short ones' steps a draw and the time of a gradient.

    Not from their wall time: the first steps of a chain are its longest, and would all be charged.
    """
    chains, warmup, draws = FULL
    taken = plain["seconds per gradient, alone"] * plain["leapfrog steps per draw"]
    taken *= chains * (warmup + draws) / 2  # two at a time
    compiling = plain["seconds with compile"] - plain["seconds"]
    ess = min(plain["bulk ESS"].values()) * chains * draws / (QUICK[0] * QUICK[2])
    return plain | {
        "scaled from": QUICK,
        "seconds": taken, "seconds with compile": taken + compiling,
        "ESS per second": ess / taken, "ESS per second with compile": ess / (taken + compiling),
    }  # fmt: skip


def compare(source, quick):
    chains, warmup, draws = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, source)
        print("Exact, and prediction from it", flush=True)
        exact = child(__file__, "--child", "exact", "--folder", folder)
        print("NUTS", flush=True)
        nuts = child(__file__, "--child", "nuts", "--folder", folder)
        print(f"plain NumPyro: {chains} chains of {warmup} + {draws}", flush=True)
        plain = child(
            PLAIN, folder / "train.npz", "--predict", folder / "test.npz", "--chains", chains,
            "--warmup", warmup, "--draws", draws, "--save", folder / "plain.npz",
        )  # fmt: skip
        p = [np.load(folder / f"{who}.npz")["p_mean"] for who in ("ours", "plain")]
    plain = scaled_up(plain) if quick else plain
    mark = "~" if quick else " "
    rows = []
    print(f"\n{'':<39} {'plain NumPyro':>14} {'edgebelief':>11} {'ratio':>9}")

    def row(what, other, ours, unit, more_is_better=False, mark=mark):
        ratio = ours / other if more_is_better else other / ours
        rows.append({"what": what, "plain": other, "ours": ours, "unit": unit, "ratio": ratio})
        print(f"{what:<39} {mark}{other:11.2f} {unit:<2} {ours:8.2f} {unit:<2} {mark}{ratio:7.1f}")

    for suffix, name in ((" with compile", "with compile"), ("", "without compile")):
        seconds_, rate = f"seconds{suffix}", f"ESS per second{suffix}"
        row(f"posterior by Exact, {name}", plain[seconds_], exact[seconds_], "s")
        row(f"NUTS, effective draws, {name}", plain[rate], nuts[rate], "/s", more_is_better=True)
        pushed, summed = plain["prediction"][seconds_], exact["prediction"][seconds_]
        row(f"prediction, {name}", pushed, summed, "s", mark=" ")
    agreement = {
        "Exact and plain NumPyro": apart(exact, plain),
        "NUTS and plain NumPyro": apart(nuts, plain),
        "NUTS and Exact": apart(nuts, exact),
    }
    if quick:
        print(
            f"~ scaled up from {QUICK[0]} chains of {QUICK[1]} + {QUICK[2]}: "
            "too short for effective draws or agreement to mean much"
        )
    recompiled = nuts["seconds of XLA compiling, call 2"]
    if recompiled > 0.1:
        print(f"the second call of NUTS compiled anew, for {recompiled:.1f} s that are in its time")
    print(
        f"\nplain NumPyro: {plain['leapfrog steps per draw']:.1f} leapfrog steps a draw, "
        f"{1e3 * plain['seconds per gradient, alone']:.1f} ms a gradient (alone), "
        f"{min(plain['bulk ESS'].values()):.0f} effective of {chains * draws} draws, "
        f"{plain['divergences']} divergences; {plain['cores busy']:.1f} cores busy"
    )
    print(f"\n{'':<16}" + "".join(f"{name:>22}" for name in PARAMETERS))
    for who, found in (("plain NumPyro", plain), ("Exact", exact), ("NUTS", nuts)):
        cells = (f"{found['mean'][n]:.5g} +- {found['sd'][n]:.4g}" for n in PARAMETERS)
        print(f"{who:<16}" + "".join(f"{cell:>22}" for cell in cells))
    for who, found in agreement.items():
        print(f"means of {who} are {found:.3f} sd apart")
    largest = float(abs(p[0] - p[1]).max())
    print(f"predicted probabilities are at most {largest:.4f} apart")
    return {
        "rows": rows, "agreement in sd": agreement, "largest difference of predictions": largest,
        "plain NumPyro": plain, "Exact": exact, "NUTS": nuts,
    }  # fmt: skip


def scale():
    found = []
    print(f"{'tol':>8} {'theta nodes':>11} {'seconds':>8} {'peak MB':>8} {'over import':>11}")
    for tol in TOLERANCES:
        found.append(child(__file__, "--child", "scale", "--tol", tol))
        last = found[-1]
        print(
            f"{tol:8g} {last['theta nodes']:11.0f} {last['seconds with compile']:8.1f} "
            f"{last['peak bytes'] / 1e6:8.0f} {last['peak bytes over import'] / 1e6:11.0f}",
            flush=True,
        )
    moved = apart(*found)
    print(f"means move by at most {moved:.5f} sd")
    return {"runs": found, "means move by (sd)": moved, **SCALE}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="rg032.npz; without it, graphs like those are drawn")
    parser.add_argument("--quick", action="store_true", help="a short rival, scaled up")
    parser.add_argument("--scale", action="store_true", help="Exact alone, on 200 nodes")
    parser.add_argument("--json", help="also write all figures here")
    parser.add_argument("--child", choices=("exact", "nuts", "scale"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--tol", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child == "scale":
        print(json.dumps(run_scale(arguments.tol)))
        return
    if arguments.child:
        run = {"exact": run_exact, "nuts": run_nuts}[arguments.child]
        print(json.dumps(run(arguments.folder)))
        return
    load = os.getloadavg()[0]
    busy = ": other work is running, and these times are not to be trusted" if load > 0.5 else ""
    print(f"{os.cpu_count()} cores; load {load:.1f} before we start{busy}", flush=True)
    result = scale() if arguments.scale else compare(arguments.data, arguments.quick)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"load before": load, **result}, indent=1))


if __name__ == "__main__":
    main()
