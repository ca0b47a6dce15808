"""Graphs and signals: random ensembles, smooth signals, data sets, files, real data.

Names are imported when first used: a fit of arrays needs neither NetworkX nor what reads files.
"""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .coerce import same_group
    from .covariates import pair_covariates
    from .dataset import GraphDataset, GraphRecord, Stack
    from .ensembles import (
        BarabasiAlbert,
        Ensemble,
        ErdosRenyi,
        RandomGeometric,
        StochasticBlock,
        WattsStrogatz,
    )
    from .files import (
        load_dataset,
        read_covariates,
        read_edges,
        read_matrix,
        read_signals,
        save_dataset,
        write_edges,
        write_matrix,
    )
    from .neighbours import nearest_pairs
    from .real import Split, digits, mnist, sp500
    from .signals import (
        Filter,
        Heat,
        Metric,
        SquareRootInverse,
        Tikhonov,
        adjacency_of,
        distances,
        expected_distances,
        smooth_signals,
        transformed,
    )
    from .tables import read_table, write_table

__all__ = [
    "BarabasiAlbert",
    "Ensemble",
    "ErdosRenyi",
    "Filter",
    "GraphDataset",
    "GraphRecord",
    "Heat",
    "Metric",
    "RandomGeometric",
    "Split",
    "SquareRootInverse",
    "Stack",
    "StochasticBlock",
    "Tikhonov",
    "WattsStrogatz",
    "adjacency_of",
    "digits",
    "distances",
    "expected_distances",
    "load_dataset",
    "mnist",
    "nearest_pairs",
    "pair_covariates",
    "read_covariates",
    "read_edges",
    "read_matrix",
    "read_signals",
    "read_table",
    "same_group",
    "save_dataset",
    "smooth_signals",
    "sp500",
    "transformed",
    "write_edges",
    "write_matrix",
    "write_table",
]

__getattr__, __dir__ = lazily(
    __name__,
    {
        "coerce": ["same_group"],
        "covariates": ["pair_covariates"],
        "dataset": ["GraphDataset", "GraphRecord", "Stack"],
        "ensembles": [
            "BarabasiAlbert",
            "Ensemble",
            "ErdosRenyi",
            "RandomGeometric",
            "StochasticBlock",
            "WattsStrogatz",
        ],
        "files": [
            "load_dataset",
            "read_covariates",
            "read_edges",
            "read_matrix",
            "read_signals",
            "save_dataset",
            "write_edges",
            "write_matrix",
        ],
        "neighbours": ["nearest_pairs"],
        "real": ["Split", "digits", "mnist", "sp500"],
        "signals": [
            "Filter",
            "Heat",
            "Metric",
            "SquareRootInverse",
            "Tikhonov",
            "adjacency_of",
            "distances",
            "expected_distances",
            "smooth_signals",
            "transformed",
        ],
        "tables": ["read_table", "write_table"],
    },
)
