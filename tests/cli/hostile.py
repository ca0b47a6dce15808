"""Hostile inputs for every command, from a seed, and what counts as a lapse.

    python tests/cli/hostile.py --seed 1 --count 1000

makes a folder of sound files, then cases: a command line in which a file is damaged, replaced or
missing, or an option has an absurd value. Each runs in a process of its own, forked from one that
has the imports done (JAX starts no thread before it computes, so that a fork is safe).

A lapse is an exit code other than 0, 2, 3, 4 and 5 (1 is "a mistake in edgebelief"), a traceback, a
line of over 500 characters, over a minute, over 1.5 GB, acceptance of what is certainly wrong, or
a file that a refused command leaves behind. What takes over a minute beside others, which a busy
machine does to anything, is run once more at the end, alone: the second run counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

SECONDS, BYTES, WIDTH = 60, 1.5 * 2**30, 500
N_NODES, N_SIGNALS = 8, 40
# The first nodes, which a list of nodes names.
WANTED = 6
NAMES = [f"node{i}" for i in range(N_NODES)]


@dataclass(frozen=True)
class Case:
    """A command line to run in a folder; `wrong` if it must be refused."""

    name: str
    arguments: tuple[str, ...]
    wrong: bool


@dataclass(frozen=True)
class Ran:
    """What became of a case."""

    case: Case
    code: int
    seconds: float
    bytes: float
    out: str
    err: str
    left: tuple[str, ...]

    @property
    def is_late(self) -> bool:
        return self.seconds > SECONDS

    @property
    def lapses(self) -> list[str]:
        said = f"{self.out}\n{self.err}"
        longest = max(map(len, [*_lines(self.out), *self.err.split("\n")]))
        refused = self.code in (2, 3, 5)
        checks = {
            f"exit {self.code}": self.code not in (0, 2, 3, 4, 5),
            "traceback": "Traceback" in said,
            f"a line of {longest} characters": longest > WIDTH,
            f"{self.seconds:.0f} s": self.is_late,
            f"{self.bytes / 2**30:.1f} GB": self.bytes > BYTES,
            "accepted": self.case.wrong and not refused,
            f"left {self.left[:3]}": refused and bool(self.left),
            "no reason": refused and "error: " not in self.err,
        }
        return [name for name, lapsed in checks.items() if lapsed]


def _lines(out: str) -> list[str]:
    """Return what is said; of an error in JSON its text, without the escapes that JSON needs."""
    try:
        return [json.loads(out)["error"]]
    except (ValueError, KeyError, TypeError):
        return out.split("\n")


# Commands over sound files; "@role" is the file of that role.
COMMANDS = {
    "learn": "learn @signals --degree 2 --out out.csv",
    "learn-parquet": "learn @parquet --degree 2 --out out.npz",
    "learn-distances": "learn @distances --metric precomputed --density 0.4 --out out.graphml",
    "elicit": "elicit @signals --metric sqeuclidean --density 0.2 0.7 --out out.json",
    "fit": "fit @signals --metric correlation -l @labels --depth 5 --readout affine --out out.eb",
    "fit-json": "fit @signals --metric correlation -l @labels --depth 5 --readout affine "
    "--out out.eb --json",
    "fit-graphml": "fit @signals --metric sqeuclidean -l @graphml --depth 5 --readout affine "
    "--out out.eb",
    "fit-groups": "fit @signals --metric correlation --groups @groups --depth 5 --readout affine "
    "--out out.eb",
    "fit-prior": "fit @distances --labels @labels --prior @prior --depth 5 --readout affine "
    "--out out.eb",
    "fit-dataset": "fit @dataset --depth 5 --evidence none --out out.eb",
    "fit-nodes": "fit @signals --metric correlation --labels @labels --nodes @nodes --depth 5 "
    "--readout affine --out out.eb",
    "fit-covariates": "fit @signals --metric correlation --labels @labels --readout additive "
    "--covariates @covariates --evidence none --depth 5 --out out.eb",
    "fit-evidence": "fit @signals --metric correlation --labels @labels --readout additive "
    "--evidence profile,correlation --depth 5 --out out.eb",
    "predict": "predict @model @signals --out out.csv",
    "check": "check @dataset --depth 5 --draws 20",
    "score": "score @model @signals --labels @labels",
    "explain": "explain @model @signals --source node0 --target node1",
    "report": "report @model @signals --labels @labels --out out.html",
    "info": "info @dataset",
    "info-model": "info @model",
    "info-table": "info @signals",
    "info-prior": "info @prior",
}
FILES = {
    **{"signals": "signals.csv", "parquet": "signals.parquet", "distances": "distances.csv"},
    **{"labels": "labels.csv", "graphml": "labels.graphml", "groups": "groups.csv"},
    **{"covariates": "covariates.csv", "nodes": "nodes.txt", "prior": "prior.json"},
    **{"dataset": "data.npz", "model": "model.eb"},
}
TABLES = ("signals", "distances", "labels", "groups", "covariates")


def make_files(folder: Path) -> None:
    """Write the sound files; the model by the command itself, in a process of its own."""
    import networkx as nx

    from edgebelief.data import GraphDataset, save_dataset

    rng = np.random.default_rng(0)
    x = rng.normal(size=(N_SIGNALS, N_NODES))
    x[:, 1::2] += x[:, ::2]
    signals = pd.DataFrame(x, columns=NAMES).round(4)
    signals.to_csv(folder / "signals.csv", index=False)
    signals.to_parquet(folder / "signals.parquet")
    e = 1 - np.abs(np.corrcoef(x.T)).round(4)
    pd.DataFrame(e, NAMES, NAMES).to_csv(folder / "distances.csv")
    labels = np.zeros((N_NODES, N_NODES), int)
    for i in range(0, N_NODES, 2):
        labels[i, i + 1] = labels[i + 1, i] = 1
    pd.DataFrame(labels, NAMES, NAMES).to_csv(folder / "labels.csv")
    graph = nx.relabel_nodes(nx.from_numpy_array(labels), dict(enumerate(NAMES)))
    nx.write_graphml(graph, folder / "labels.graphml")
    groups = pd.DataFrame({"node": NAMES, "group": [i // 2 for i in range(N_NODES)]})
    groups.to_csv(folder / "groups.csv", index=False)
    covariates = pd.DataFrame({"node": NAMES, "size": rng.normal(size=N_NODES).round(3)})
    covariates.to_csv(folder / "covariates.csv", index=False)
    (folder / "nodes.txt").write_text("\n".join(NAMES[:WANTED]) + "\n")
    medians = {"theta": 1.0, "delta": 100.0, "b": 1.0}
    prior = {k: {"kind": "lognormal", "median": m, "log_sd": 1.0} for k, m in medians.items()}
    (folder / "prior.json").write_text(json.dumps(prior))
    upper = np.triu_indices(N_NODES, 1)
    save_dataset(folder / "data.npz", GraphDataset([e[upper]], [labels[upper]], [NAMES]))
    command = tuple(word.lstrip("@") for word in COMMANDS["fit"].split())
    command = tuple(FILES.get(word, word).replace("out.eb", "model.eb") for word in command)
    # To the end, for the model is put in the folder after the generator has yielded.
    [ran] = list(run_all([Case("the model", command, wrong=False)], folder, jobs=1))
    if ran.code not in (0, 4):
        raise RuntimeError("the sound files cannot be fitted")


# Damage to the bytes of any file; whether what comes out is certainly wrong.
def _truncated(rng, content):
    return content[: int(rng.integers(0, len(content)))]


def _flipped(rng, content):
    changed = bytearray(content)
    for place in rng.integers(0, len(changed), int(rng.integers(1, 20))):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _stirred(rng, content):
    first, last = sorted(rng.integers(0, len(content), 2))
    return content[:first] + rng.bytes(int(rng.integers(1, 2000))) + content[last:]


DAMAGE: dict[str, tuple[Callable, bool]] = {
    "truncated": (_truncated, False),
    "flipped": (_flipped, False),
    "stirred": (_stirred, False),
    "twice": (lambda rng, content: content * 2, False),
    "empty": (lambda rng, content: b"", True),
    "blank": (lambda rng, content: b"\n \n\t\n", True),
    "noise": (lambda rng, content: rng.bytes(3000), True),
    "zeros": (lambda rng, content: bytes(4000), True),
    "nested": (lambda rng, content: b"[" * 200_000, True),
    "nested-objects": (lambda rng, content: b'{"a":' * 100_000 + b"1" + b"}" * 100_000, True),
    "pickle": (lambda rng, content: b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00K*.", True),
    "long-line": (lambda rng, content: b"x" * 300_000, True),
    "utf-16": (lambda rng, content: b"\xff\xfe" + content, False),
    "utf-16-odd": (lambda rng, content: b"\xff\xfe\x00", True),
    "html": (lambda rng, content: b"<!DOCTYPE html><html><body>404</body></html>", True),
    "huge-number": (lambda rng, content: b"1" * 100_000, True),
}
# Cells of tables; "wrong" in signals and distances.
CELLS = {
    **{"abc": True, "inf": True, "-Infinity": True, "1e400": True, "": True, "NaN": True},
    **{"x" * 5000: True, "9" * 5000: True, "=cmd()": True, "1;2": True, "--": True, "1+2j": True},
    **{"\x1b[31mred": True, "\u202eabc": True, "#REF!": True, "1.2.3": True, "0x1F": True},
    **{"1e-400": False, "1_000": False, "\u0663": False, "true": False, "'5": False, " 5 ": False},
    **{"1e300": False, "-1e300": False, "1e-300": False, "\u22125": False, "5%": True},
}
NODE_NAMES = [
    *("", " ", "node1", "NODE1", "x" * 100_000, "\x00", "\x1b]0;title\x07", "\u202egnp", "=1+1"),
    *("e\u0301", "nan", "None", "source", "<script>alert(1)</script>", "../../x", "a,b", 'a"b'),
    *("\ud7ff\u0300" * 200, "0", "-1", "1e5", "node", "\ufeffnode1", "%s%n", "{0.__class__}"),
]


def _with_cell(rng, content: bytes, cell: str, n_columns: int | None = None) -> bytes:
    """Exchange a cell, of the first columns if their number is given."""
    rows = [line.split(",") for line in content.decode().strip().split("\n")]
    row = int(rng.integers(1, len(rows)))
    column = int(rng.integers(1, n_columns or len(rows[0])))
    rows[row][column] = cell
    return ("\n".join(",".join(row) for row in rows) + "\n").encode("utf-8", "surrogatepass")


def _with_name(rng, content: bytes, name: str) -> bytes:
    lines = content.decode().split("\n")
    header = lines[0].split(",")
    header[int(rng.integers(len(header)))] = name
    return "\n".join([",".join(header), *lines[1:]]).encode("utf-8", "surrogatepass")


# Absurd values: (command, option, values); each is certainly wrong.
VALUES = [
    ("learn", "--degree", ("-1", "0", "nan", "inf", "1e9", "x")),
    ("learn", "--theta", ("-1", "0", "nan", "inf", "1e100", "1e300", "1e-320")),
    ("learn", "--density", ("-1", "0", "1.5", "nan")),
    ("learn", "--bootstrap", ("-1", "1000000000000")),
    ("learn", "--support", ("x", "")),
    ("learn", "--neighbours", ("0", "-1", "x", "1e9")),
    ("elicit", "--density", ("0.7 0.2", "-1 0.5", "0.2 3", "nan nan", "0.5 0.5", "a b")),
    ("elicit", "--mass", ("0", "1", "1.5", "nan", "-1")),
    ("elicit", "--max-components", ("0", "-1", "x")),
    ("fit", "--support", ("x", "")),
    ("fit", "--neighbours", ("0", "-1", "x")),
    ("fit", "--depth", ("0", "-1", "2000000", "99999999999999999999", "1.5", "x")),
    ("fit", "--scale", ("0", "-1", "inf", "nan", "1e300", "x")),
    ("fit", "--density", ("0.7 0.2", "nan nan", "2 3")),
    ("fit", "--prior", ("nothing", "nowhere.json", "signals.csv", ".")),
    ("fit", "--network", ("x", "")),
    ("fit", "--readout", ("x", "")),
    ("fit", "--evidence", ("x", "", ",", "profile,x", "profile,profile", "forest")),
    ("fit", "--inference", ("x", "")),
    ("fit", "--metric", ("x", "precomputed", "log-euclidean-x")),
    ("fit", "--seed", ("-1", "99999999999999999999", "x")),
    ("fit", "--missing", ("x",)),
    ("predict", "--level", ("-1", "2", "nan", "x")),
    ("predict", "--fdr", ("-1", "2", "nan")),
    ("predict", "--top-k", ("-1", "x")),
    ("predict", "--cost", ("-1 1", "nan 1", "0 0", "inf 1")),
    ("predict", "--threshold", ("-1", "2", "nan")),
    ("check", "--draws", ("0", "-1", "100000000000", "x")),
    ("check", "--statistic", ("x",)),
    ("learn", "--preprocess", ("x", "")),
    ("fit", "--transform", ("x", "")),
    ("learn", "--transform", ("x", "")),
    ("score", "--cv", ("x", "")),
    ("report", "--cv", ("x", "", "graphs")),  # there is one graph
    ("explain", "--source", ("nobody", "x" * 50_000, "")),
    ("explain", "--graph", ("7", "-1", "99999999999999999999")),
]
# Values for any numeric option, which may be accepted or not.
NUMBERS = [
    *("0", "-1", "nan", "inf", "-inf", "1e300", "1e-300", "0.5", "1e-9", "99999999999999999999"),
    *("1" + "0" * 400, "-0.0", "1e5", "0x10", "1_0", "\u0663", " 7", ""),
]
NUMERIC = [
    *[("learn", option) for option in ("--degree", "--density", "--theta", "--bootstrap")],
    *[("elicit", option) for option in ("--mass", "--max-components", "--density")],
    *[("fit", option) for option in ("--depth", "--scale", "--seed", "--density")],
    *[("predict", option) for option in ("--level", "--fdr", "--top-k", "--cost", "--threshold")],
    *[("check", option) for option in ("--draws", "--seed", "--depth")],
    *[("explain", "--graph"), ("fit-dataset", "--scale"), ("learn", "--seed")],
]
PAIRS = ("--cost", "elicit --density", "fit --density")
# Fields of a prior in a file, which may be any of these numbers.
MARGINALS = {"lognormal": ("median", "log_sd"), "normal": ("mean", "sd"), "halfnormal": ("scale",),
         "loguniform": ("low", "high"), "fixed": ("value",)}  # fmt: skip
EXTREMES = [0, -1, 1e300, -1e300, 1e-300, 1e-12, 1e12, 10**400, True, None, "1", [1.0], {}]
# What `simulate` must refuse.
SIMULATIONS = [
    *("--nodes 0", "--nodes 1", "--nodes -5", "--nodes 1000000000", "--nodes 99999999999999999999"),
    *("--signals 0", "--signals -1", "--signals 1000000000000", "--graphs 0"),
    *("--graphs 1000000000000", "--density 2", "--density -1", "--density nan", "--density 1e-300"),
    *("--nodes 100000 --signals 100000", "--ensemble x", "--nodes 3.5", "--seed -1"),
]
# Paths that are no proper file, as input.
PATHS = ["folder", "nowhere.csv", "loop.csv", "fifo.csv", "/dev/zero", "/dev/null", "", "x" * 5000]
# Targets that must not be written.
TARGETS = ["folder", "signals.csv", "loop.csv", "nowhere/out.csv", "out.exe", "out", "x" * 5000]


# How often chance picks which kind of attack.
KINDS = {
    **{"damage": 0.26, "cell": 0.16, "name": 0.09, "value": 0.1, "path": 0.05, "target": 0.03},
    **{"simulate": 0.03, "number": 0.1, "prior": 0.04, "array": 0.07, "setting": 0.07},
}


def cases(seed: int, count: int, folder: Path) -> Iterator[Case]:
    """Make the cases: each known attack once, then chance until there are `count`."""
    rng = np.random.default_rng(seed)
    number = 0
    for name, arguments, wrong in known(folder):
        number += 1
        yield Case(name, arguments, wrong)
    while number < count:
        kind = rng.choice(list(KINDS), p=list(KINDS.values()))
        name, arguments, wrong = globals()[f"_by_{kind}"](rng, folder, number)
        number += 1
        yield Case(f"{number}: {name}", arguments, wrong)


def _command(name: str, **replaced: str) -> tuple[str, ...]:
    """Return the arguments of a command, with other files in some roles."""
    files = {**FILES, **replaced}
    words = COMMANDS[name].split()
    return tuple(files[word[1:]] if word.startswith("@") else word for word in words)


def _roles(name: str) -> list[str]:
    return [word[1:] for word in COMMANDS[name].split() if word.startswith("@")]


def _by_damage(rng, folder, number):
    command = str(rng.choice(list(COMMANDS)))
    role = str(rng.choice(_roles(command)))
    kind = str(rng.choice(list(DAMAGE)))
    change, wrong = DAMAGE[kind]
    source = folder / FILES[role]
    path = f"bad{number}{source.suffix}"
    (folder / path).write_bytes(change(rng, source.read_bytes()))
    # `info` describes any file that can be read, and a list of names may be any text.
    wrong &= role != "nodes" and not command.startswith("info")
    return f"{command}: {role} {kind}", _command(command, **{role: path}), wrong


def _by_cell(rng, folder, number):
    command = str(rng.choice([c for c in COMMANDS if set(_roles(c)) & set(TABLES)]))
    role = str(rng.choice([role for role in _roles(command) if role in TABLES]))
    cell = str(rng.choice(list(CELLS)))
    path = f"bad{number}.csv"
    content = (folder / FILES[role]).read_bytes()
    # Numbers of nodes that are not wanted are not looked at.
    n_columns = WANTED if (command, role) == ("fit-nodes", "signals") else None
    (folder / path).write_bytes(_with_cell(rng, content, cell, n_columns))
    wrong = CELLS[cell] and role in ("signals", "distances") and not command.startswith("info")
    # The diagonal of distances says nothing, and is not looked at: at chance one in eight.
    wrong &= role == "signals"
    return f"{command}: {role} cell {cell[:20]!r}", _command(command, **{role: path}), wrong


def _by_name(rng, folder, number):
    command = str(rng.choice([c for c in COMMANDS if set(_roles(c)) & set(TABLES)]))
    role = str(rng.choice([role for role in _roles(command) if role in TABLES]))
    name = str(rng.choice(NODE_NAMES))
    path = f"bad{number}.csv"
    (folder / path).write_bytes(_with_name(rng, (folder / FILES[role]).read_bytes(), name))
    return f"{command}: {role} name {name[:20]!r}", _command(command, **{role: path}), False


def _by_value(rng, folder, number):
    command, option, values = VALUES[int(rng.integers(len(VALUES)))]
    value = str(rng.choice(values))
    words = list(_command(command))
    if option in words:
        place = words.index(option)
        count = 2 if option == "--density" and command == "elicit" else 1
        del words[place : place + 1 + count]
    if option in ("--theta", "--density") and command == "learn":
        words.remove("--degree")
        words.remove("2")
    parts = value.split(" ") if option in ("--density", "--cost") else [value]
    return f"{command} {option} {value[:20]}", (*words, option, *parts), True


def _by_number(rng, folder, number):
    command, option = NUMERIC[int(rng.integers(len(NUMERIC)))]
    words = list(_command(command))
    two = option in PAIRS or f"{command} {option}" in PAIRS
    if option in words:
        place = words.index(option)
        del words[place : place + (3 if two else 2)]
    if option in ("--theta", "--density") and command == "learn":
        words.remove("--degree")
        words.remove("2")
    values = [str(rng.choice(NUMBERS)) for _ in range(2 if two else 1)]
    return f"{command} {option} {' '.join(values)[:40]}", (*words, option, *values), False


def _by_prior(rng, folder, number):
    prior = json.loads((folder / "prior.json").read_text())
    kind = str(rng.choice(list(MARGINALS)))
    name = str(rng.choice(list(prior)))
    extreme = {field: EXTREMES[int(rng.integers(len(EXTREMES)))] for field in MARGINALS[kind]}
    prior[name] = {"kind": kind, **extreme}
    path = f"bad{number}.json"
    (folder / path).write_text(json.dumps(prior))
    said = f"{kind} {str(extreme)[:40]}"
    return f"the prior of {name}: {said}", _command("fit-prior", prior=path), False


# What an array of a sound file becomes; no damage to its bytes gets so far.
ARRAYS: dict[str, Callable] = {
    **{f"one {x:g}": lambda a, x=x: _with_one(a, x) for x in (np.nan, np.inf, -1, 1e300, 1e-300)},
    **{f"all {x:g}": lambda a, x=x: np.full(a.shape, x) for x in (np.nan, 0, 1, -1, 1e300, 1e19)},
    "none": lambda a: a[:0],
    "twice": lambda a: np.concatenate([a, a]),
    "a row": lambda a: a[None],
    "a number": lambda a: np.array(3),
    "texts": lambda a: np.array(["x" * 1000] * len(a)),
    "complex": lambda a: np.ones(a.shape, complex),
    "booleans": lambda a: np.ones(a.shape, bool),
    "halves": lambda a: np.ones(a.shape, np.float16),
    "big-endian": lambda a: np.ones(a.shape, ">f8"),
    "records": lambda a: np.zeros(a.shape, [("a", "f8"), ("b", "i4")]),
    "days": lambda a: np.zeros(a.shape, "datetime64[D]"),
    "large integers": lambda a: np.full(a.shape, 2**63, np.uint64),
}


def _with_one(array: np.ndarray, value: float) -> np.ndarray:
    changed = np.zeros(array.shape) if array.dtype.kind in "US" else array.astype(float)
    changed.flat[0] = value
    return changed


def _by_array(rng, folder, number):
    with np.load(folder / "data.npz") as file:
        arrays = dict(file)
    name = str(rng.choice([name for name, array in arrays.items() if array.ndim]))
    change = str(rng.choice(list(ARRAYS)))
    arrays[name] = ARRAYS[change](arrays[name])
    path = f"bad{number}.npz"
    np.savez(folder / path, **arrays)
    command = str(rng.choice(["fit-dataset", "check", "info"]))
    return f"{command}: {name} becomes {change}", _command(command, dataset=path), False


def _by_setting(rng, folder, number):
    """Change one setting of a model, whose sums are right: as somebody could who means harm."""
    from edgebelief.persist import modelfile

    kind, settings, arrays = modelfile.read(folder / "model.eb")
    path = f"bad{number}.eb"
    inside, said = settings, []
    while True:
        key = rng.choice(list(inside) if isinstance(inside, dict) else len(inside))
        key = str(key) if isinstance(inside, dict) else int(key)
        said.append(str(key))
        if not (isinstance(inside[key], dict | list) and inside[key]):
            break
        inside = inside[key]
    value = [x for x in EXTREMES if x != 10**400][int(rng.integers(len(EXTREMES) - 1))]
    inside[key] = value
    modelfile.write(folder / path, kind, settings, arrays)
    command = str(rng.choice(["predict", "score", "explain", "report", "info-model"]))
    name = f"{command}: {'.'.join(said)} becomes {str(value)[:20]}"
    return name, _command(command, model=path), False


def _by_path(rng, folder, number):
    command = str(rng.choice(list(COMMANDS)))
    role = str(rng.choice(_roles(command)))
    path = str(rng.choice(PATHS))
    return f"{command}: {role} is {path[:20]!r}", _command(command, **{role: path}), True


def _by_target(rng, folder, number):
    command = str(rng.choice([c for c in COMMANDS if "--out" in COMMANDS[c]]))
    target = str(rng.choice(TARGETS))
    words = list(_command(command))
    words[words.index("--out") + 1] = target
    return f"{command} --out {target[:20]!r}", tuple(words), True


def _by_simulate(rng, folder, number):
    options = str(rng.choice(SIMULATIONS))
    out = str(rng.choice(["out.npz", "out.csv"]))
    if out == "out.csv" and "--graphs" in options:
        out = "out.npz"
    return f"simulate {options}", ("simulate", "--out", out, *options.split()), True


def known(folder: Path) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """Make the attacks that once succeeded."""
    for name, make in BOMBS.items():
        path, command, role = make(folder)
        # What pandas adds to a Parquet file is not needed to read it.
        wrong = name != "Parquet metadata"
        yield f"bomb: {name}", _command(command, **{role: path}), wrong
    for name, role in (("fit-prior", "prior"), ("fit-nodes", "nodes"), ("info-prior", "prior")):
        path = "deep.json"
        (folder / path).write_bytes(b"[" * 100_000 + b"]" * 100_000)
        yield f"{name}: deep JSON", _command(name, **{role: path}), name != "info-prior"
    for median in (1e300, 1e-300):
        content = json.loads((folder / "prior.json").read_text())
        content["theta"]["median"] = median
        path = f"prior{median:g}.json"
        (folder / path).write_text(json.dumps(content))
        yield f"a prior of median {median:g}", _command("fit-prior", prior=path), True
    graphml = (folder / "labels.graphml").read_text()
    (folder / "strangers.graphml").write_text(graphml.replace('target="node1"', 'target="who"'))
    yield "GraphML of strangers", _command("fit-graphml", graphml="strangers.graphml"), True
    for option, value in (("--depth", "0"), ("--depth", "2000000")):
        words = list(_command("fit"))
        words[words.index(option) + 1] = value
        yield f"{option} {value}", tuple(words), True
    for options in SIMULATIONS:
        yield f"simulate {options}", ("simulate", "--out", "out.npz", *options.split()), True
    for role, command in (("signals", "learn"), ("dataset", "fit-dataset"), ("model", "predict")):
        suffix = Path(FILES[role]).suffix
        yield f"a loop as {role}", _command(command, **{role: f"loop{suffix}"}), True
    for suffix, command in ((".csv", "learn"), (".eb", "fit"), (".html", "report")):
        words = list(_command(command))
        words[words.index("--out") + 1] = f"loop{suffix}"
        yield f"a loop to write to, {suffix}", tuple(words), True


def _npz_bomb(folder: Path, member: str) -> str:
    """Write a data set with a member of 3 GB of zeros in 3 MB."""
    path = folder / f"bomb-{member}.npz"
    if member == "unused":
        shutil.copy(folder / "data.npz", path)
    mode = "a" if member == "unused" else "w"
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (402653184,), }"
    header += b" " * (117 - len(header)) + b"\n"
    with zipfile.ZipFile(path, mode, zipfile.ZIP_DEFLATED) as archive:
        if member != "unused":
            with zipfile.ZipFile(folder / "data.npz") as sound:
                for name in sound.namelist():
                    if name != f"{member}.npy":
                        archive.writestr(name, sound.read(name))
        with archive.open(f"{member}.npy", "w", force_zip64=True) as file:
            file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
            for _ in range(3 * 2**5):
                file.write(bytes(2**25))
    return path.name


def _parquet_bomb(folder: Path) -> str:
    """Write 100 columns of 20 million equal cells, in a few KB."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Of the system, which gets it back: what the parent keeps would be counted for every case.
    pa.set_memory_pool(pa.system_memory_pool())
    path = folder / "bomb.parquet"
    piece = pa.table({f"c{i}": pa.array(np.zeros(10_000)) for i in range(100)})
    with pq.ParquetWriter(path, piece.schema, compression="zstd") as writer:
        column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10**6, np.int8)), [0.0])
        big = pa.table({f"c{i}": column.cast(pa.float64()) for i in range(100)})
        for _ in range(20):
            writer.write_table(big)
    return path.name


def _wide(folder: Path, n_columns: int, name: str) -> str:
    path = folder / name
    header = ",".join(f"g{i}" for i in range(n_columns))
    rows = [",".join(["1.5"] * n_columns) for _ in range(3)]
    path.write_text("\n".join([header, *rows]) + "\n")
    return path.name


def _damaged_metadata(folder: Path) -> str:
    import pyarrow.parquet as pq

    path = folder / "metadata.parquet"
    table = pq.read_table(folder / "signals.parquet")
    table = table.replace_schema_metadata({b"pandas": b'{"index_columns": 5, "columns": [3]}'})
    pq.write_table(table, path)
    return path.name


def _laughs(folder: Path) -> str:
    path = folder / "laughs.graphml"
    entities = ['<!ENTITY a0 "ha">']
    entities += [f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12)]
    path.write_text(
        f'<?xml version="1.0"?><!DOCTYPE g [{"".join(entities)}]>'
        f'<graphml><graph edgedefault="undirected"><node id="&a11;"/></graph></graphml>'
    )
    return path.name


def _wide_covariates(folder: Path) -> str:
    path = folder / "wide-covariates.csv"
    columns = {f"c{i}": np.arange(N_NODES) for i in range(20_000)}
    pd.DataFrame({"node": NAMES, **columns}).to_csv(path, index=False)
    return path.name


BOMBS: dict[str, Callable[[Path], tuple[str, str, str]]] = {
    "npz, e": lambda folder: (_npz_bomb(folder, "e"), "fit-dataset", "dataset"),
    "npz, names": lambda folder: (_npz_bomb(folder, "names"), "fit-dataset", "dataset"),
    "Parquet": lambda folder: (_parquet_bomb(folder), "learn-parquet", "parquet"),
    "Parquet metadata": lambda folder: (_damaged_metadata(folder), "learn-parquet", "parquet"),
    "wide": lambda folder: (_wide(folder, 100_000, "wide.csv"), "learn", "signals"),
    "wide covariates": lambda f: (_wide_covariates(f), "fit-covariates", "covariates"),
    "a billion laughs": lambda folder: (_laughs(folder), "fit-graphml", "graphml"),
}


def traps(folder: Path) -> None:
    """Put what is no proper file beside the sound ones."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "fifo.csv")
    for suffix in (".csv", ".eb", ".html", ".npz"):
        (folder / f"loop{suffix}").symlink_to(folder / f"loop{suffix}")


def run_all(todo: Iterator[Case] | list[Case], folder: Path, jobs: int = 2) -> Iterator[Ran]:
    """Run the cases, a few at once, each in a folder of links of its own."""
    import edgebelief.cli.commands  # noqa: F401  so that no child has to

    running: dict[int, tuple[Case, float, Path]] = {}
    waiting = iter(todo)
    while True:
        while len(running) < jobs and (case := next(waiting, None)) is not None:
            place = Path(tempfile.mkdtemp(prefix="case-", dir=folder.parent))
            running[_start(case, folder, place)] = case, time.monotonic(), place
        if not running:
            return
        pid, status, usage = os.wait4(-1, 0)
        case, began, place = running.pop(pid)
        out, err = ((place / f"std{name}").read_text(errors="replace") for name in ("out", "err"))
        left = tuple(p.name for p in place.iterdir() if p.name not in ("stdout", "stderr"))
        seconds, size = time.monotonic() - began, 1024.0 * usage.ru_maxrss
        for name in left:  # what sound commands wrote, the model among them
            if case.name == "the model":
                shutil.move(place / name, folder / name)
        shutil.rmtree(place)
        yield Ran(case, os.waitstatus_to_exitcode(status), seconds, size, out, err, left)


def _start(case: Case, folder: Path, place: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.alarm(SECONDS + 5)
        resource.setrlimit(resource.RLIMIT_DATA, (int(12e9), int(12e9)))
        os.chdir(place)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY), number)
        os.close(0)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        words = case.arguments
        code = _main([_placed(folder, word, words[k - 1]) for k, word in enumerate(words)])
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _placed(folder: Path, word: str, before: str) -> str:
    """Return an argument with the folder's path before what is a file there.

    Files are written beside the case, except where the target is one of the traps.
    """
    inside = folder / word
    if word and len(word) < 200 and (os.path.lexists(inside)) and before not in ("--source",):
        return str(inside)
    return word


def _main(arguments: list[str]) -> int:
    from edgebelief.cli import main

    return main(arguments)


def campaign(seed: int, count: int, jobs: int = 2, show: bool = False) -> list[Ran]:
    """Run all cases of a seed; returns those with a lapse."""
    lapsed: list[Ran] = []
    late: list[Case] = []
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "files"
        folder.mkdir()
        make_files(folder)
        traps(folder)
        for done, ran in enumerate(run_all(cases(seed, count, folder), folder, jobs), 1):
            if ran.is_late:
                late.append(ran.case)
            elif ran.lapses:
                lapsed.append(ran)
                _tell(ran, show)
            if show and done % 100 == 0:
                print(f"{done} run, {len(lapsed)} lapses, {len(late)} late", flush=True)
        for ran in run_all(late, folder, jobs=1):
            if ran.lapses:
                lapsed.append(ran)
            _tell(ran, show)
    return lapsed


def _tell(ran: Ran, show: bool) -> None:
    if show:
        last = ran.err.strip().split("\n")[-1][:300]
        lapses = ", ".join(ran.lapses) or "no lapse"
        print(f"{ran.case.name}: {lapses} ({ran.seconds:.0f} s)\n    {last}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    found = campaign(chosen.seed, chosen.count, chosen.jobs, show=True)
    print(f"{len(found)} lapses among {chosen.count} cases (seed {chosen.seed})")
    sys.exit(bool(found))
