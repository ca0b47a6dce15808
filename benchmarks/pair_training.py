"""How long a training step of the pair network takes, and the drawing of a pool, on this machine.

    python benchmarks/pair_training.py [--small]

Settings that do not change what is learned are compared: every layer compiled on its own or one for
all (`unroll`), arrays of 20 and of 24 nodes (multiples of 8 suit tensor cores). Each is compiled in
its own thread. Draws of pools are those of training.
"""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import jax
from common import parser

from edgebelief.amortise.train import BUCKETS, SMALL, Bucket, Plan, Trainer, with_half


def variants() -> dict[str, Plan]:
    """Return plans of one bucket each."""
    plan, plans = with_half(Plan(world="ER")), {}
    small = replace(BUCKETS[0], pool=2)
    for unroll in (False, True):
        plans[f"20 nodes, unroll={unroll}"] = replace(plan, buckets=(small,), unroll=unroll)
    wider = replace(small, nodes=(5, 24), batch=small.batch * 400 // 576)
    plans["24 nodes, as many pairs, unroll=False"] = replace(plan, buckets=(wider,))
    large = replace(BUCKETS[-1], pool=2)
    plans["200 nodes, unroll=False"] = replace(plan, buckets=(large,))
    return plans


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--small", action="store_true")
    small = options.parse_args().small
    plans = (
        {"small": replace(SMALL, buckets=(Bucket((5, 12), 8, pool=2),))} if small else variants()
    )
    trainers = {name: Trainer(plan) for name, plan in plans.items()}
    start = time.perf_counter()
    with ThreadPoolExecutor() as pool:
        parts = [part for t in trainers.values() for part in t.compilations(t.start())]
        for done in [pool.submit(part) for part in parts]:
            done.result()
    print(f"{jax.devices()[0].device_kind}: compiled in {time.perf_counter() - start:.0f} s")
    for name, trainer in trainers.items():
        bucket = trainer.plan.buckets[0]
        state, loss = trainer.step(trainer.start(), 0)
        jax.block_until_ready(loss)
        steps = 2 if small else 30
        start = time.perf_counter()
        for _ in range(steps):  # always of the first pool
            state, loss = trainer.step(state, 1)
        jax.block_until_ready(loss)
        seconds = (time.perf_counter() - start) / steps
        pairs = bucket.batch * bucket.nodes[1] ** 2
        print(
            f"{name}: {1e3 * seconds:.2f} ms a step of {bucket.batch} graphs, "
            f"{bucket.batch / seconds:,.0f} graphs a second, {1e9 * seconds / pairs:.1f} ns a pair",
            flush=True,
        )


if __name__ == "__main__":
    main()
