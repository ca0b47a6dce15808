"""Which device does a piece of work: an accelerator where it pays, else the processor.

An accelerator is quick with large arrays, and slow to start: small pieces of work are done many
times faster by the processor beside it. This is the one place that decides, by size. Someone who
knows better sets the variable EDGEBELIEF_DEVICE to "processor" or "accelerator", or uses `using`;
and JAX's own setting, `jax.default_device`, comes before all of that. Without an accelerator there
is nothing to decide.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple, get_args

import jax

from .errors import SettingError
from .validate import check_choice

Kind = Literal["auto", "processor", "accelerator"]
VARIABLE = "EDGEBELIEF_DEVICE"
# Updates of a pair in a pass over all graphs (graphs x pairs x layers) from which on an accelerator
# pays. On an H200, beside two cores: with 4e6 (100 graphs of 20 nodes) belief took 18 times as long
# as on the processor; with 4e7 (10 graphs of 200 nodes) a fit took a third.
WORTHWHILE = 1e7
# What counts as the depth of the converged network.
CONVERGED = 200
_kind: ContextVar[Kind | None] = ContextVar("kind", default=None)


class Choice(NamedTuple):
    """The device for a piece of work, and why."""

    device: jax.Device | None
    """None where there is nothing to decide: JAX's default is right."""
    reason: str

    def __str__(self) -> str:
        return self.reason if self.device is None else f"{self.device}: {self.reason}"


def updates(depth: int | None, n_pairs: int) -> float:
    """Return the size of a pass of a network over graphs with so many pairs in all.

    Examples
    --------
    >>> from edgebelief.devices import updates
    >>> updates(depth=200, n_pairs=100 * 190)
    3800000.0
    """
    return float(CONVERGED if depth is None else depth) * n_pairs


@contextmanager
def using(kind: Kind) -> Iterator[None]:
    """Say which device does all work within a `with` block; "auto" leaves it to the size.

    Examples
    --------
    >>> from edgebelief.devices import choose, using
    >>> with using("processor"):
    ...     choose(1e12).reason
    'there is no accelerator'
    """
    check_choice(kind, "kind", get_args(Kind))
    token = _kind.set(kind)
    try:
        yield
    finally:
        _kind.reset(token)


def choose(work: float, devices: Sequence[jax.Device] | None = None) -> Choice:
    """Choose the device for work of this size, in `updates`.

    Parameters
    ----------
    work : float
    devices : sequence of jax.Device, optional
        By default those of this process.

    Examples
    --------
    >>> from edgebelief.devices import choose
    >>> choose(1e12).device is None  # on a machine that has only a processor
    True
    """
    kind = _kind_in_force()
    if devices is None:
        if jax.default_backend() == "cpu":
            return Choice(None, "there is no accelerator")
        devices = [*jax.local_devices(), *jax.local_devices(backend="cpu")]
    if (default := current()) is not None:
        return Choice(default, "jax.default_device is set")
    processors = [device for device in devices if device.platform == "cpu"]
    accelerators = [device for device in devices if device.platform != "cpu"]
    if not accelerators or not processors:
        return Choice(None, "there is no accelerator" if processors else "there is no choice")
    if kind != "auto":
        device = processors[0] if kind == "processor" else accelerators[0]
        return Choice(device, f"asked for the {kind}")
    if work < WORTHWHILE:
        return Choice(processors[0], f"{work:.1g} updates are few, below {WORTHWHILE:.0e}")
    return Choice(accelerators[0], f"{work:.1g} updates are many, from {WORTHWHILE:.0e} on")


@contextmanager
def chosen(choice: Choice) -> Iterator[None]:
    """Compute on the chosen device within a `with` block. It does not reach into other threads."""
    if choice.device is None:
        yield
        return
    with jax.default_device(choice.device):
        yield


def current() -> jax.Device | None:
    """Return what `jax.default_device` is set to: a setting of each thread, to be set in others."""
    device: jax.Device | None = jax.config.jax_default_device  # type: ignore[attr-defined]
    return device


def _kind_in_force() -> Kind:
    kind = _kind.get() or os.environ.get(VARIABLE) or "auto"
    for known in get_args(Kind):
        if kind == known:
            return known
    problem = f"must be one of {', '.join(get_args(Kind))}; got {kind!r}."
    raise SettingError(problem, argument=VARIABLE)
