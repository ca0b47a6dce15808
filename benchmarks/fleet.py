"""Ten thousand graphs through `edgebelief.fleet`: time, memory, kills, a Dask cluster.

    python benchmarks/fleet.py                  # all, in some twenty minutes on two cores
    python benchmarks/fleet.py --graphs 500 --kills 3 --dask 100

The folder has graphs of 8 to 40 nodes, as .npy files. `edgebelief predict MODEL FOLDER` runs as a
program of its own, and its resident memory is looked at from outside, every tenth of a second.
Prints one JSON object a measurement.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from edgebelief import GraphLearner
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.fleet import Predict, results, run

SMALLEST, LARGEST = 8, 40


def make_model(path: Path) -> None:
    data = GraphDataset.sample(0, RandomGeometric(0.4), n_graphs=20, n_nodes=20, n_signals=100)
    GraphLearner(readout="affine").fit(data).save(path)


def make_graphs(folder: Path, n_graphs: int, smallest: int = SMALLEST) -> None:
    """Write squared distances of points in the unit square, on the scale of the model's."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for k in range(n_graphs):
        points = rng.uniform(size=(int(rng.integers(smallest, LARGEST + 1)), 2))
        distances = 20 * np.square(points[:, None] - points).sum(-1)
        np.save(folder / f"subject-{k:05d}.npy", distances)


def resident(pid: int) -> float:
    """Return the resident memory of a process in MB; 0 when it has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def family(pid: int) -> list[int]:
    """Return the descendants of a process."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [p for child in children for p in (int(child), *family(int(child)))]


def start(model: Path, folder: Path, out: Path, jobs: int) -> subprocess.Popen:
    words = ["predict", model, folder, "--out", out, "--jobs", jobs, "--json"]
    command = [sys.executable, "-m", "edgebelief", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def whole(model: Path, folder: Path, out: Path, jobs: int) -> dict:
    """Run the command to its end, and look at its memory and its workers'."""
    begun = time.perf_counter()
    process = start(model, folder, out, jobs)
    parent = workers = 0.0
    while process.poll() is None:
        parent = max(parent, resident(process.pid))
        workers = max([workers, *map(resident, family(process.pid))])
        time.sleep(0.1)
    answer = json.load(process.stdout)
    return {
        "seconds": round(time.perf_counter() - begun, 1),
        "parent_MB": round(parent),
        "largest_worker_MB": round(workers),
        "exit_code": process.returncode,
        "done": answer["done"],
        "had_results": answer["had_results"],
        "failed": len(answer["failed"]),
    }


def kills(model: Path, folder: Path, out: Path, jobs: int, n_kills: int, longest: float) -> dict:
    """Kill the command and its workers at random times, then let it end."""
    rng = random.Random(0)
    after = []
    for _ in range(n_kills):
        process = start(model, folder, out, jobs)
        time.sleep(rng.uniform(0.2, longest))
        for pid in [process.pid, *family(process.pid)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()
        after.append(len(list((out / "tables").glob("[!.]*"))) if out.exists() else 0)
    last = whole(model, folder, out, jobs)
    return {"kills": n_kills, "tables_after_each": after, "last_run": last}


def equal(folder: Path, out: Path, other: Path | None) -> dict:
    """Count what each graph has got, and compare two folders of results bit for bit."""
    there = Counter(result.file for result in results(out))
    wanted = {path.name for path in folder.iterdir()}
    answer = {
        "graphs": len(wanted),
        "lost": len(wanted - set(there)),
        "done_twice": sum(n > 1 for n in there.values()),
    }
    if other is not None:
        tables = {result.file: result.table for result in results(other)}
        answer["unequal"] = sum(not r.table.equals(tables[r.file]) for r in results(out))
    return answer


def dask(model: Path, folder: Path, work: Path, workers: int) -> dict:
    """Predict through a real local cluster, and in this process alone."""
    from dask.distributed import Client, LocalCluster

    serial = Predict(model=model, inputs=folder, out=work / "serial")
    begun = time.perf_counter()
    run(serial, n_jobs=1)
    alone = time.perf_counter() - begun
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        begun = time.perf_counter()
        job = Predict(model=model, inputs=folder, out=work / "dask")
        outcome = run(job, client.get_executor(), n_jobs=workers)
        together = time.perf_counter() - begun
    return {
        "workers": workers,
        "seconds_serial": round(alone, 1),
        "seconds_dask": round(together, 1),
        "outcome": str(outcome),
        **equal(folder, work / "dask", work / "serial"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graphs", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--longest", type=float, default=60.0, help="seconds until a kill, at most")
    parser.add_argument("--dask", type=int, default=1_000, help="graphs for the cluster; 0: none")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        model, folder = work / "model.eb", work / "graphs"
        make_model(model)
        make_graphs(folder, chosen.graphs)
        say("one run", whole(model, folder, work / "whole", chosen.jobs))
        say("the same again", whole(model, folder, work / "whole", chosen.jobs))
        if chosen.kills:
            killed = work / "killed"
            say("kills", kills(model, folder, killed, chosen.jobs, chosen.kills, chosen.longest))
            say("after the kills", equal(folder, killed, work / "whole"))
        if chosen.dask:
            make_graphs(work / "fewer", chosen.dask, smallest=LARGEST - 4)
            say("dask", dask(model, work / "fewer", work, chosen.jobs))


def say(what: str, figures: dict) -> None:
    print(json.dumps({"what": what, **figures}), flush=True)


if __name__ == "__main__":
    main()
