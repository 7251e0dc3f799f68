"""How wide what is printed may be."""

from __future__ import annotations

import os
import sys

_PAGE = 100
"""Columns where the output is no terminal: what the documentation shows, and what most files and pagers fit."""


def page_width() -> int:
    """Columns to lay stdout out for: COLUMNS, else the terminal's, else a page's."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or _PAGE
    except OSError:
        return _PAGE
