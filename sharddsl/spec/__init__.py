"""`.shard` files as values: `load` or `parse` gives a `Loaded`, its `checked()` a `Spec`."""

from sharddsl.search import list_specs
from sharddsl.spec.evaluate import EvaluationError, Value, evaluate
from sharddsl.spec.load import Loaded, load, parse
from sharddsl.spec.mesh import mesh_of, with_mesh
from sharddsl.spec.model import Spec

__all__ = [
    "EvaluationError",
    "Loaded",
    "Spec",
    "Value",
    "evaluate",
    "list_specs",
    "load",
    "mesh_of",
    "parse",
    "with_mesh",
]
