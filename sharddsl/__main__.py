"""`python -m sharddsl`."""

from sharddsl.cli.main import entry

entry()
