"""`sharddsl schema`: the JSON schema of a validated spec."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sharddsl.cli.arguments import Parser


def main(argv: Sequence[str]) -> int:
    Parser(
        "schema", "Print the JSON schema of a validated spec (`sharddsl.spec.model.Spec`).", with_config=False
    ).parse(argv)
    from sharddsl.spec.model import Spec

    print(json.dumps(Spec.model_json_schema(), indent=2))
    return 0
