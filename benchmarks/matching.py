"""How resolving grows with rules and with tensors: `python benchmarks/matching.py`.

The tensors are params of many blocks, each path a different one, some of them layers with a subscript; the rules are
literal paths, globs, alternatives, subscripts and `**`, a few of them for every tensor. Times are CPU seconds of one
thread for the whole `resolve` (matching, axes, findings), the best of three.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from sharddsl import layout
from sharddsl.findings import NOWHERE, Location
from sharddsl.layout import MeshSizes
from sharddsl.spec.model import Axes, AxisRef, Named, Pattern, Positional, Rule, Segment, Spec
from sharddsl.spec.model import DimEntry as Dim
from sharddsl.tensors import Inventory, Path, Tensor

MESH = MeshSizes({"fsdp": 8, "mp": 4})
WEIGHTS = ("attn.wq", "attn.wk", "attn.wv", "attn.wo", "mlp.w_gate", "mlp.w_in", "mlp.w_out", "norm.scale")
BY_NAME = Named(entries=(Dim(dim="embed", entry=Axes(axes=(AxisRef(name="fsdp"),))),))
BY_PLACE = Positional(entries=(Axes(axes=(AxisRef(name="fsdp"),)), Axes(axes=(AxisRef(name="mp"),))))


def tensors(count: int) -> Inventory:
    """`count` weights of distinct paths: half in blocks of a name of their own, half in layers with a subscript."""
    held = []
    for number in range(count):
        block, weight = divmod(number, len(WEIGHTS))
        segments = tuple(WEIGHTS[weight].split("."))
        path = (
            Path((f"block_{block}", *segments))
            if block % 2
            else Path((f"tower_{block // 400}", "layers", *segments), block // 2 % 200, 1)
        )
        held.append(Tensor("param", path, ("embed", "ffn"), (4096, 8192), "float32"))
    return Inventory("benchmark", tuple(held))


PATTERNS: tuple[Callable[[int], tuple[Segment, ...]], ...] = (
    lambda n: (Segment(text=f"block_{2 * n + 1}"), Segment(text="attn"), Segment(text="wq")),
    lambda n: (Segment(text=f"block_*{n}"), Segment(text="**"), Segment(text="w_*")),
    lambda n: (Segment(text=f"block_{n}*"), Segment(text="attn"), Segment(text="{wq,wk,wv}")),
    lambda n: (Segment(text="layers", layers=(n % 200, n % 200 + 1)), Segment(text="mlp"), Segment(text="w_{in,gate}")),
    lambda n: (Segment(text=f"tower_{n % 30}"), Segment(text="**"), Segment(text="scale")),
)


def rules(count: int) -> Spec:
    """`count` rules, the first of which matches every tensor, and the others in turn one of five shapes."""
    made = [_rule((Segment(text="*"),), 1, BY_NAME)]
    for number in range(1, count):
        segments = PATTERNS[number % len(PATTERNS)](number)
        made.append(_rule(segments, number + 1, BY_PLACE))
    return Spec(name="benchmark", rules=tuple(made))


def _rule(segments: tuple[Segment, ...], number: int, how: Named | Positional) -> Rule:
    where = Location(f"rule {number}", NOWHERE)
    pattern = Pattern(namespace="param", segments=segments, text=".".join(s.text for s in segments))
    return Rule(pattern=pattern, layout=how, where=where, pattern_at=where, layout_at=where)


def seconds(spec: Spec, inventory: Inventory, repeat: int = 3) -> float:
    """CPU seconds of the shortest of `repeat` runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        layout.resolve(spec, inventory, MESH)
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    counts = (10, 100, 1000)
    print("CPU seconds to resolve, by rules (down) and tensors (across)")
    print(f"{'':>6}" + "".join(f"{n:>10,}" for n in (1000, 10_000, 100_000)))
    for n_rules in counts:
        spec = rules(n_rules)
        cells = [seconds(spec, tensors(n)) for n in (1000, 10_000, 100_000)]
        print(f"{n_rules:>6}" + "".join(f"{cell:>10.3f}" for cell in cells))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
