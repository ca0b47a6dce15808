"""The folder of results: what is done, what is ordered, and what is still to be ordered.

    job.json        the job: the same command goes on here, another is refused
    orders/*.json   shards that are to be done: the files of each
    tables/*        shards that are done: a table and an entry for each file (`tables`)
    failures/*      shards of which no graph has a result; they are tried again by the next run
    models/*.eb     the models, where the job fits some

Each of these files appears whole or not at all, and that is all there is: nothing else says what is
done. An input has a result if an entry says so, by the size and time of change that the input has
now. It is under way if an order lists it. Otherwise it is ordered. A worker does an order only
while it exists, and removes it when its table is there. So nothing is lost or done twice, whenever
a run is killed: a worker that outlives a run finds its order, which the next run takes up too, or
finds none and leaves nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..atomic import replacing
from ..errors import InputError, SettingError
from . import tables
from .job import NAME, Job, OtherJob, fingerprint, is_same_work, read_job, write_job
from .sources import Source, list_folder
from .tables import Entry, Report, Warned, added, read_report, reports_in

try:
    import fcntl
except ImportError:  # Windows, where two runs at once are for the user to avoid
    fcntl = None  # type: ignore[assignment]

ORDERS, TABLES, FAILURES, MODELS = "orders", "tables", "failures", "models"
LOCK = ".lock"
# A shard has at most so many pairs, and files. Its table then takes some 30 MB in memory, and a
# kill costs some seconds of work; twice the files that are predicted together.
MOST_PAIRS, MOST_FILES = 2**18, 128
# And at least so many pairs, with which a worker is busy for longer than with an order.
LEAST_PAIRS = 2**12
# Shards for each worker, so that all of them are busy to the end.
SHARDS_EACH = 4
# A fit takes longer than an order by far: it has one of its own, unless there are very many.
MOST_FITS = 1000


class Order(NamedTuple):
    """A shard that is to be done."""

    fingerprint: str
    sources: tuple[Source, ...]
    models: tuple[str, ...] = ()
    """The names of the model files, where models are fitted."""


class Plan(NamedTuple):
    """What is done and what is to do."""

    orders: Mapping[Path, Order]
    """The shards to be done, by the path that `work` takes; graphs of one size beside each other"""
    done: tuple[str, ...]
    """The names of inputs that have results."""
    warnings: Warned
    """What there was to warn of when those were made."""
    findings: Counter[str]
    """What was found wrong with those that are fits, and how often."""
    left_out: tuple[str, ...]
    """Names in the folder of inputs that are no graphs."""
    is_redone: bool
    """Whether there were results of other settings, or of another model, which are gone."""


def prepare(job: Job, n_workers: int = 1) -> Plan:
    """Order what is neither done nor ordered; refuse a folder that is another job's."""
    described = job.described()
    inputs, out = Path(described["inputs"]), Path(job.out).absolute()
    listing = list_folder(inputs, {k: Path(v) for k, v in described["companions"].items()})
    _check_out(out, inputs, described)
    if not listing.sources:
        others = f" ({len(listing.left_out)} other files or folders)" if listing.left_out else ""
        raise InputError(
            f"holds no graphs{others}; they are .csv, .tsv, .txt, .parquet, .npz or .npy files",
            where=inputs,
        )
    own = {out.name, *(Path(path).name for path in described["companions"].values())}
    left_out = tuple(name for name in listing.left_out if name not in own)
    is_redone = _begin(out, described)
    by_name = {source.name: source for source in listing.sources}
    mark = fingerprint(described)
    done, warned = _done(out, by_name, mark)
    pending = _pending(out, by_name, mark, done)
    ordered = {source.name for order in pending.values() for source in order.sources}
    new = [s for s in listing.sources if s.name not in done and s.name not in ordered]
    fits = described["kind"] == "fit"
    taken = {entry.model for entry in done.values()}
    taken |= {name for order in pending.values() for name in order.models}
    names = _model_names(new, by_name, taken) if fits else {}
    for sources in _bucketed(new, n_workers, fits):
        models = tuple(names[s.name] for s in sources) if fits else ()
        order = Order(mark, tuple(sources), models)
        pending[write_order(out, order)] = order
    findings = Counter(name for entry in done.values() for name in entry.findings)
    by_size = dict(sorted(pending.items()))
    return Plan(by_size, tuple(sorted(done)), warned, findings, left_out, is_redone)


def _check_out(out: Path, inputs: Path, described: Mapping[str, Any]) -> None:
    """Refuse a folder that is not for these results."""
    others = [inputs, *map(Path, described["companions"].values())]
    if any(out.resolve() == other.resolve() for other in others):
        raise SettingError(f"{out}: is a folder of inputs; give another one for the results.")
    if (out / NAME).exists():
        old = read_job(out)
        if not is_same_work(described, old):
            raise OtherJob(
                f"holds the results of another job: {old['kind']} of {old['inputs']}",
                where=out,
                remedy="Give another folder, or remove this one first",
            )
    elif out.is_dir() and any(not path.name.startswith(".") for path in out.iterdir()):
        problem = "holds other files"
        raise InputError(problem, where=out, remedy="give a folder that is new or empty")


def _begin(out: Path, described: Mapping[str, Any]) -> bool:
    """Make the folders and write the job; return whether it takes the place of another."""
    old = read_job(out) if (out / NAME).exists() else None
    if old != described:
        write_job(out, described)  # before anything else, as it says whose the folder is
    for name in (ORDERS, TABLES, FAILURES, *([MODELS] if described["kind"] == "fit" else [])):
        (out / name).mkdir(exist_ok=True)
    return old is not None and old != described


def _done(out: Path, sources: Mapping[str, Source], mark: str) -> tuple[dict[str, Entry], Warned]:
    """Return the entries that hold, and what their shards warned of; remove what does not hold."""
    done: dict[str, Entry] = {}
    warned: Warned = {}
    for path in reports_in(out / FAILURES):
        path.unlink()
    for path in reports_in(out / TABLES):
        try:
            report = read_report(path)
        except InputError:  # damaged since
            path.unlink()
            continue
        if report.fingerprint != mark:
            for entry in report.entries:
                if entry.model is not None:
                    (out / MODELS / entry.model).unlink(missing_ok=True)
            path.unlink()
            continue
        changed = {e.file for e in report.entries if e.is_done and _is_stale(out, e, sources)}
        if changed:
            report = _without(out, path, report, changed)
        kept = [entry for entry in report.entries if entry.is_done]
        if not kept:
            path.unlink()
        done |= {entry.file: entry for entry in kept}
        warned = added(warned, report.warnings) if kept else warned
    return {name: entry for name, entry in done.items() if name in sources}, warned


def _is_stale(out: Path, entry: Entry, sources: Mapping[str, Source]) -> bool:
    """Whether the input has changed, or the model is gone. An input that is gone stays done."""
    if entry.model is not None and not (out / MODELS / entry.model).exists():
        return True
    return entry.file in sources and sources[entry.file].stamp != entry.stamp


def _without(out: Path, path: Path, report: Report, changed: set[str]) -> Report:
    """Take some files out of a table; their models first, since without them they are not done."""
    for entry in report.entries:
        if entry.file in changed and entry.model is not None:
            (out / MODELS / entry.model).unlink(missing_ok=True)
    entries = tuple(entry for entry in report.entries if entry.file not in changed)
    kept = report._replace(entries=entries)
    rows = tables.read_table(path)
    tables.write_table(path, rows[~rows["file"].isin(changed)].reset_index(drop=True), kept)
    return kept


def _pending(
    out: Path, sources: Mapping[str, Source], mark: str, done: Mapping[str, Entry]
) -> dict[Path, Order]:
    """Return the orders of earlier runs that still hold; remove the others."""
    pending: dict[Path, Order] = {}
    for path in sorted((out / ORDERS).glob("[!.]*.json")):
        try:
            order = read_order(path)
        except InputError:
            order = Order("", ())
        holds = order.fingerprint == mark and not tables_of(path)
        # Of inputs that have not changed since, so that the next run would order the same.
        if holds and all(sources.get(s.name) == s and s.name not in done for s in order.sources):
            pending[path] = order
        else:
            path.unlink(missing_ok=True)
    return pending


def _bucketed(sources: Sequence[Source], n_workers: int, fits: bool) -> Iterator[list[Source]]:
    """Put sources into shards of one size each, as even as may be."""
    total = sum(source.n_pairs for source in sources)
    most = min(max(total // (SHARDS_EACH * max(n_workers, 1)), LEAST_PAIRS), MOST_PAIRS)
    most_files = -(-len(sources) // MOST_FITS) if fits else MOST_FILES
    for size in sorted({source.n_nodes for source in sources}):
        bucket = [source for source in sources if source.n_nodes == size]
        pairs = sum(source.n_pairs for source in bucket)
        n_shards = max(-(-len(bucket) // most_files), min(-(-pairs // most), len(bucket)))
        n_files = -(-len(bucket) // n_shards)
        for first in range(0, len(bucket), n_files):
            yield bucket[first : first + n_files]


def _model_names(
    new: Sequence[Source], sources: Mapping[str, Source], taken: set[str | None]
) -> dict[str, str]:
    """Return a name for each model: the stem, or where two inputs share it the whole name."""
    stems = [Path(name).stem for name in sources]
    names = {}
    for source in new:
        stem = Path(source.name).stem
        is_free = stems.count(stem) == 1 and f"{stem}.eb" not in taken
        names[source.name] = f"{stem if is_free else source.name}.eb"
    return names


def write_order(out: Path, order: Order) -> Path:
    """Write an order; its name begins with the number of nodes, and is the same for the same."""
    content = {**order._asdict(), "sources": [source.as_json() for source in order.sources]}
    text = json.dumps(content)
    size = max(source.n_nodes for source in order.sources)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    path = out / ORDERS / f"{size:06d}-{digest}.json"
    with replacing(path) as temporary:
        temporary.write_text(text)
    return path


def read_order(path: Path) -> Order:
    """Read an order; one that is damaged, or not of ours, is an `InputError`."""
    try:
        content = json.loads(path.read_text())
        sources = tuple(Source.from_json(source) for source in content["sources"])
        return Order(content["fingerprint"], sources, tuple(content["models"]))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(f"is no order of a fleet ({error}).", where=path) from None


def tables_of(order: Path) -> list[Path]:
    """Return the file that an order has left, if there is one."""
    out, stem = order.parent.parent, order.stem
    left = [out / TABLES / f"{stem}.parquet", out / TABLES / f"{stem}.npz"]
    return [path for path in [*left, out / FAILURES / f"{stem}.json"] if path.exists()]


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Refuse a second run on the same folder, as long as this one goes on."""
    if out.exists() and not out.is_dir():
        raise InputError("is a file; the results are a folder.", where=out)
    out.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    with open(out / LOCK, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem = "another run is at work on this folder"
            raise InputError(problem, where=out, remedy="Wait for it to end") from None
        except OSError:  # a disk without locks
            pass
        yield
