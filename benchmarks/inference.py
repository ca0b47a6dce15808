"""Time the posterior and predictions: ours against plain NumPyro or another checkout, in one run.

The rival is `plain_numpyro.py`: the same model by NUTS, 4 chains of 500 + 1000, two at a time, and
4,000 draws pushed through the network for the test graphs. Every contestant runs in a process of
its own, one after the other. Imports and the start of JAX are not timed.

"With compile" is the first call of a fresh process. "Without" is, for us, a second call with
another key in the same process, and for the rival the run of a program compiled ahead of time.
Agreement is the largest difference of posterior means, in posterior standard deviations; two means
of independent draws differ by about sqrt(2 / ESS) of them. Effective draws are the smallest bulk
ESS of the three parameters, by the same function on both sides.

    python benchmarks/inference.py [--data PATH/rg032.npz] [--quick] [--json FILE]
    python benchmarks/inference.py --against CHECKOUT [--rounds 3] [--data ...] [--json FILE]
    python benchmarks/inference.py --scale [--json FILE]

Without `--data`, graphs like those of the file are drawn: RG(0.32), 20 nodes, 50 training and 100
test graphs, expected distances. `--quick` shortens the rival to 2 chains of 50 + 50 and scales up
(marked "~"): steps a draw times the time of a gradient, a rough estimate.
`--against` times Exact, prediction, NUTS and the additive fit of this checkout and of another one,
in turns, and prints the ratio of the median times; a ratio above 1 means that this one is faster.
"Processor" is the processor time of the whole process, which other work on the machine hardly
changes; that of Exact includes the predictions.
`--scale` times `Exact` alone on 10 graphs of 200 nodes, ER(0.25): seconds, memory, and how far the
means move at a finer tolerance.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from common import ROOT, parser

if TYPE_CHECKING:
    from edgebelief.data import GraphDataset
    from edgebelief.infer import Posterior

# The results of a process, as JSON holds them.
Results = dict[str, Any]
Result = TypeVar("Result")
PLAIN = Path(__file__).with_name("plain_numpyro.py")
PARAMETERS = ("theta", "delta", "b")
FULL, QUICK = (4, 500, 1000), (2, 50, 50)  # chains, warm-up, draws of the rival
FIRST, SECOND = "seconds with compile", "seconds"
COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"  # the name that JAX gives it
# The processes of `--against`, and what they time.
CASES = {"exact": "Exact", "nuts": "NUTS", "additive": "additive fit"}
SCALE = {"n_graphs": 10, "n_nodes": 200}
# The default of Exact, and twice its resolution: half the step has 1/16 of the error of a cubic.
TOLERANCES = (0.01, 0.01 / 16)


# What runs in a process of its own, and prints one line of JSON. The process may import the package
# from another checkout (`--against`), so that only public names are used.


def twice(what: str, run: Callable[[int], Result]) -> tuple[Result, Results]:
    """Call a function with the keys 0 and 1; return the last result and the seconds of both."""
    first, _ = seconds(lambda: run(0))
    say(f"{what}, first call: {first:.2f} s")
    second, result = seconds(lambda: run(1))
    say(f"{what}, second call: {second:.2f} s")
    return result, {FIRST: first, SECOND: second}


def run_exact(folder: Path) -> Results:
    """Run Exact twice, and predict the test graphs twice."""
    from edgebelief.belief import predict
    from edgebelief.infer import EdgeModel, Exact

    start_jax()
    train, test = (read(folder / f"{part}.npz") for part in ("train", "test"))
    posterior, fit = twice("Exact", lambda key: Exact().run(key, EdgeModel(), train))
    predictions, prediction = twice("prediction", lambda key: predict(posterior, test))
    np.savez(folder / "ours.npz", p_mean=np.stack([belief.mean for belief in predictions]))
    return moments(posterior) | fit | {"prediction": prediction}


def run_additive(folder: Path) -> Results:
    """Fit the additive readout twice."""
    from edgebelief import GraphLearner

    start_jax()
    train = read(folder / "train.npz")
    _, fit = twice(
        "additive fit",
        lambda key: GraphLearner(readout="additive", evidence="none", random_state=key).fit(train),
    )
    return fit


def run_nuts(folder: Path) -> Results:
    """Run NUTS twice, and count its effective draws."""
    import jax
    from plain_numpyro import bulk_ess

    from edgebelief.infer import NUTS, EdgeModel

    start_jax()
    train = read(folder / "train.npz")
    compiling: list[float] = []
    result: Results = {}

    def note(event: str, duration_secs: float, **_: str | int) -> None:
        if event == COMPILE_EVENT:
            compiling.append(duration_secs)

    jax.monitoring.register_event_duration_secs_listener(note)
    for call, suffix in enumerate((" with compile", "")):
        compiling.clear()
        taken, posterior = seconds(partial(NUTS().run, call, EdgeModel(), train))
        chains = [posterior.params[name].reshape(posterior.n_chains, -1) for name in PARAMETERS]
        ess = min(bulk_ess(values) for values in chains)
        say(
            f"NUTS, call {call + 1}: {taken:.2f} s, of which XLA compiled {sum(compiling):.2f} s; "
            f"{ess:.0f} effective draws"
        )
        result |= {f"seconds{suffix}": taken, f"ESS per second{suffix}": ess / taken}
        result[f"seconds of XLA compiling, call {call + 1}"] = sum(compiling)
    return result | moments(posterior) | {"ESS": ess, "settings": str(posterior.settings)}


def run_scale(tol: float) -> Results:
    """Run Exact once on large graphs, and measure its peak memory."""
    from memory import peak_bytes

    from edgebelief.data import ErdosRenyi, GraphDataset
    from edgebelief.infer import EdgeModel, Exact

    data = GraphDataset.sample(0, ErdosRenyi(0.25), SCALE["n_graphs"], SCALE["n_nodes"])
    start_jax()
    before = peak_bytes()
    taken, posterior = seconds(lambda: Exact(tol=tol).run(0, EdgeModel(), data))
    cost = {FIRST: taken, "peak bytes": peak_bytes()}
    return {
        "tol": tol, **cost, "peak bytes over import": cost["peak bytes"] - before,
        "theta nodes": posterior.verdict.figures["theta nodes"], **moments(posterior),
    }  # fmt: skip


def start_jax() -> None:
    """Start JAX, so that its start is not timed."""
    import jax

    jax.block_until_ready(jax.numpy.ones(3) + 1)


def moments(posterior: "Posterior") -> Results:
    """Return mean and sd of the parameters, and the findings of the verdict."""
    table = posterior.summary()
    return {
        "mean": {name: float(table["mean"][name]) for name in PARAMETERS},
        "sd": {name: float(table["sd"][name]) for name in PARAMETERS},
        "findings": list(posterior.verdict.names),
    }


def seconds(run: Callable[[], Result]) -> tuple[float, Result]:
    """Return the seconds that a function takes, and its result."""
    begin = time.perf_counter()
    result = run()
    return time.perf_counter() - begin, result


def read(path: Path) -> "GraphDataset":
    from edgebelief.data import GraphDataset

    with np.load(path) as file:
        return GraphDataset(file["e"], file["a"], n_signals=np.inf)


def say(what: str) -> None:
    print(f"  [edgebelief] {what}", file=sys.stderr, flush=True)


# The process that starts these.


def write_data(folder: Path, source: str | None) -> None:
    """Write train.npz and test.npz, each with e and a (graphs, edges)."""
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


def child(*arguments: object, checkout: Path = ROOT) -> Results:
    """Run a script with the package of a checkout; return the JSON that it prints."""
    # Without this variable JAX cannot use compiled programs from earlier runs.
    environment = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    environment["PYTHONPATH"] = str(checkout / "src")
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed; its messages are above.")
    return json.loads(done.stdout)


def apart(ours: Results, other: Results) -> float:
    """Return the largest difference of the means, in standard deviations of `other`."""
    return max(abs(ours["mean"][n] - other["mean"][n]) / other["sd"][n] for n in PARAMETERS)


def scaled_up(plain: Results) -> Results:
    """Estimate the cost of the full chains from the steps a draw and the time of a gradient.

    The wall time of short chains would mislead: the first steps of a chain are its longest.
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


def compare(source: str | None, quick: bool) -> Results:
    """Compare with plain NumPyro, and print a table."""
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

    def row(
        what: str, other: float, ours: float, unit: str, more_is_better: bool = False,
        mark: str = mark,
    ) -> None:  # fmt: skip
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
        print(f"the second call of NUTS compiled again, for {recompiled:.1f} s of its time")
    print(
        f"\nplain NumPyro: {plain['leapfrog steps per draw']:.1f} leapfrog steps a draw, "
        f"{1e3 * plain['seconds per gradient, alone']:.1f} ms a gradient (alone), "
        f"{min(plain['bulk ESS'].values()):.0f} effective of {chains * draws} draws, "
        f"{plain['divergences']} divergences; {plain['cores busy']:.1f} cores busy"
    )
    print(f"\n{'':<16}" + "".join(f"{name:>22}" for name in PARAMETERS))
    for who, result in (("plain NumPyro", plain), ("Exact", exact), ("NUTS", nuts)):
        cells = (f"{result['mean'][n]:.5g} +- {result['sd'][n]:.4g}" for n in PARAMETERS)
        print(f"{who:<16}" + "".join(f"{cell:>22}" for cell in cells))
    for who, difference in agreement.items():
        print(f"means of {who} are {difference:.3f} sd apart")
    largest = float(abs(p[0] - p[1]).max())
    print(f"predicted probabilities are at most {largest:.4f} apart")
    return {
        "rows": rows, "agreement in sd": agreement, "largest difference of predictions": largest,
        "plain NumPyro": plain, "Exact": exact, "NUTS": nuts,
    }  # fmt: skip


def processor_seconds() -> float:
    """Return the processor time of all processes that have ended so far."""
    times = os.times()
    return times.children_user + times.children_system


def against(other: Path, source: str | None, rounds: int) -> Results:
    """Time this checkout and another one in turns, and print the ratio of the median times."""
    times: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder, source)
        for k in range(rounds):
            for who, checkout in (("this", ROOT), ("other", other)):
                print(f"round {k + 1} of {rounds}, {who} checkout", flush=True)
                for case, what in CASES.items():
                    before = processor_seconds()
                    result = child(__file__, "--child", case, "--folder", folder, checkout=checkout)
                    taken = {f"{what}, with compile": result[FIRST], what: result[SECOND]}
                    if "prediction" in result:
                        taken["prediction, with compile"] = result["prediction"][FIRST]
                        taken["prediction"] = result["prediction"][SECOND]
                    taken[f"{what}, processor"] = processor_seconds() - before
                    for row, value in taken.items():
                        times.setdefault(row, {"this": [], "other": []})[who].append(value)
    print(f"\n{'':<28} {'this':>8} {'other':>8} {'ratio':>6}")
    ratios = {}
    for row, by_checkout in times.items():
        ours, theirs = (float(np.median(by_checkout[who])) for who in ("this", "other"))
        ratios[row] = theirs / ours
        print(f"{row:<28} {ours:6.2f} s {theirs:6.2f} s {ratios[row]:6.2f}")
    return {"times": times, "ratios": ratios}


def scale() -> Results:
    """Run Exact on large graphs at two tolerances, and print a table."""
    runs = []
    print(f"{'tol':>8} {'theta nodes':>11} {'seconds':>8} {'peak MB':>8} {'over import':>11}")
    for tol in TOLERANCES:
        runs.append(child(__file__, "--child", "scale", "--tol", tol))
        last = runs[-1]
        print(
            f"{tol:8g} {last['theta nodes']:11.0f} {last['seconds with compile']:8.1f} "
            f"{last['peak bytes'] / 1e6:8.0f} {last['peak bytes over import'] / 1e6:11.0f}",
            flush=True,
        )
    moved = apart(*runs)
    print(f"means move by at most {moved:.5f} sd")
    return {"runs": runs, "means move by (sd)": moved, **SCALE}


RUNS = {"exact": run_exact, "nuts": run_nuts, "additive": run_additive}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", help="rg032.npz; without it, graphs like those are drawn")
    options.add_argument("--quick", action="store_true", help="a short rival, scaled up")
    options.add_argument("--against", type=Path, help="another checkout of this repository")
    options.add_argument("--rounds", type=int, default=3, help="runs of each checkout")
    options.add_argument("--scale", action="store_true", help="Exact alone, on 200 nodes")
    options.add_argument("--json", help="also write all results here")
    options.add_argument("--child", choices=(*RUNS, "scale"), help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--tol", type=float, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.child == "scale":
        print(json.dumps(run_scale(arguments.tol)))
        return
    if arguments.child:
        print(json.dumps(RUNS[arguments.child](arguments.folder)))
        return
    if arguments.against and not (arguments.against / "src" / "edgebelief").is_dir():
        options.error(f"{arguments.against} is not a checkout: it has no folder src/edgebelief.")
    load = os.getloadavg()[0]
    busy = ": other work is running, and these times are not reliable" if load > 0.5 else ""
    print(f"{os.cpu_count()} cores; load {load:.1f} before the start{busy}", flush=True)
    if arguments.scale:
        result = scale()
    elif arguments.against:
        result = against(arguments.against.resolve(), arguments.data, arguments.rounds)
    else:
        result = compare(arguments.data, arguments.quick)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"load before": load, **result}, indent=1))


if __name__ == "__main__":
    main()
