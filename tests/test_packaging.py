"""What the files about the package say of it agrees."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import edgebelief

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def requirements(*extras):
    """By name, without those that ask for the package itself with an extra."""
    lines = sum((EXTRAS[extra] for extra in extras), PROJECT["dependencies"])
    return {need.name: need.specifier for need in map(Requirement, lines)} | {"edgebelief": None}


def pinned(file):
    """By name, in the order of the file."""
    return dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / file).read_text(), re.MULTILINE))


def test_oldest_versions_are_those_that_the_project_allows():
    allowed = {
        name: str(need)[2:] for name, need in requirements("data", "large", "test").items() if need
    }
    assert allowed.items() <= pinned("constraints-minimum.txt").items()


@pytest.mark.parametrize("name", requirements("data", "large", "test", "docs", "dev"))
def test_versions_of_the_tests_are_allowed(name):
    need = requirements("data", "large", "test", "docs", "dev")[name]
    assert need is None or pinned("constraints.txt")[name] in need


def test_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {edgebelief.__version__}\n" in citation
    assert f"\nrepository-code: {PROJECT['urls']['Source']}\n" in citation
