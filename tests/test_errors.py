"""Errors are data; the library and the shell each make a sentence of the same parts."""

import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import edgebelief
from edgebelief.cli import session
from edgebelief.cli.inputs import Given
from edgebelief.cli.session import BAD_INPUT, RESOURCES, USAGE, Misused, one_line, option
from edgebelief.data import GraphDataset, distances
from edgebelief.data.coerce import graphs_from
from edgebelief.errors import (
    DoesNotApply,
    InputError,
    InputIndexError,
    InputTypeError,
    InputWarning,
    Message,
    NoRoom,
    Remedy,
    Setting,
    SettingError,
    SettingTypeError,
)
from edgebelief.persist.modelfile import ModelFileError
from edgebelief.validate import check_distances, check_labels, check_signals, check_theta

PAIRWISE = Remedy("use what there is", Setting("missing", "pairwise"))
SUPPORT = Remedy("leave the pair out through a {}", Setting("", python="support"))
GAP = {"argument": "signals", "graph": 2, "where": (5, "ada")}


# Parts and the library's sentence


def test_the_parts_of_an_error_that_a_check_raises():
    e = np.ones(6)
    e[4] = np.nan
    with pytest.raises(InputError) as caught:
        GraphDataset([np.ones(6), e], names=[list("abcd"), list("efgh")])
    error = caught.value
    assert (error.argument, error.graph, error.where) == ("distances", 1, ("f", "h"))
    assert str(error) == (
        "graph 1: distances['f', 'h'] is nan; fill the gap, leave the node out, or leave the pair "
        "out through a support."
    )


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (InputError("all of it."), "all of it."),
        (InputError("is odd", argument="labels"), "labels is odd"),
        (InputError("is odd.", where=(1, "a")), "[1, 'a'] is odd."),
        (InputError("is odd.", where="x.csv, row 3"), "x.csv, row 3: is odd."),
        (InputError("is odd.", graph="x.csv", argument="A"), "x.csv: A is odd."),
        (InputError("it is odd", remedy="mend it"), "it is odd; mend it."),
        (InputError("It is odd.", remedy="Mend it"), "It is odd. Mend it."),
        (InputError("it is odd", remedy=["Mend it", "drop it"]), "it is odd. Mend it, or drop it."),
        (InputError("which?", remedy=["this", "that"]), "which? This, or that."),
        (InputError("is odd", **GAP, remedy=["a", "b", "c"]),
         "graph 2: signals[5, 'ada'] is odd; a, b, or c."),
        (SettingError("must be 3.", argument="top_k"), "top_k must be 3."),
        (InputWarning("is odd.", graph=0, argument="X"), "graph 0: X is odd."),
    ],
)  # fmt: skip
def test_the_sentence_of_the_library(message, sentence):
    assert str(message) == sentence


def test_long_values_are_cut_in_the_middle_with_their_length():
    error = InputError(f"{'x' * 5000!r}, no number", where="t.csv, row 3", remedy="Correct it")
    sentence = str(error)
    assert sentence.startswith("t.csv, row 3: 'xxx")
    assert "x...(5,000 characters)...x" in sentence
    assert sentence.endswith("x', no number. Correct it.")
    assert len(sentence) < 250
    assert one_line(error) == sentence
    assert len(error.problem) > 5000  # the parts keep the whole


def test_a_long_sentence_keeps_its_beginning_and_its_end():
    sentence = str(InputError("a b " * 1000, where="t.csv", remedy="mend it"))
    assert len(sentence) <= 480
    assert sentence.startswith("t.csv: a b")
    assert sentence.endswith("; mend it.")
    assert "characters)..." in sentence


def test_settings_as_python_writes_them():
    assert str(Setting("missing", "pairwise")) == "missing='pairwise'"
    assert str(Setting("weighted", True)) == "weighted=True"
    assert str(Setting("weighted")) == "weighted"
    assert str(Setting("value", ...)) == "value=..."
    assert str(Setting("transpose", True, python="X.T")) == "X.T"
    error = InputError("a gap", remedy=[Remedy("leave the node out", Setting("nodes", python=""))])
    assert str(error) == "a gap; leave the node out."


# The shell's sentence


@pytest.mark.parametrize(
    ("setting", "written"),
    [
        (Setting("missing", "pairwise"), "--missing pairwise"),
        (Setting("top_k", 1), "--top-k 1"),
        (Setting("scale", 1e-06), "--scale 1e-06"),
        (Setting("weighted", True), "--weighted"),
        (Setting("covariates", ...), "--covariates"),
        (Setting("nodes", python=""), "--nodes"),
        (Setting("support", "knn"), "--support knn"),
        (Setting("n_neighbors", 5), "--neighbours 5"),
        (Setting("tol"), None),
    ],
)
def test_settings_as_a_shell_writes_them(setting, written):
    assert option(setting) == written


def test_both_sentences_come_from_the_same_parts():
    error = InputError("is nan", **GAP, remedy=["fill it", PAIRWISE, SUPPORT])
    assert str(error) == (
        "graph 2: signals[5, 'ada'] is nan; fill it, use what there is (missing='pairwise'), or "
        "leave the pair out through a support."
    )
    assert one_line(error) == (
        "graph 2: signals[5, 'ada'] is nan; fill it, or use what there is (--missing pairwise)."
    )


def test_what_a_shell_cannot_do_is_left_out():
    assert one_line(InputError("it is nan", remedy=SUPPORT)) == "it is nan."
    assert one_line(InputError("which?", remedy=[SUPPORT, "keep one"])) == "which? Keep one."


def test_the_subject_of_a_bad_setting_is_the_option():
    with pytest.raises(SettingError) as caught:
        check_theta(-1)
    assert str(caught.value).startswith("theta must be positive and finite; got -1.")
    assert "theta_for(e, degree=...) finds one" in str(caught.value)
    assert one_line(caught.value).startswith("--theta must be positive and finite; got -1.")
    assert one_line(caught.value).endswith("--degree finds one for a wanted number.")
    assert one_line(SettingError("is odd.", argument="n_draws")) == "n_draws is odd."


def test_an_error_is_one_line_in_a_shell():
    assert one_line(InputError("is\n  odd.", argument="X")) == "X is odd."
    assert one_line(UserWarning("of\nsomebody else")) == "of somebody else"


@pytest.mark.parametrize(
    ("call", "library", "shell"),
    [
        (lambda: check_labels([0, 3.0, 1], edgebelief.edges.Complete(3)),
         "(weighted=True)", "(--weighted)"),
        (lambda: check_signals([[1.0, np.nan]]), "(missing='pairwise')", "(--missing pairwise)"),
        (lambda: check_distances([1.0, np.inf, 1]), "leave the node out,", "(--nodes)"),
        (lambda: distances([[1.0, 1.0]], "log-euclidean"), "metric='sqeuclid", "--metric sqeuclid"),
    ],
)  # fmt: skip
def test_remedies_of_checks_in_both_places(call, library, shell):
    with pytest.raises(InputError) as caught:
        call()
    assert library in str(caught.value)
    assert shell in one_line(caught.value)
    assert library not in one_line(caught.value)


# The shell knows the files


def test_a_cell_is_named_by_its_row_in_the_file(tmp_path):
    given = Given([tmp_path / "x.csv"])
    with pytest.raises(InputError) as caught:
        given.blame(lambda: graphs_from([[1.0, 2.0], [np.nan, 1]], metric="sqeuclidean"))
    assert one_line(caught.value).startswith(f"{tmp_path}/x.csv, row 3, column 0: is nan; fill")
    assert caught.value.where == f"{tmp_path}/x.csv, row 3, column 0"


@pytest.mark.parametrize(
    ("paths", "where"),
    [(["a.csv", "b.csv"], "b.csv: distances"), (["a.npz"], "a.npz: graph 1: distances")],
)
def test_a_graph_is_named_by_its_file(paths, where):
    with pytest.raises(InputError) as caught:
        Given([Path(path) for path in paths]).blame(lambda: GraphDataset([[1.0], [np.nan]]))
    assert one_line(caught.value).startswith(f"{where}[0, 1] is nan")


def test_a_bad_setting_is_no_file():
    with pytest.raises(SettingError, match=r"^metric must be one of"):
        Given([Path("a.csv")]).blame(lambda: graphs_from([[1.0]], metric="cosine"))


def test_warnings_are_named_too():
    data = GraphDataset([[1.0, 2.0, 3.0]])
    with pytest.warns(InputWarning, match=r"^b.csv: all its distances are 1") as caught:
        Given([Path("a.csv"), Path("b.csv")]).blame(
            lambda: edgebelief.data.coerce.warn_if_alike(data + GraphDataset([[1.0, 1.0, 1.0]]))
        )
    assert caught[0].message.graph == "b.csv"


# Types


def test_kinds_of_errors():
    assert issubclass(InputError, ValueError)
    for kind in (InputTypeError, SettingTypeError):
        assert issubclass(kind, TypeError)
        assert issubclass(kind, InputError)
    assert issubclass(InputIndexError, IndexError)
    assert issubclass(DoesNotApply, SettingError)
    assert issubclass(ModelFileError, InputError)
    assert edgebelief.infer.DoesNotApply is DoesNotApply
    assert not issubclass(InputTypeError, SettingError)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("x"), BAD_INPUT),
        (InputTypeError("x"), BAD_INPUT),
        (ModelFileError("x"), BAD_INPUT),
        (FileNotFoundError("x"), BAD_INPUT),
        (SettingError("x"), USAGE),
        (SettingTypeError("x"), USAGE),
        (DoesNotApply("x"), USAGE),
        (Misused("x"), USAGE),
        (NoRoom("x"), RESOURCES),
        (ValueError("not ours"), session.BUG),
        (TypeError("not ours"), session.BUG),
    ],
)
def test_the_type_decides_the_exit_code(error, code):
    assert session._judged(error)[0] == code


def test_a_value_error_that_we_did_not_word_is_a_bug(monkeypatch, tmp_path, capsys):
    from edgebelief.cli import info, main

    (tmp_path / "x.csv").write_text("a,b\n1,2\n")

    def bug(*_):
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr(info, "_tell_table", bug)
    with pytest.raises(ValueError, match="broadcast"):
        main(["info", str(tmp_path / "x.csv")])
    assert "a mistake in edgebelief" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [InputError, SettingTypeError, InputIndexError, InputWarning])
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_copies_keep_the_parts(kind, again):
    error = kind("is nan", **GAP, remedy=["fill it", PAIRWISE, SUPPORT])
    other = again(error)
    assert type(other) is kind
    assert vars(other) == vars(error)
    assert str(other) == str(error)
    assert one_line(other) == one_line(error)


def test_other_parts_leave_the_error_as_it_was():
    """Also where a library has changed how exceptions are copied."""
    error = SettingError("is odd.", argument="depth")
    other = error.but(graph=3)
    assert (error.graph, other.graph) == (None, 3)
    assert (type(other), str(other)) == (SettingError, "graph 3: depth is odd.")


def test_a_graph_that_is_not_there():
    data = GraphDataset([[1.0], [2.0]])
    with pytest.raises(IndexError, match="there is no graph 2; there are 0 to 1"):
        data[2]
    assert [record.e[0] for record in data] == [1, 2]
    assert data[-1].e[0] == 2


def test_every_refusal_of_ours_is_an_input_error():
    """A plain ValueError would be taken for a bug by the shell; what is caught at once may be."""
    package = Path(edgebelief.__file__).parent
    plain = re.compile(r"(raise|return) (ValueError|TypeError|IndexError|ArithmeticError)\(")
    found = {path.name for path in package.rglob("*.py") if plain.search(path.read_text())}
    assert found <= {"validate.py"}
    assert issubclass(Message, Exception)
