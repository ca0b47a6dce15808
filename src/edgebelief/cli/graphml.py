"""Labels from GraphML, which NetworkX reads once the file is known to be sound and not too large.

NetworkX makes a node of any name that an edge mentions, takes the last of two nodes with one id,
and builds the whole tree first. So a pass over the file's tags comes before.
"""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat

import networkx as nx
import pandas as pd

from ..bounds import check_bytes, check_cells, check_file
from ..data.coerce import check_has_weights
from ..errors import InputError
from ..validate import check_names

# A tag becomes a kilobyte of objects in NetworkX. Half a million edges with a weight each.
MAX_TAGS = 2**20
# graphml, graph, node, data, and what editors of graphs put in there.
MAX_DEPTH = 32
# Of text and attributes between the tags.
MAX_XML_BYTES = 2**27


def read_graphml(path: Path, weighted: bool = False) -> pd.DataFrame:
    """Read the adjacency of a graph; nodes are called by their attribute name or label, or id."""
    check_file(path)
    _check_tags(path)
    try:
        graph = nx.read_graphml(path)
    except Exception as error:
        raise InputError(f"not GraphML ({error}).", where=path) from None
    if graph.is_directed():
        problem = "the graph is directed; edges here have no direction. Save it as undirected."
        raise InputError(problem, where=path)
    named = {node: str(node) for node in graph}
    for key in ("label", "name"):  # of which the last counts
        attributes = dict(graph.nodes(data=key))
        if None not in attributes.values():
            named = {node: str(value) for node, value in attributes.items()}
    check_names(named.values(), len(named), "node names", path)
    check_cells(len(named) ** 2, path, f"as a matrix of {len(named):,} nodes has")
    named_graph = nx.Graph(nx.relabel_nodes(graph, named))
    if weighted:
        try:
            check_has_weights(named_graph)
        except InputError as error:
            raise error.but(graph=str(path)) from None
    try:
        return nx.to_pandas_adjacency(named_graph, weight="weight" if weighted else None)
    except (TypeError, ValueError) as error:
        raise InputError(f"a weight is no number ({error}).", where=path) from None


def _check_tags(path: Path) -> None:
    check_bytes(path.stat().st_size, path, most=MAX_XML_BYTES)
    tags = _Tags(path)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = tags.start, tags.end
    parser.StartDoctypeDeclHandler = tags.doctype
    try:
        with path.open("rb") as file:
            parser.ParseFile(file)
    except expat.ExpatError as error:
        raise InputError(f"not GraphML ({error}).", where=path) from None
    tags.check_ends()


class _Tags:
    """What the tags of a file say of its nodes and edges, checked as they come."""

    def __init__(self, path: Path):
        self.path = path
        self.n_tags = self.n_graphs = self.depth = 0
        self.nodes: set[str] = set()
        self.edges: set[frozenset[str]] = set()

    def doctype(self, *_: object) -> None:
        raise self._wrong("has a DOCTYPE, whose entities may be of any size", "Remove it")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.n_tags, self.depth = self.n_tags + 1, self.depth + 1
        if self.n_tags > MAX_TAGS:
            raise self._wrong(f"has more than {MAX_TAGS:,} tags", "save it as a table of edges")
        if self.depth > MAX_DEPTH:
            raise self._wrong(f"has tags nested deeper than {MAX_DEPTH}", "save it again")
        match tag.rpartition(" ")[2]:
            case "graph":
                self.n_graphs += 1
                if self.n_graphs > 1:
                    raise self._wrong("holds more than one graph", "Give a file for each")
            case "node":
                node = attributes.get("id", "")
                if node in self.nodes:
                    raise self._wrong(f"has two nodes with the id {node!r}", "Remove one")
                self.nodes.add(node)
            case "edge":
                self._edge(attributes.get("source", ""), attributes.get("target", ""))

    def _edge(self, source: str, target: str) -> None:
        if source == target:
            raise self._wrong(f"joins the node {source!r} to itself", "Remove that edge")
        ends = frozenset((source, target))
        if ends in self.edges:
            problem = f"has the edge between {source!r} and {target!r} twice (no edge has a "
            raise self._wrong(f"{problem}direction)", "Keep one")
        self.edges.add(ends)

    def end(self, tag: str) -> None:
        self.depth -= 1

    def check_ends(self) -> None:
        """Refuse edges of nodes that there are not, in the whole file: an edge may come first."""
        if unknown := set().union(*self.edges) - self.nodes:
            some = sorted(unknown)[:5]
            raise self._wrong(f"has edges to {some}, which are none of its nodes", "Add the nodes")

    def _wrong(self, problem: str, remedy: str) -> InputError:
        return InputError(problem, where=self.path, remedy=remedy)
