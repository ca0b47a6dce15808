"""The library's messages speak of arguments; in a shell these are options."""

from __future__ import annotations

import re

NAMES = (
    "bootstrap|cost|costs|degree|density|depth|fdr|inference|level|mass|metric|missing|network|"
    "prior|readout|scale|"
    "theta|threshold|top_k|transform"
)
# What has another name here, or is not to be had; first come, first served.
PHRASES = (
    (r"\bthe metric '(\S+)'", r"--metric \1"),
    (r"metric='sqeuclidean', 'log-euclidean' or 'correlation'", "--metric sqeuclidean, "
     "log-euclidean or correlation"),
    (r"\(X\.T\)", "(--transpose)"),
    (r"\bweighted=True", "--weighted"),
    (r"([Ll]eave) weighted out", r"\1 --weighted out"),
    (r"\bsize_aware (takes|has|is)\b", r"--size-aware \1"),
    (r", leave the node out, or leave the pair out through a support", ", or leave the node out"),
    (r"give a file that we saved", "give what `edgebelief fit` wrote"),
    (r"leave the node out(?! \()", "leave the node out (--nodes)"),
    (r"\btheta_for\(e, degree=\.\.\.\) finds", "--degree finds"),
    (r"Say value=\.*", "Keep one of them beside source and target."),
    (r"Multiply the distances by (\S+): then", r"Multiply the distances (--scale \1): then"),
    (r"Pass covariates=\.\.\., with", "Give --covariates, with"),
    (r" raise n_draws,", ""),
    (r"(?:\ba callable, for your own|, or a function|, or pass one|, or an engine)", ""),
    (rf"\b({NAMES})=['\"]?([\w.-]*[\w-])['\"]?", r"--\1 \2"),
    (rf"^({NAMES}) (must|is|has)\b", r"--\1 \2"),
)  # fmt: skip


def for_a_shell(text: str) -> str:
    """One line, with options in the place of arguments.

    Examples
    --------
    >>> from edgebelief.cli.words import for_a_shell
    >>> for_a_shell("use for each pair what there is (missing='pairwise').")
    'use for each pair what there is (--missing pairwise).'
    """
    text = " ".join(text.split())
    for pattern, words in PHRASES:
        text = re.sub(pattern, words, text)
    return text.replace("--top_k", "--top-k").replace("--costs", "--cost")


def about_an_option(text: str) -> bool:
    """Whether a message is about an option rather than about data."""
    return re.match(rf"({NAMES}) (must|is)\b", text) is not None
