"""Sums over graphs, computed on several devices: each takes its share of the graphs.

    with spread_over(jax.devices()):
        posterior = MAP().run(0, model, data)

Log-likelihoods of engines that follow gradients are such sums (`gradient.density`). The parameters
and the result are the same on all devices; the graphs are split along their axis. In a program of
several processes (`jax.distributed`), all of them run the same lines with the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from .batch import Batch

Arguments = TypeVar("Arguments")
Sums = TypeVar("Sums")
# The axis of the mesh along which graphs are split.
GRAPHS = "graphs"
_mesh: ContextVar[Mesh | None] = ContextVar("mesh", default=None)


@contextmanager
def spread_over(devices: Sequence[jax.Device]) -> Iterator[Mesh]:
    """Spread the graphs of log-likelihoods over these devices, within a `with` block.

    It is for fits by gradients (`MAP`, `VI`, `NUTS`, `Modes`) whose graphs are many or large: a
    device should have seconds of work. `Exact` does not use it.

    Examples
    --------
    >>> import jax
    >>> from edgebelief.data import ErdosRenyi, GraphDataset
    >>> from edgebelief.infer import MAP, EdgeModel
    >>> from edgebelief.infer.sharding import spread_over
    >>> from edgebelief.networks import DPG
    >>> data = GraphDataset.sample(0, ErdosRenyi(0.4), n_graphs=4, n_nodes=6, n_signals=20)
    >>> with spread_over(jax.devices()):
    ...     posterior = MAP(starts=1).run(0, EdgeModel(DPG(depth=5)), data)
    """
    mesh = Mesh(np.array(devices), (GRAPHS,))
    token = _mesh.set(mesh)
    try:
        yield mesh
    finally:
        _mesh.reset(token)


def current_mesh() -> Mesh | None:
    """Return the devices of the innermost `spread_over`, or None outside of any."""
    return _mesh.get()


def summed_over(
    mesh: Mesh | None, function: Callable[[Arguments, Batch], Sums]
) -> Callable[[Arguments, Batch], Sums]:
    """Return a function that gives the same sums over the graphs of a batch, made by all devices.

    Each device calls `function` with its share of the graphs. Copies of the first graph that do
    not count fill up the shares.
    """
    if mesh is None:
        return function

    def on_all_devices(arguments: Arguments, batch: Batch) -> Sums:
        filled = batch.filled(mesh.size)
        by_graph, same = PartitionSpec(GRAPHS), PartitionSpec()
        shares = filled.with_arrays(lambda _: by_graph, lambda _: same)

        def of_share(arguments: Arguments, share: Batch) -> Sums:
            return jax.tree.map(lambda x: x[None], function(arguments, share))

        # Not checked: that the state of a network does not depend on the graphs before its loop,
        # and does after.
        of_shares = jax.shard_map(
            of_share, mesh=mesh, in_specs=(same, shares), out_specs=by_graph, check_vma=False
        )
        return jax.tree.map(lambda x: x.sum(0), of_shares(arguments, filled))

    return on_all_devices
