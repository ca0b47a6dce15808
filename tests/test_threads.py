"""Ctrl-C ends what works in threads."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextvars import ContextVar

import pytest

from edgebelief import threads
from edgebelief.threads import Abandoned, Workers, apart, check, paced

# The work would take days; a program ends two seconds after Ctrl-C, later on a machine that is
# busy or swaps.
LATE = 150
LONG = """
import os, signal, threading
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import {engine}, EdgeModel
from edgebelief.infer.engines import nuts, vi
from edgebelief.networks import DPG

data = GraphDataset.sample(3, RandomGeometric(0.5), 4, n_nodes=8, n_signals=30)
parts = 0
paced = {module}.paced
def told(steps, most):
    for n in paced(steps, most):
        yield n
        global parts
        parts += 1
        if parts == 3:  # well under way
            print("running", flush=True)
{module}.paced = told
{engine}({more}).run(0, EdgeModel(DPG(depth=10)), data)
"""


@pytest.mark.parametrize(
    ("engine", "module", "more"),
    [("NUTS", "nuts", "n_draws=10**7, n_chains=2"), ("VI", "vi", "steps=10**8")],
)
def test_ctrl_c_ends_a_program_within_seconds(engine, module, more):
    """As Python itself ends on Ctrl-C: with a traceback, killed by the signal."""
    code = LONG.format(engine=engine, module=module, more=more)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ran:
        assert ran.stdout.readline() == "running\n"
        ran.send_signal(signal.SIGINT)
        try:
            _, err = ran.communicate(timeout=LATE)
        finally:
            ran.kill()
    assert err.endswith("KeyboardInterrupt\n")
    assert ran.returncode == -signal.SIGINT


NEVER_READY = """
import hashlib
from edgebelief.data import GraphDataset, RandomGeometric
from edgebelief.infer import {engine}, EdgeModel
from edgebelief.infer.gradient import optimise
from edgebelief.networks import DPG

data = GraphDataset.sample(3, RandomGeometric(0.5), 4, n_nodes=8, n_signals=30)
def compiled(*_):
    print("running", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)  # minutes, deaf to Ctrl-C as a compiler is
optimise._best_readouts = compiled
{engine}().run(0, EdgeModel(DPG(depth=10)), data)
"""


@pytest.mark.parametrize("engine", ["NUTS", "MAP"])
def test_ctrl_c_is_heard_before_there_are_threads_of_the_engine(engine):
    """While JAX compiles the search for starts, say."""
    code = NEVER_READY.format(engine=engine)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ran:
        assert ran.stdout.readline() == "running\n"
        ran.send_signal(signal.SIGINT)
        try:
            _, err = ran.communicate(timeout=LATE)
        finally:
            ran.kill()
    assert err.endswith("KeyboardInterrupt\n")
    assert ran.returncode == -signal.SIGINT


def interrupt_when(event):
    def wait():
        event.wait()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=wait).start()


def test_an_interrupt_is_raised_at_once_and_the_work_ends_at_its_next_check():
    begun, ended = threading.Event(), threading.Event()

    def work(_):
        begun.set()
        try:
            while True:
                check()
                time.sleep(0.001)
        except Abandoned:
            ended.set()
            raise

    interrupt_when(begun)
    with pytest.raises(KeyboardInterrupt), Workers(1) as workers:
        list(workers.map(work, range(3)))
    assert ended.wait(5)


def test_an_interrupt_does_not_wait_for_what_cannot_be_stopped():
    begun, go = threading.Event(), threading.Event()

    def work():
        begun.set()
        go.wait()

    interrupt_when(begun)
    with pytest.raises(KeyboardInterrupt):
        apart(work)
    assert threads._busy
    go.set()


def test_results_are_in_order_and_errors_are_raised_once_all_threads_have_ended():
    def work(k):
        time.sleep(0.01 * (3 - k))
        if k == 3:
            raise ValueError("three")
        return k

    with Workers(3) as workers:
        assert list(workers.map(work, range(3))) == [0, 1, 2]
    ends = workers._threads
    assert not any(thread.is_alive() for thread in ends)
    with pytest.raises(ValueError, match="three"), Workers(2) as workers:
        list(workers.map(work, range(4)))
    assert not any(thread.is_alive() for thread in workers._threads)


def test_workers_within_workers_are_abandoned_with_them():
    begun, ended = threading.Event(), threading.Event()

    def inner():
        begun.set()
        try:
            while True:
                check()
        finally:
            ended.set()

    interrupt_when(begun)
    with pytest.raises(KeyboardInterrupt):
        apart(lambda: apart(inner))
    assert ended.wait(5)


def test_parts_grow_until_they_take_the_time_that_they_should(monkeypatch):
    clock = iter([0.0, 0.1, 1.0, 1.25, 2.0, 3.0, 4.0, 4.001, 5.0, 5.0]).__next__
    monkeypatch.setattr(time, "perf_counter", clock)
    assert list(paced(45, most=30)) == [1, 5, 10, 5, 24]


def test_work_of_threads_sees_the_context_variables_of_its_caller():
    variable = ContextVar("variable", default="default")
    token = variable.set("of the caller")
    try:
        assert apart(variable.get) == "of the caller"
    finally:
        variable.reset(token)
