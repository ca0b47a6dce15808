"""What is to be done with each graph of a folder, as a value and as a file."""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..atomic import replacing
from ..bounds import check_file
from ..errors import InputError
from ..persist.learner import settings_from_json, settings_to_json
from ..persist.modelfile import ModelFileError

FORMAT, VERSION = "edgebelief fleet", 1
# The file in the folder of results that says which job they are of.
NAME = "job.json"


class OtherJob(InputError):
    """The folder of results belongs to another job."""


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """What is to be done with each graph of a folder. Abstract: see `Predict` and `Fit`."""

    inputs: str | Path
    """The folder with the graphs, one to a file."""
    out: str | Path
    """The folder for the results; it is made."""
    companions: Mapping[str, str | Path] = field(default_factory=dict)
    """Folders with a file for each graph, of the same stem: "labels", "covariates"."""
    common: Mapping[str, str | Path] = field(default_factory=dict)
    """Files that belong to all graphs, for readers of your own; if one changes, all is redone."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options for readers of your own."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of the job in its file."""

    @abstractmethod
    def own(self) -> dict[str, Any]:
        """Return what this kind of job adds to the file, in JSON's types."""

    def described(self) -> dict[str, Any]:
        """Return the whole job in JSON's types, with the SHA-256 of each file that all share."""
        for path in (self.inputs, *self.companions.values()):
            if not Path(path).is_dir():
                raise FileNotFoundError(f"{path}: no such folder.")
        return {
            "format": FORMAT,
            "version": VERSION,
            "kind": self.kind,
            "inputs": os.path.abspath(self.inputs),
            "companions": {k: os.path.abspath(path) for k, path in self.companions.items()},
            "common": {k: digested(path) for k, path in self.common.items()},
            "options": dict(self.options),
            **self.own(),
        }


@dataclass(frozen=True, kw_only=True)
class Predict(Job):
    """Predict the edges of each graph of a folder with one model.

    Parameters
    ----------
    model : path
        What `GraphLearner.save` wrote.
    inputs, out : path
        The folder with the graphs (.csv, .tsv, .txt, .parquet, .npz, .npy), and that of the
        results: `out`/tables holds Parquet files (npz where pyarrow is not installed) with a row
        per pair, as `GraphLearner.edge_table` has them, and the columns file and graph.
    level : float or None
        Of credible intervals; None for none.
    rule : mapping
        How edges are decided: of `GraphLearner.decide`.
    all_pairs : bool
        Whether every pair is written, or the decided edges.
    companions : mapping
        ``{"covariates": folder}``, for a model with covariates.

    Examples
    --------
    >>> from edgebelief.fleet import Predict
    >>> Predict(model="model.eb", inputs="subjects", out="beliefs", rule={"fdr": 0.05}).kind
    'predict'
    """

    model: str | Path
    level: float | None = 0.9
    rule: Mapping[str, Any] = field(default_factory=dict)
    all_pairs: bool = True

    @property
    def kind(self) -> str:
        return "predict"

    def own(self) -> dict[str, Any]:
        given = {name: value for name, value in self.rule.items() if value is not None}
        rule = {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
        model = digested(self.model)
        return {"model": model, "level": self.level, "rule": rule, "all_pairs": self.all_pairs}


@dataclass(frozen=True, kw_only=True)
class Fit(Job):
    """Fit a model to each file of a folder.

    Parameters
    ----------
    inputs, out : path
        The folder with the graphs, and that of the results: `out`/models holds a model file for
        each, `out`/tables the summaries of their posteriors.
    settings : mapping
        Of `GraphLearner`. Objects are kept where a model file keeps them; functions are not.
    companions : mapping
        ``{"labels": folder}`` with the known edges (an npz data set has its own), and
        ``{"covariates": folder}``.

    Examples
    --------
    >>> from edgebelief.fleet import Fit
    >>> Fit(inputs="subjects", out="models", companions={"labels": "edges"}).kind
    'fit'
    """

    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return "fit"

    def own(self) -> dict[str, Any]:
        return {"settings": settings_to_json(self.settings)}


def digested(path: str | Path) -> list[str]:
    """Return the absolute path of a file and the SHA-256 of its contents."""
    check_file(path)
    with open(path, "rb") as file:
        return [os.path.abspath(path), hashlib.file_digest(file, "sha256").hexdigest()]


def fingerprint(described: Mapping[str, Any]) -> str:
    """Return a text that two jobs share if and only if they do the same."""
    text = json.dumps(described, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_same_work(described: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether one job goes on in the folder of the other: the same kind, on the same inputs."""
    return all(described[name] == other.get(name) for name in ("kind", "inputs"))


def write_job(out: Path, described: Mapping[str, Any]) -> None:
    """Write the job that the results in a folder are of."""
    try:
        text = json.dumps(described, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"this job cannot be kept in a file: {error}.") from None
    with replacing(out / NAME) as temporary:
        temporary.write_text(text + "\n")


def read_job(out: Path) -> dict[str, Any]:
    """Read what `write_job` wrote."""
    path = out / NAME
    check_file(path)
    try:
        described = json.loads(path.read_text())
        known = described["format"] == FORMAT
        is_sound = known and {"version", "kind", "inputs", "options"} <= set(described)
    except (ValueError, TypeError, KeyError, RecursionError):
        is_sound = False
    if not is_sound:
        raise OtherJob("is no file of `edgebelief.fleet`; give another folder.", where=path)
    if described["version"] > VERSION:
        problem = f"was written by a newer edgebelief (format {described['version']})"
        raise OtherJob(problem, where=path, remedy="Update edgebelief, or give another folder")
    return described


def settings_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the learners that a job fits."""
    return settings_from_json(described["settings"])
