import os

import pytest

from edgebelief.cores import n_cores


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_cores_are_those_that_the_process_may_use():
    allowed = os.sched_getaffinity(0)
    assert 1 <= n_cores() <= len(allowed)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert n_cores() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_limit_that_the_user_set_is_kept(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert n_cores() == 1
