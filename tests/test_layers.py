"""The order of the package: a file imports only from rows above it in docs/architecture.md.

That page is the one place where the order is written. Every import counts: at the top of a file,
inside a function, for type checkers alone, and the places that the registry names as text.
"""

import ast
import graphlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "edgebelief"
PAGE = ROOT / "docs" / "architecture.md"


def rows(page: str, known: set[str]) -> dict[str, float]:
    """The row of each module (a path without .py) in the tree of the page.

    An indented row belongs to the folder above it. `*.py` is the row of all files of a folder that
    have no other: a new network or engine needs none. The `__init__` of a folder, which gathers
    its names, comes after the last module in it; that of the package is listed.
    """
    block = page.split("```")[1]
    order: dict[str, float] = {}
    others: dict[str, float] = {}
    folders: list[tuple[int, str]] = []
    for number, line in enumerate(block.splitlines()):
        indent = len(line) - len(line.lstrip())
        names = re.match(r"(?:[\w*/]+(?:\.py|/)\s*)+", line.strip())
        if not names or line.startswith("src/"):
            continue
        if indent == 0:  # another tree, such as tests/
            break
        while folders and folders[-1][0] >= indent:
            folders.pop()
        parent = folders[-1][1] if folders else ""
        for name in names[0].split():
            if name.endswith("/"):
                folders.append((indent, parent + name))
                order.setdefault(parent + name + "__init__", number)
                continue
            if name == "*.py":
                others[parent] = number
            else:
                order[parent + name.removesuffix(".py")] = number
            for _, folder in folders:
                order[folder + "__init__"] = number + 0.5
    for module in known - set(order):
        folder = module[: module.rfind("/") + 1]
        if folder in others:
            order[module] = others[folder]
    return order


def modules() -> dict[str, str]:
    """The source of each module of the package, by its path without .py."""
    return {
        str(path.relative_to(PACKAGE).with_suffix("")): path.read_text()
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def imports(module: str, source: str, known: set[str]) -> set[str]:
    """The modules of the package that a module imports, wherever in it."""
    targets = set()
    folder = module.split("/")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "edgebelief":
                    targets.add(_module(alias.name.split(".")[1:], known))
        elif isinstance(node, ast.ImportFrom):
            path = (node.module or "").split(".") if node.module else []
            if node.level:
                path = folder[: len(folder) - node.level + 1] + path
            elif path[:1] == ["edgebelief"]:
                path = path[1:]
            else:
                continue
            targets |= {_module([*path, alias.name], known) for alias in node.names}
    if module == "registry":
        homes = re.findall(r'"([\w.]+):\w+"', source)
        targets |= {_module(home.split("."), known) for home in homes}
    return targets - {module}


def _module(path: list[str], known: set[str]) -> str:
    """The module that a dotted path leads to: a file, or the `__init__` of a folder."""
    while path:
        for name in ("/".join(path), "/".join([*path, "__init__"])):
            if name in known:
                return name
        path = path[:-1]
    return "__init__"


def upward(sources: dict[str, str], order: dict[str, float]) -> list[str]:
    """The imports that do not point to a row above."""
    known = set(sources)
    return [
        f"{module} imports {target}"
        for module, source in sources.items()
        for target in sorted(imports(module, source, known))
        if order[target] >= order[module]
    ]


@pytest.fixture(scope="module")
def order(sources):
    return rows(PAGE.read_text(), set(sources))


@pytest.fixture(scope="module")
def sources():
    return modules()


def test_every_module_has_a_row_and_every_row_a_module(order, sources):
    assert set(sources) == set(order)


def test_every_import_points_to_a_row_above(order, sources):
    assert upward(sources, order) == []


def test_imports_have_no_cycle(sources):
    known = set(sources)
    graph = {module: imports(module, source, known) for module, source in sources.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError


@pytest.mark.parametrize(
    "line",
    [
        "from .cli.app import app",
        "import edgebelief.cli.app",
        "def lazy():\n    from edgebelief.cli import app",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .cli.app import app",
    ],
)
def test_an_import_that_points_down_is_noticed(order, sources, line):
    changed = {**sources, "edges": f"{sources['edges']}\n{line}\n"}
    (found,) = upward(changed, order)
    assert found == "edges imports cli/app"
