import json
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgebelief import GraphLearner, load
from edgebelief.belief import BeliefWarning
from edgebelief.data import GraphDataset, RandomGeometric, save_dataset
from edgebelief.errors import InputError, SettingError
from edgebelief.fleet import (
    Fit,
    OtherJob,
    Predict,
    Withdrawn,
    plan,
    results,
    run,
    shards,
    tables,
    work,
)
from edgebelief.infer import InferenceWarning
from edgebelief.persist.modelfile import ModelFileError
from graph_folders import check_complete, check_equal, distances, make

QUICK = {"readout": "affine", "depth": 10, "inference": "laplace"}
SPAWN = multiprocessing.get_context("spawn")


def predict(model, folder, **settings):
    return Predict(model=model, inputs=folder, out=folder.parent / "out", **settings)


def test_predictions_equal_the_learners_bit_for_bit(model, folder):
    job = predict(model, folder, rule={"top_k": 3})
    outcome = run(job, n_jobs=1)
    assert (len(outcome.done), outcome.skipped, outcome.failed) == (8, (), ())
    learner = load(model)
    for result in results(job.out):
        key = int(result.file[8])
        names = [f"n{i}" for i in range(6 + key % 2)] if key < 4 else None
        X = pd.DataFrame(distances(key, 6 + key % 2), index=names, columns=names)
        alone = learner.edge_table(X, top_k=3)
        numbers = alone.select_dtypes("number").columns
        assert result.table[numbers].equals(alone[numbers])
        assert result.table["source"].tolist() == alone["source"].astype(str).tolist()
        assert result.table["decision"].sum() == 3
    check_complete(folder, job.out)


def test_all_tables_together_are_one_frame(model, folder):
    pytest.importorskip("pyarrow")
    job = predict(model, folder, level=None)
    run(job, n_jobs=1)
    frame = pd.read_parquet(Path(job.out) / "tables")
    assert len(frame) == sum(n * (n - 1) // 2 for n in (6, 7) * 4)
    assert frame.columns[:4].tolist() == ["file", "graph", "source", "target"]


def test_without_pyarrow_tables_are_npz_with_the_same_numbers(model, folder, monkeypatch):
    run(predict(model, folder), n_jobs=1)
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    other = Predict(model=model, inputs=folder, out=folder.parent / "npz")
    run(other, n_jobs=1)
    assert {path.suffix for path in (other.out / "tables").iterdir()} == {".npz"}
    check_equal(other.out, folder.parent / "out")
    assert run(other, n_jobs=1).done == ()


def test_decided_edges_alone(model, folder):
    job = predict(model, folder, rule={"top_k": 0}, all_pairs=False)
    run(job, n_jobs=1)
    check_complete(folder, job.out)
    assert all(result.table.empty for result in results(job.out))


def test_a_second_run_does_nothing_and_a_changed_input_is_done_again(model, folder, monkeypatch):
    job = predict(model, folder)
    run(job, n_jobs=1)
    assert run(job, n_jobs=1, do=never) == run(job, n_jobs=1)
    before = {result.file: result.table for result in results(job.out)}
    np.save(folder / "subject-5.npy", distances(100, 7))
    np.save(folder / "subject-9.npy", distances(9, 7))
    outcome = run(job, n_jobs=1)
    assert outcome.done == ("subject-5.npy", "subject-9.npy")
    assert len(outcome.skipped) == 7
    check_complete(folder, job.out)
    after = {result.file: result.table for result in results(job.out)}
    changed = [file for file in before if not before[file].equals(after[file])]
    assert changed == ["subject-5.npy"]


def never(order):
    raise AssertionError(f"nothing was to do, but {order}")


def test_results_of_inputs_that_are_gone_stay(model, folder):
    job = predict(model, folder)
    run(job, n_jobs=1)
    (folder / "subject-5.npy").unlink()
    assert run(job, n_jobs=1, do=never).done == ()
    assert len(list(results(job.out))) == 8


def test_another_model_or_setting_redoes_all(model, folder, tmp_path):
    run(predict(model, folder), n_jobs=1)
    outcome = run(predict(model, folder, level=0.5), n_jobs=1)
    assert outcome.is_redone
    assert len(outcome.done) == 8
    other = tmp_path / "other.eb"
    learner = load(model)
    learner.random_state = 5  # kept in the file
    learner.save(other)
    outcome = run(predict(other, folder, level=0.5), n_jobs=1)
    assert (len(outcome.done), len(outcome.skipped)) == (8, 0)
    check_complete(folder, folder.parent / "out")


def test_a_model_that_changes_under_way_fails_the_shards(model, folder, tmp_path):
    other = tmp_path / "other.eb"
    other.write_bytes(model.read_bytes())
    job = predict(other, folder)
    paths = shards(job)
    load(model).save(other)
    other.write_bytes(other.read_bytes()[:-8])
    with pytest.raises(InputError, match="has changed since the job began"):
        work(paths[0])


def test_a_folder_of_another_job_is_refused(model, folder, tmp_path):
    run(predict(model, folder), n_jobs=1)
    elsewhere = make(tmp_path / "elsewhere", 1)
    with pytest.raises(OtherJob, match="the results of another job: predict of"):
        run(Predict(model=model, inputs=elsewhere, out=folder.parent / "out"))
    with pytest.raises(OtherJob, match="another job"):
        run(Fit(inputs=folder, out=folder.parent / "out"))
    check_complete(folder, folder.parent / "out")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda out: (out.mkdir(), (out / "mine.csv").write_text("x")), "holds other files"),
        (lambda out: out.write_text("x"), "is a file"),
        (lambda out: (out.mkdir(), (out / "job.json").write_text("{}")), "is no file of"),
        (lambda out: (out.mkdir(), (out / "job.json").write_text("{")), "is no file of"),
    ],
)
def test_folders_that_are_not_for_results_are_refused(model, folder, spoil, message):
    out = folder.parent / "out"
    spoil(out)
    with pytest.raises((InputError, OSError), match=message):
        run(predict(model, folder))


def test_a_job_of_a_newer_version_is_refused(model, folder):
    job = predict(model, folder)
    run(job, n_jobs=1)
    path = Path(job.out) / "job.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 99}))
    with pytest.raises(OtherJob, match="newer edgebelief"):
        run(job)


def test_the_folder_of_the_inputs_is_not_for_results(model, folder):
    with pytest.raises(SettingError, match="a folder of inputs"):
        run(Predict(model=model, inputs=folder, out=folder))
    empty = folder.parent / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match=r"empty: holds no graphs; they are \.csv"):
        run(predict(model, empty))
    with pytest.raises(FileNotFoundError, match="no such folder"):
        run(predict(model, folder / "none"))


def test_two_runs_at_once_are_refused(model, folder):
    job = predict(model, folder)
    with plan.alone(Path(job.out)), pytest.raises(InputError, match="another run is at work"):
        run(job)


BAD = {
    "empty.csv": (b"", "the file is empty"),
    "cut.npy": (b"\x93NUMPY", "not an npy file"),
    "text.npz": (b"PK", "not an npz file"),
    "square.csv": (b",a,b\na,0,1\n", "has the same node names"),
    "gap.csv": (b",a,b,c\na,0,,1\nb,,0,1\nc,1,1,0\n", "is nan"),
    "words.csv": (b",a,b\na,0,x\nb,x,0\n", "no number"),
    "negative.csv": (b",a,b,c\na,0,1,2\nb,3,0,1\nc,2,1,0\n", "symmetric"),
}


def test_bad_graphs_fail_alone(model, folder):
    for name, (content, _) in BAD.items():
        (folder / name).write_bytes(content)
    np.save(folder / "gap.npy", np.where(np.eye(7), 0, np.nan))
    np.save(folder / "long.npy", np.zeros((6, 7)))
    np.save(folder / "flat.npy", np.zeros(7))
    job = predict(model, folder)
    for _ in range(2):  # and they are tried again
        outcome = run(job, n_jobs=1)
        errors = {failure.file: failure for failure in outcome.failed}
        assert set(errors) == {*BAD, "gap.npy", "long.npy", "flat.npy"}
        for name, (_, message) in BAD.items():
            assert message in errors[name].error
        assert all(str(folder / name) in each.error for name, each in errors.items())
        assert all(each.is_input and not each.traceback for each in outcome.failed)
        assert len(outcome.done) + len(outcome.skipped) == 8
        listed = list(results(job.out))
        assert sum(result.error is None for result in listed) == 8
        assert {r.file: r.error for r in listed if r.error} == {
            name: failure.error for name, failure in errors.items()
        }
    np.save(folder / "gap.npy", distances(50, 7))
    assert run(job, n_jobs=1).done == ("gap.npy",)


def test_a_bug_is_kept_with_its_traceback_and_fails_alone(model, folder, monkeypatch):
    honest = GraphLearner.edge_table

    def edge_table(self, X, **settings):
        if any(len(record.names) == 7 and record.e[0] == poisoned for record in X):
            raise ZeroDivisionError("a bug")
        return honest(self, X, **settings)

    poisoned = distances(5, 7)[0, 1]
    monkeypatch.setattr(GraphLearner, "edge_table", edge_table)
    outcome = run(predict(model, folder), n_jobs=1)
    [failure] = outcome.failed
    assert failure.file == "subject-5.npy"
    assert failure.error.endswith("subject-5.npy: ZeroDivisionError: a bug")
    assert "in edge_table" in failure.traceback
    assert not failure.is_input
    assert len(outcome.done) == 7


def test_warnings_are_counted_not_printed(model, folder):
    for path in folder.glob("*.csv"):
        path.unlink()
    for path in folder.iterdir():
        np.save(path, 1000 * np.load(path))
    job = predict(model, folder)
    for _ in range(2):  # the second says what the first found
        outcome = run(job, n_jobs=1)
        [(category, (n, first))] = outcome.warnings.items()
        assert category == BeliefWarning.__name__
        assert n == 2  # one for each size
        assert "times those that were fitted" in first


def test_several_graphs_in_a_file(model, tmp_path):
    folder = make(tmp_path / "graphs", 1)
    graphs = GraphDataset.sample(1, RandomGeometric(0.5), n_graphs=2, n_nodes=6, n_signals=100)
    more = GraphDataset.sample(2, RandomGeometric(0.5), n_graphs=1, n_nodes=8, n_signals=100)
    save_dataset(folder / "set.npz", graphs + more)
    job = predict(model, folder)
    run(job, n_jobs=1)
    tables = {r.graph: r.table for r in results(job.out) if r.file == "set.npz"}
    expected = load(model).predictions(graphs + more)
    assert sorted(tables) == [0, 1, 2]
    for number, table in tables.items():
        belief = expected[number]
        assert np.array_equal(table["probability"], belief.mean[belief.order])


def test_a_model_for_each(tmp_path):
    folder, labels = make(tmp_path / "graphs", 6), tmp_path / "labels"
    labels.mkdir()
    for path in folder.glob("*[135].npy"):  # of 7 nodes
        path.unlink()
    names = ("subject-0000.npy", "subject-0002.npy", "subject-0004.npy")
    for name in names[:2]:
        np.save(labels / name, (np.load(folder / name) < 4) * (1.0 - np.eye(6)))
    job = Fit(inputs=folder, out=tmp_path / "out", companions={"labels": labels}, settings=QUICK)
    outcome = run(job, n_jobs=1)
    [failure] = outcome.failed
    assert failure.file == names[2]
    assert "no label is known" in failure.error
    assert outcome.findings["prior dominates"] == 2
    fitted = {result.file: result for result in results(job.out)}
    first, second = (fitted[name] for name in names[:2])
    assert first.model == tmp_path / "out" / "models" / "subject-0000.eb"
    assert first.table["parameter"].tolist() == ["theta", "delta", "b"]
    X, A = np.load(folder / names[1]), np.load(labels / names[1])
    with pytest.warns(InferenceWarning):
        learner = GraphLearner(**QUICK).fit([X], [A])
    X = distances(99, 6)
    assert np.array_equal(load(second.model).predict_proba(X), learner.predict_proba(X))
    # A label that changes, and a model that is gone, are done again, and they alone.
    assert run(job, n_jobs=1).done == ()
    first.model.unlink()
    assert run(job, n_jobs=1).done == names[:1]
    os.utime(labels / names[1], ns=(0, 0))
    assert run(job, n_jobs=1).done == names[1:2]


def test_models_of_one_stem_have_different_names(tmp_path):
    folder = tmp_path / "graphs"
    folder.mkdir()
    graphs = GraphDataset.sample(1, RandomGeometric(0.5), n_graphs=2, n_nodes=6, n_signals=100)
    for name in ("a.npz", "b.npz"):
        save_dataset(folder / name, graphs)
    (folder / "a.csv").write_text(",x,y\nx,0,1\ny,1,0\n")
    outcome = run(Fit(inputs=folder, out=tmp_path / "out", settings=QUICK), n_jobs=1)
    assert outcome.done == ("a.npz", "b.npz")
    models = sorted(path.name for path in (tmp_path / "out" / "models").iterdir())
    assert models == ["a.npz.eb", "b.eb"]


def test_settings_that_no_file_keeps_are_refused(folder):
    with pytest.raises(ModelFileError, match="metric is a function"):
        run(Fit(inputs=folder, out=folder.parent / "out", settings={"metric": np.corrcoef}))


def test_an_order_that_is_gone_is_not_done(model, folder):
    job = predict(model, folder)
    first, *others = shards(job)
    assert shards(job) == [first, *others]
    report = work(first)
    assert work(first) == report  # as it is done, and says so
    others[0].unlink()
    with pytest.raises(Withdrawn):
        work(others[0])
    assert run(job, n_jobs=1).failed == ()
    check_complete(folder, job.out)


def test_a_failed_shard_has_its_traceback_and_stops_no_other(model, folder):
    job = predict(model, folder)
    outcome = run(job, ThreadPoolExecutor(1), do=partial(_fails_at, shards(job)[0].name))
    assert outcome.failed
    assert all("OSError: the disk is full" in failure.traceback for failure in outcome.failed)
    assert all("its shard failed" in failure.error for failure in outcome.failed)
    assert len(outcome.done) + len(outcome.failed) == 8
    assert run(job, n_jobs=1).done == tuple(failure.file for failure in outcome.failed)
    check_complete(folder, job.out)


def _fails_at(name, order):
    if Path(order).name == name:
        raise OSError("the disk is full")
    return work(order)


class _Polled:
    """What `submitit` returns: no future, but with `done` and `result`."""

    def __init__(self, result):
        self.result, self._looks = result, count()

    def done(self):
        return next(self._looks) > 0


class _Cluster:
    def submit(self, function, *arguments):
        return _Polled(partial(function, *arguments))


def test_jobs_that_are_no_futures_are_polled(model, folder, monkeypatch):
    monkeypatch.setattr(sys.modules["edgebelief.fleet.run"], "LOOK", 0.01)  # not the function
    job = predict(model, folder)
    assert len(run(job, _Cluster()).done) == 8
    check_complete(folder, job.out)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no forks here")
def test_forks_are_refused(model, folder):
    fork = multiprocessing.get_context("fork")
    for executor in (
        ProcessPoolExecutor(1, mp_context=fork),
        partial(ProcessPoolExecutor, 1, mp_context=fork),
    ):
        with pytest.raises(SettingError, match="forks this process"):
            run(predict(model, folder), executor)
    with pytest.raises(SettingError, match="must have `submit`"):
        run(predict(model, folder), 3)


class Killed(BaseException):
    """The process ends here, as far as a process can be played."""


def test_killed_at_any_write_nothing_is_lost_or_done_twice(model, tmp_path, monkeypatch):
    """Brute force: the run ends before, and after, each change of the folder of results."""
    folder = make(tmp_path / "graphs", 4)
    (folder / "bad.npy").write_bytes(b"")
    serial = Predict(model=model, inputs=folder, out=tmp_path / "serial", level=None)
    run(serial, n_jobs=1)
    replace, unlink = os.replace, Path.unlink
    for point in count():
        job = Predict(model=model, inputs=folder, out=tmp_path / f"out-{point}", level=None)
        changes = count()

        def at(change, *arguments, changes=changes, point=point, **more):
            if next(changes) == point:
                raise Killed
            change(*arguments, **more)
            if next(changes) == point:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", partial(at, replace))
            patch.setattr(Path, "unlink", lambda *args, at=at, **more: at(unlink, *args, **more))
            try:
                run(job, n_jobs=1)
            except Killed:
                ended = False
            else:
                ended = True
        outcome = run(job, n_jobs=1)
        assert [failure.file for failure in outcome.failed] == ["bad.npy"]
        assert sorted(r.file for r in results(job.out)) == sorted(p.name for p in folder.iterdir())
        for result in results(job.out):
            [same] = [r for r in results(serial.out) if r.file == result.file]
            assert result.error or result.table.equals(same.table)
        if ended:
            break
    assert point >= 16  # the job itself, and three orders and what became of them


def _dies_once(marker, order):
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return work(order)
    os.kill(os.getpid(), 9)


def test_a_pool_whose_process_is_killed_loses_nothing_and_equals_the_serial_result(
    model, folder, tmp_path
):
    serial = Predict(model=model, inputs=folder, out=tmp_path / "serial", level=None)
    run(serial, n_jobs=1)
    job = predict(model, folder, level=None)
    outcome = run(
        job,
        partial(ProcessPoolExecutor, 1, mp_context=SPAWN),
        n_jobs=1,
        do=partial(_dies_once, tmp_path / "died"),
    )
    assert (tmp_path / "died").exists()
    assert outcome.failed == ()
    check_complete(folder, job.out)
    check_equal(job.out, serial.out)


def _dies_at(name, order):
    if Path(order).name == name:
        os.kill(os.getpid(), 9)
    return work(order)


@pytest.mark.slow
def test_a_shard_that_kills_its_process_fails_alone(model, folder):
    job = predict(model, folder)
    outcome = run(job, n_jobs=2, do=partial(_dies_at, shards(job)[0].name))
    assert outcome.failed
    assert all("process at work on it died" in failure.error for failure in outcome.failed)
    assert len(outcome.done) + len(outcome.failed) == 8
    pool = ProcessPoolExecutor(1, mp_context=SPAWN)  # nobody makes this one anew
    with pool:
        outcome = run(job, pool, do=partial(_dies_at, shards(job)[0].name))
    assert outcome.done == ()
    assert all("process at work on it died" in failure.error for failure in outcome.failed)
    assert run(job, n_jobs=1).failed == ()
    check_complete(folder, job.out)
