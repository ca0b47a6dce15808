"""The report: one HTML page with the learned graphs, their uncertainty, and the reasons."""

from .report import Report

__all__ = ["Report"]
