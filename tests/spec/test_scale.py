"""Large files: time grows with the text, not with its square, and ten thousand rules are no wait."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from sharddsl.spec import Loaded, parse


def rules(count: int) -> str:
    return "let data = (dp, fsdp)\nmesh: [dp=1, fsdp=-1, mp=2]\n" + "".join(
        f"layers[{i}].mlp.w_{i}: [data, None, mp?]\nact.x{i}: {{batch: data, heads: mp}}\n" for i in range(count // 2)
    )


def unknown_names(count: int) -> str:
    return "let known = [x]\nw: known\n" + "".join(f"w{i}: unknown{i}\n" for i in range(count))


def unused_lets(count: int) -> str:
    return "".join(f"let a{i} = (x, y)\n" for i in range(count))


def lets_of_lets(count: int) -> str:
    return "".join(f"let a{i} = [b{i}, b{(i * 7) % count}]\nlet b{i} = (x, y)\nw{i}: a{i}\n" for i in range(count))


def seconds(text: str) -> tuple[float, Loaded]:
    """CPU time, which other processes on the machine do not add to."""
    start = time.process_time()
    loaded = parse(text)
    return time.process_time() - start, loaded


@pytest.mark.parametrize("text", [rules, unknown_names, unused_lets, lets_of_lets])
def test_four_times_the_text_takes_about_four_times_as_long(text: Callable[[int], str]) -> None:
    seconds(text(100))
    small = min(seconds(text(500))[0] for _ in range(3))
    large = min(seconds(text(2000))[0] for _ in range(2))
    assert large < 10 * small


@pytest.mark.slow
def test_ten_thousand_rules() -> None:
    took, loaded = seconds(rules(10_000))
    assert len(loaded.checked().rules) == 10_000
    assert took < 6.0  # 2.5 s, of them 0.8 s after the parser, on one core of a 2020s server
