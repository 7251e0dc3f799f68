"""Findings over a whole spec, judged over all the cases that it is meant for."""

from sharddsl.lint.cases import Case, case_of_inventory, case_of_model, cases_of_checks
from sharddsl.lint.judge import Judged, Report, judge

__all__ = ["Case", "Judged", "Report", "case_of_inventory", "case_of_model", "cases_of_checks", "judge"]
