import inspect

import pytest

import edgebelief
from edgebelief import (
    amortise,
    belief,
    convex,
    data,
    estimators,
    evidence,
    fleet,
    infer,
    metrics,
    networks,
    plots,
    readouts,
    report,
)

MODULES = [edgebelief, belief, convex, data, estimators, infer, metrics, networks, plots]
MODULES += [amortise, evidence, fleet, readouts, report]

PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name):
    thing = PUBLIC[name]
    documentation = inspect.getdoc(thing)
    if inspect.isfunction(thing):
        assert "Examples\n--------" in documentation
    elif not hasattr(thing, "__args__"):  # an alias of a type has the type's own
        assert documentation
