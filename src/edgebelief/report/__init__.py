"""The report: one page of HTML that tells what was learned, how sure it is, and why."""

from .report import Report

__all__ = ["Report"]
