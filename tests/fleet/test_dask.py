"""A real local cluster."""

import os
import signal

import pytest

from edgebelief.fleet import Predict, run
from graph_folders import check_complete, check_equal, make

distributed = pytest.importorskip("distributed", reason="Dask is not installed (extra `cluster`)")


@pytest.fixture
def cluster():
    """Two processes with one thread each."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of what tornado and Dask leave open when they are killed
def test_a_cluster_whose_worker_is_killed_equals_the_serial_result(model, tmp_path, cluster):
    folder = make(tmp_path / "graphs", 1000)
    serial = Predict(model=model, inputs=folder, out=tmp_path / "serial", level=None)
    run(serial, n_jobs=1)
    with distributed.Client(cluster) as client:
        # A run with a worker that dies at its first shard, and one without.
        for name, do in {"killed": _DiesOnce(tmp_path / "died"), "whole": None}.items():
            job = Predict(model=model, inputs=folder, out=tmp_path / name, level=None)
            more = {} if do is None else {"do": do}
            outcome = run(job, client.get_executor(), n_jobs=8, **more)
            assert outcome.failed == ()
            assert len(outcome.done) == 1000
            check_complete(folder, job.out)
            check_equal(job.out, serial.out)
    assert (tmp_path / "died").exists()


class _DiesOnce:
    def __init__(self, marker):
        self.marker = marker

    def __call__(self, order):
        from edgebelief.fleet import work

        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return work(order)
        os.kill(os.getpid(), signal.SIGKILL)
