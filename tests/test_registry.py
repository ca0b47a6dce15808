"""The registry is the one table of names: everyone who takes a name takes these and no others."""

import inspect
import subprocess
import sys

import pytest
import typer

from edgebelief import GraphLearner, registry
from edgebelief.amortise.evidence import PretrainedBelief
from edgebelief.belief.checks import _STATISTICS
from edgebelief.cli import main
from edgebelief.cli.app import app
from edgebelief.data import Ensemble
from edgebelief.data.ensembles import StochasticBlock
from edgebelief.estimators.settings import engine_of, network_of, readout_of
from edgebelief.estimators.simulate import ensemble_of
from edgebelief.evidence import Custom, Evidence
from edgebelief.infer import Engine, Likelihood, Marginal, Prior
from edgebelief.infer.priors import _NAMED
from edgebelief.networks import DPG, Network
from edgebelief.readouts import Readout
from evidence.test_kinds import EVIDENCE
from infer.engines.test_engines import ENGINES
from networks.test_conformance import NETWORKS
from readouts.test_readout_conformance import READOUTS

TABLES = {
    "NETWORKS": Network,
    "READOUTS": Readout,
    "ENGINES": Engine,
    "PRIORS": Prior,
    "MARGINALS": Marginal,
    "ENSEMBLES": Ensemble,
    "EVIDENCE": Evidence,
}
ENTRIES = [
    pytest.param(name, entry, base, id=f"{table}-{name}")
    for table, base in TABLES.items()
    for name, entry in getattr(registry, table).items()
]


@pytest.mark.parametrize(("name", "entry", "base"), ENTRIES)
def test_every_name_is_a_class_with_a_meaning(name, entry, base):
    assert issubclass(entry.load(), base)
    assert entry.load().__name__ == entry.class_name
    assert entry.meaning


@pytest.mark.parametrize("name", registry.MARGINALS)
def test_marginals_are_made_by_functions_that_check(name):
    entry = registry.MARGINALS[name]
    fields = entry.meaning.split(", ")
    assert isinstance(entry.make(**dict(zip(fields, (1.0, 2.0), strict=False))), entry.load())
    with pytest.raises((TypeError, ValueError)):
        entry.make(**dict.fromkeys(fields, "x"))


def classes(base):
    """All that can be made of a base class in the package."""
    below = [*base.__subclasses__()]
    for one in below:
        below += one.__subclasses__()
    return {one for one in below if one.__module__.startswith("edgebelief.")}


@pytest.mark.parametrize("base", [Network, Readout, Engine, Marginal, Likelihood])
def test_no_class_is_missing(base):
    known = {part.load() for part in registry.PARTS.values()}
    assert {one for one in classes(base) if not inspect.isabstract(one)} <= known


def test_no_ensemble_is_missing():
    """A block model takes the blocks, which no density gives."""
    known = {entry.load() for entry in registry.ENSEMBLES.values()}
    assert classes(Ensemble) - known == {StochasticBlock}


def test_no_evidence_is_missing():
    """A user's own has no name of ours, and a learner without labels is not asked for its own."""
    known = {name: entry.load() for name, entry in registry.EVIDENCE.items()}
    assert classes(Evidence) - set(known.values()) == {Custom, PretrainedBelief}
    assert all(kind.name == name for name, kind in known.items())


@pytest.mark.parametrize(
    ("table", "tested"),
    [
        (registry.NETWORKS, [case.network for case in NETWORKS.values()]),
        (registry.READOUTS, [readout for readout, _ in READOUTS.values()]),
        (registry.ENGINES, [getattr(one, "values", [one])[0] for one in ENGINES]),
        (registry.EVIDENCE, EVIDENCE),
    ],
    ids=["networks", "readouts", "engines", "evidence"],
)
def test_everything_is_in_the_conformance_tests(table, tested):
    assert {entry.load() for entry in table.values()} <= {type(one) for one in tested}


def test_every_readout_of_a_model_file_is_in_the_conformance_test():
    readouts = {part.load() for part in registry.PARTS.values()} & classes(Readout)
    assert readouts == {type(readout) for readout, _ in READOUTS.values()}


def test_settings_take_the_names_and_no_others():
    for name, entry in registry.NETWORKS.items():
        assert type(network_of(name, 3)) is entry.load()
    assert network_of("mimo-e", 3).base.depth == network_of("dpg", 3).depth == 3
    for name, entry in registry.READOUTS.items():
        assert type(readout_of(name, DPG())) is entry.load()
    assert type(readout_of("auto", DPG())) is registry.READOUTS["additive"].load()
    for name, entry in registry.ENGINES.items():
        assert type(engine_of(name)) is entry.load()
    for name, entry in registry.ENSEMBLES.items():
        assert type(ensemble_of(name, 20, 0.2)) is entry.load()
    for network in registry.NETWORKS:
        for name in registry.PRIORS:
            assert Prior.named(name, network_of(network, 3).kind)
    assert set(registry.PRIORS) == set(_NAMED["dpg"])
    assert list(registry.STATISTICS) == list(_STATISTICS)


@pytest.mark.parametrize(
    ("setting", "table"),
    [("network", "NETWORKS"), ("readout", "READOUTS"), ("inference", "ENGINES")],
)
def test_a_learner_says_which_names_there_are(setting, table):
    with pytest.raises(ValueError, match=setting) as caught:
        GraphLearner(**{setting: "none"}).fit([[0, 1], [1, 0]], [[0, 1], [1, 0]])
    assert str(sorted(getattr(registry, table))) in str(caught.value)


# The command line

OPTIONS = [
    ("fit", "--network", registry.NETWORKS),
    ("fit", "--readout", [*registry.READOUTS, "auto"]),
    ("fit", "--inference", [*registry.ENGINES, "auto"]),
    ("fit", "--prior", registry.PRIORS),
    ("check", "--network", registry.NETWORKS),
    ("check", "--statistic", registry.STATISTICS),
    ("simulate", "--ensemble", registry.ENSEMBLES),
]


@pytest.mark.parametrize(("command", "option", "names"), OPTIONS)
def test_the_command_takes_the_names_and_no_others(
    command, option, names, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    arguments = {
        "fit": ["none.csv", "--out", "m.eb"],
        "check": ["none.csv"],
        "simulate": ["--out", "no-folder/o.npz"],
    }[command]
    for name in names:
        assert main([command, *arguments, option, name]) == 3, (
            name
        )  # the name is good, the path not
    capsys.readouterr()
    assert main([command, *arguments, option, "none"]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in names)
    monkeypatch.setenv("COLUMNS", "1000")
    assert main([command, "--help"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if f" {option} " in line)
    assert all(name in row for name in names)


def options_of(command):
    parameters = typer.main.get_command(app).commands[command].params
    return {one.name: (one.opts, one.default, one.help) for one in parameters}


def test_check_takes_the_options_of_a_model_that_fit_takes():
    """Not the engine: a prior has no use for one. Nor those for folders."""
    fit, check = options_of("fit"), options_of("check")
    assert set(fit) - set(check) == {"inference", "each", "jobs"}
    assert set(check) - set(fit) == {"model", "statistic", "draws"}
    shared = (set(fit) & set(check)) - {"out"}  # which of a check is optional
    assert {name: fit[name] for name in shared} == {name: check[name] for name in shared}


# A search for neighbours is an object.
SETTINGS = [name for name in GraphLearner().get_params() if name != "neighbors"]


@pytest.mark.parametrize("setting", SETTINGS)
def test_fit_has_an_option_for_every_setting(setting):
    assert {"random_state": "seed"}.get(setting, setting) in options_of("fit")


LIGHT = """
import sys
from edgebelief import registry
from edgebelief.cli import main
assert main(["fit", "--help"]) == main(["check", "--help"]) == 0
assert main(["fit", "none.csv", "--out", "m.eb", "--network", "none"]) == 2
assert not {"jax", "numpy", "pandas", "scipy"} & set(sys.modules)
"""

# As if the file had one more line for each.
ONE_MORE_LINE = """
import sys
from edgebelief import registry
registry.ENGINES["quick"] = registry.Entry("infer.engines.map:MAP", "a new engine")
registry.NETWORKS["shallow"] = registry.Entry("networks.dpg:DPG", "a new network")
from edgebelief.cli import main
assert main(["simulate", "--nodes", "6", "--graphs", "3", "--out", "data.npz"]) == 0
fit = ["fit", "data.npz", "--depth", "2", "--network", "shallow", "--inference", "quick"]
assert main([*fit, "--out", "m.eb"]) in (0, 4)
assert main(["info", "m.eb"]) == 0
assert main(["fit", "--help"]) == 0
"""


def ran(script, folder):
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_names_are_listed_without_jax_and_numpy(tmp_path):
    assert "mimo-e" in ran(LIGHT, tmp_path)


def test_a_line_in_the_registry_is_enough(tmp_path):
    said = " ".join(ran(ONE_MORE_LINE, tmp_path).split())
    assert "inference='quick'" in said
    assert "network='shallow'" in said
    assert "shallow" in said.rpartition("Usage:")[2]
