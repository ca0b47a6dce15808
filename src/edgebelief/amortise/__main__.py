"""Train the pair network: `python -m edgebelief.amortise --out weights.safetensors`.

Everything is simulated; no data are needed. A run can be done in pieces:

    python -m edgebelief.amortise --steps 80000 --minutes 9 --checkpoint run.safetensors
    python -m edgebelief.amortise --steps 80000 --minutes 9 --checkpoint run.safetensors \
        --resume run.safetensors

The checkpoint has everything that the next step needs. `--steps` may change on resuming: the
learning rate is constant until the last half of the steps, in which it falls to zero.

A specialist, of one ensemble and one size, which begins with the weights of another run:

    python -m edgebelief.amortise --start weights.safetensors --world RG --nodes 20 20 --steps 2500

The last line of a finished run compares the network with the base rate on fresh draws; if it is not
better, the exit status is 1. To make the result the network that ships with the package:

    python -m edgebelief.amortise --ship weights.safetensors
    python -m edgebelief.amortise --alarm

The second makes again what tells the network that it is lost, for the weights that ship now.

Where there is a GPU, set JAX_COMPILATION_CACHE_DIR to a folder, so that a run that continues need
not compile again. With `--small`, a small network on small graphs, in under a minute on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TextIO

import equinox as eqx
import jax
import numpy as np

from .checkpoint import load_state, save_state
from .networkfile import load_network, save_network
from .train import SMALL, Bucket, Losses, Plan, State, Trainer, losses, scores, with_half
from .weights import SHA256, ship
from .world import EXAM, WORLDS

EXAM_GRAPHS = 2560  # 128 for each question
START = time.monotonic()


class Log:
    """Lines for people on the standard output, and records in a file."""

    def __init__(self, file: TextIO | None) -> None:
        self._file = file

    def __call__(self, text: str, **record: object) -> None:
        seconds = time.monotonic() - START
        print(f"{seconds:7.1f} s  {text}", flush=True)
        if self._file is not None and record:
            self._file.write(json.dumps({"seconds": round(seconds, 1), **record}) + "\n")
            self._file.flush()


def main(arguments: list[str] | None = None) -> None:
    """Train, and write the weights; or ship weights, or make their alarm."""
    options = _parser().parse_args(arguments)
    if options.ship:
        print(f"{options.ship}: now the weights of the package; SHA-256 {ship(options.ship)}")
        return
    if options.alarm:
        # Training does without the packages that these import.
        from .alarm import FILE, save_alarm
        from .calibrate import make

        alarm = make(options.seed or 0, log=Log(None))
        save_alarm(FILE, alarm, SHA256)
        print(f"{FILE}: {FILE.stat().st_size:,} bytes, for the weights {SHA256[:12]}...")
        return
    plan = _plan(options)
    with options.log.open("a") if options.log else open(os.devnull, "w") as file:
        _run(plan, options, Log(file))


def _run(plan: Plan, options: argparse.Namespace, log: Log) -> None:
    trainer = Trainer(plan)
    state = load_state(options.resume, trainer) if options.resume else trainer.start()
    if options.start:
        state = trainer.from_network(load_network(options.start))
    first = int(state.step)
    weights = sum(x.size for x in jax.tree.leaves(state.network))
    log(
        f"{jax.default_backend()}, JAX {jax.__version__}; {weights:,} weights; world "
        f"{plan.world!r}, {len(plan.cells)} cells; step {first} of {plan.steps}",
        step=first,
    )
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(part) for part in trainer.compilations(state)]:
            done.result()
    log("compiled")
    state = _train(trainer, state, first, options, log)
    if options.checkpoint:
        save_state(options.checkpoint, plan, state)
    about = {"world": plan.world, "steps": int(state.step), "seed": plan.seed}
    if options.out:
        save_network(options.out, state.average, about)
    if options.exam_every:
        _examine(state, log)
    _compare(trainer, state, log)


def _train(
    trainer: Trainer, state: State, first: int, options: argparse.Namespace, log: Log
) -> State:
    """Take steps until there are enough, or the time is over."""
    plan, since, measured = trainer.plan, time.monotonic(), list[tuple[int, Losses]]()
    for number in range(first, plan.steps):
        state, loss = trainer.step(state, number)
        measured.append((plan.bucket_of(number)[0], loss))
        done = number + 1
        if done % options.every == 0 or done == plan.steps:
            _log_losses(trainer, done, measured, time.monotonic() - since, log)
            measured, since = [], time.monotonic()
            if options.minutes and since - START > 60 * options.minutes:
                break
        if options.checkpoint and done % options.save_every == 0:
            save_state(options.checkpoint, plan, state)
        if options.exam_every and done % options.exam_every == 0:
            _examine(state, log)
            since = time.monotonic()
    return state


def _log_losses(
    trainer: Trainer,
    step: int,
    measured: list[tuple[int, Losses]],
    seconds: float,
    log: Log,
) -> None:
    measured = jax.device_get(measured)
    record: dict[str, object] = {"step": step, "steps per second": len(measured) / seconds}
    text = f"step {step}"
    for k, bucket in enumerate(trainer.plan.buckets):
        mine = [loss for which, loss in measured if which == k]
        if mine:
            mean = Losses(*np.mean(mine, axis=0).tolist())
            record[f"up to {bucket.nodes[1]} nodes"] = mean._asdict()
            text += f"  N<={bucket.nodes[1]} {mean.mean:.4f} ({mean.base:.3f})"
    reports = jax.device_get(trainer.reports)
    trainer.reports.clear()
    if reports:
        record["mended"] = np.sum(
            [(r.not_finite, r.not_connected) for r in reports], axis=0
        ).tolist()
        text += f"  mended {record['mended']}"
    log(f"{text}  {len(measured) / seconds:.1f} steps/s", **record)
    if not np.isfinite([loss.heads for _, loss in measured]).all():
        sys.exit("The loss is not finite; the last checkpoint is older.")


def _examine(state: State, log: Log) -> None:
    marks = scores(state.average, EXAM, EXAM_GRAPHS, (20, 20))
    kinds = {name.split(", ", 1)[1] for name in marks}
    for kind in sorted(kinds):
        row = {
            name.split(",")[0]: mark for name, mark in marks.items() if name.endswith(", " + kind)
        }
        text = "  ".join(f"{name} {mark:.2f}" for name, mark in row.items())
        log(f"exam, {kind}: {text}", step=int(state.step), exam=kind, **row)


def _compare(trainer: Trainer, state: State, log: Log) -> None:
    """Compare with the base rate on fresh draws of the smallest graphs; exit if it is better."""
    plan, bucket = trainer.plan, trainer.plan.buckets[0]
    uniform = np.ones((len(plan.cells), plan.shape.heads), np.float32)
    fresh = jax.tree.map(lambda x: x[:512], trainer.fresh(0))
    loss = jax.device_get(eqx.filter_jit(losses)(state.average, fresh, uniform))
    log(
        f"fresh draws of up to {bucket.nodes[1]} nodes, NLL over size: {loss.mean:.4f}; of the "
        f"base rate {loss.base:.4f}; of single heads {loss.heads:.4f}",
        fresh={key: float(value) for key, value in loss._asdict().items()},
    )
    if int(state.step) >= plan.steps and not loss.mean < loss.base:
        sys.exit("The network is finished, and no better than the base rate.")


def _plan(options: argparse.Namespace) -> Plan:
    plan = SMALL if options.small else with_half(Plan(world=options.world, unroll=options.unroll))
    changes = {"steps": options.steps, "seed": options.seed, "rate": options.rate}
    if options.nodes:
        changes["buckets"] = (Bucket(tuple(options.nodes), options.batch),)
    return replace(plan, **{key: value for key, value in changes.items() if value is not None})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m edgebelief.amortise",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, help="write the weights there, in half precision")
    add("--ship", type=Path, help="no training: make this file the weights of the package")
    add("--alarm", action="store_true", help="no training: make the reference of the alarm again")
    add("--checkpoint", type=Path, help="write everything that is needed to continue there")
    add("--resume", type=Path, help="continue from this checkpoint")
    add("--start", type=Path, help="begin with these weights, and the first step")
    add("--nodes", type=int, nargs=2, help="only graphs of so many nodes, from and to")
    add("--batch", type=int, default=640, help="with --nodes: the number of graphs of a step")
    add("--log", type=Path, help="append records to this file, a JSON object a line")
    add("--minutes", type=float, help="stop after so many minutes, compilation included")
    add("--steps", type=int, help="the number of steps of the whole training")
    add("--world", choices=list(WORLDS), default="everything", help="what to train on")
    add("--seed", type=int)
    add("--rate", type=float, help="the highest learning rate")
    add("--unroll", action="store_true", help="compile every layer on its own")
    add("--small", action="store_true", help="a small network on small graphs")
    add("--every", type=int, default=200, help="steps between lines of the log")
    add("--save-every", type=int, default=5000, help="steps between checkpoints")
    add("--exam-every", type=int, default=10000, help="steps between exams; 0 for none")
    return parser


if __name__ == "__main__":
    main()
