"""`edgebelief explain`: why an edge is believed in, and what a model has learned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from ..data.tables import write_table
from ..errors import InputError
from ..estimators import load
from ..report.words import probability
from .inputs import Given
from .outputs import PICTURES, TABLES, check_target, save_picture
from .session import Misused, Session
from .verdicts import conclude


def explained(
    this: Session,
    model: Path,
    given: Given,
    pair: tuple[str | None, str | None, int],
    out: Path | None,
    force: bool,
) -> None:
    """Run `edgebelief explain`."""
    source, target, graph = pair
    about_a_pair = source is not None and target is not None
    if (source is None) != (target is None) or about_a_pair != bool(given.paths):
        raise Misused("a pair is --source, --target and the DATA it is in; give all three or none.")
    if out is not None:
        check_target(out, force, (*PICTURES, *TABLES), [model, *given.read_files])
        if about_a_pair and out.suffix.lower() in PICTURES:
            raise Misused(f"{out}: the explanation of a pair is a table; use .csv or .parquet.")
    learner = load(model)
    if about_a_pair:
        X, _ = given.read_for(learner)
        table = given.apply(learner.explain, X, source, target, graph)
        p = table.attrs["probability"]
        this.say(
            f"{source} and {target}: probability {probability(p)}. What its logit is the sum of:"
        )
        values = ["" if pd.isna(x) else f"{x:.3g}" for x in table["value"]]
        this.show(table.assign(value=values))
        this.answer = {"probability": p, "parts": records_of(table)}
    else:
        readout = learner.model_.readout
        if not readout.terms:
            raise InputError(
                f"{model}: its readout, {type(readout).__name__}, has no terms; name a pair "
                f"(--source, --target), or fit with --readout additive."
            )
        table = learner.terms()
        this.show(table, "terms, by how much they move the logit")
        needed = table["needed"].sum()
        this.say(f"the labels need {needed} of {len(table)}; the bands of the others hold zero")
        this.answer = {"terms": records_of(table)}
    if out is not None:
        if out.suffix.lower() in PICTURES:
            from ..plots import TermsDisplay

            save_picture(out, lambda: TermsDisplay.of(learner.posterior_).plot()[0].figure)
        else:
            write_table(out, table)
        this.say(f"written to {out}")
    conclude(this, learner.posterior_.verdict)


def records_of(table: pd.DataFrame | None) -> list[dict[str, Any]] | None:
    """Return the rows of a table for JSON, which has no NaN."""
    if table is None:
        return None
    named = table if isinstance(table.index, pd.RangeIndex) else table.reset_index(names="name")
    return named.astype(object).where(named.notna(), None).to_dict("records")  # type: ignore[return-value]
