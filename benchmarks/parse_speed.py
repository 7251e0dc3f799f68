"""How the time to read a spec grows with its length, and what the first parse of a process costs.

    python benchmarks/parse_speed.py

Prints a line per size: rules, milliseconds, microseconds per rule (which should not grow), well-formed and with one
statement broken (the whole text is then read statement by statement). Then the CPU time of a process that imports the
parser and reads 40 lines, beside one that does nothing and one that imports Lark alone.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

from sharddsl import syntax

_FORMS = (
    "layers[0:4].attn.{{wq, wk}}: [fsdp, (mp, dp)?]  # {0}",
    "a{0}.mlp.w_in: {{embed: fsdp, ffn: mp?}}",
    "act.x{0}: [data, None, ...]",
    "when mp > {0} {{ attn.wk: [fsdp, None] }}",
)
_PROGRAM = "from sharddsl import syntax; syntax.parse({text!r})"


def rules(count: int) -> str:
    return "\n".join(_FORMS[i % len(_FORMS)].format(i) for i in range(count))


def seconds(text: str) -> float:
    """Of this process's CPU time."""
    start = time.process_time()
    parsed = syntax.parse(text)
    taken = time.process_time() - start
    assert parsed.file.statements
    return taken


def process_seconds(program: str) -> float:
    """CPU seconds: the best of seven runs, which is the least disturbed one."""

    def once() -> float:
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], check=True)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        return end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime

    return min(once() for _ in range(7))


def main() -> None:
    syntax.parse(rules(1))
    print(f"{'rules':>8} {'ms':>8} {'us/rule':>8} {'broken ms':>10}")
    for count in (1_000, 3_000, 10_000, 20_000):
        text = rules(count)
        whole = seconds(text)
        broken = seconds(text + "\nattn.wq [fsdp]")
        print(f"{count:8} {whole * 1e3:8.0f} {whole / count * 1e6:8.1f} {broken * 1e3:10.0f}")
    for name, program in [
        ("nothing", "pass"),
        ("import lark", "import lark"),
        ("parse 40 lines", _PROGRAM.format(text=rules(40))),
    ]:
        print(f"process, {name}: {process_seconds(program) * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
