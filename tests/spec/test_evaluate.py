"""The value of expressions, by hand: numbers, words, truth, and what is not known."""

from __future__ import annotations

import pytest

from sharddsl.spec import EvaluationError, evaluate, parse
from sharddsl.spec.evaluate import Value
from sharddsl.spec.model import Binary, CollectiveQuery, Expr, Name, Number

NAMES: dict[str, Value] = {
    "heads": 32,
    "kv_heads": 8,
    "mp": 16,
    "tied": False,
    "mode": "decode",
    "batch": None,
    "seq": 4096,
    "mesh.seq": 2,
    "memory.peak": 90 * 2**30,
}


def expression(text: str) -> Expr:
    """The expression of a condition, by way of the parser."""
    spec = parse(f"expect {text}").checked()
    return spec.expect[0].expr


TRUE = [
    "mp > kv_heads",
    "heads >= 32 and heads <= 32 and not heads < 32",
    "heads == 32.0",
    "heads != kv_heads",
    "heads / kv_heads == 4",
    "kv_heads / heads == 0.25",
    "7 / 2 == 3.5",
    "7 % 4 == 3",
    "-7 % 4 == 1",
    "-heads < 0",
    "1 + 2 * 3 == 7",
    "(1 + 2) * 3 == 9",
    "10 - 4 - 3 == 3",
    "not tied",
    "not (tied or heads < 8)",
    "tied == (heads < 8)",
    "mode == decode",
    "mode != train",
    "memory.peak > 80 GiB",
    "memory.peak < 0.1 TiB",
    "1 KB == 1000 and 1 KiB == 1024 and 1 MB == 1e6 and 1 MiB == 1048576",
    "1 GB == 1e9 and 1 GiB == 1073741824 and 1 TB == 1e12 and 1 TiB == 1099511627776",
    "seq == 4096 and mesh.seq == 2",
    "heads > 1 or batch > 1",
    "batch > 1 or heads > 1",
]


@pytest.mark.parametrize("text", TRUE)
def test_true(text: str) -> None:
    assert evaluate(expression(text), NAMES) is True


FALSE = ["mp < kv_heads", "tied", "tied and batch > 1", "batch > 1 and tied", "mode == train", "heads == 31"]


@pytest.mark.parametrize("text", FALSE)
def test_false(text: str) -> None:
    assert evaluate(expression(text), NAMES) is False


UNKNOWN = [
    "batch > 1",
    "-batch < 1",
    "batch + 1 == batch + 1",
    "not (batch > 1)",
    "batch > 1 and not tied",
    "not tied and batch > 1",
    "batch > 1 or tied",
    "tied or batch > 1",
    "batch / 2 == 1",
    "2 / batch == 1",
    "pp > 1",
    "pp == 1",
    "memory.opt > 1",
    "count() == 0",
]


@pytest.mark.parametrize("text", UNKNOWN)
def test_unknown(text: str) -> None:
    assert evaluate(expression(text), NAMES) is None


def test_numbers_keep_their_kind() -> None:
    sum_of_integers = Binary(op="+", left=Name(text="heads"), right=Number(value=1))
    assert (evaluate(sum_of_integers, NAMES), type(evaluate(sum_of_integers, NAMES))) == (33, int)
    quotient = Binary(op="/", left=Name(text="heads"), right=Number(value=8))
    assert (evaluate(quotient, NAMES), type(evaluate(quotient, NAMES))) == (4.0, float)


def test_a_decided_side_spares_the_other_its_errors() -> None:
    zero = {**NAMES, "mp": 0}
    assert evaluate(expression("mp > 0 and heads % mp == 0"), zero) is False
    assert evaluate(expression("mp == 0 or heads % mp == 0"), zero) is True
    with pytest.raises(EvaluationError):
        evaluate(expression("heads % mp == 0 and mp > 0"), zero)


WRONG: list[tuple[str, dict[str, Value], str]] = [
    ("heads / mp > 1", {"heads": 32, "mp": 0}, "division by zero: 32 / 0"),
    ("heads % mp > 1", {"heads": 32, "mp": 0}, "division by zero: 32 % 0"),
    ("heads / mp > 1", {"mp": 0}, "division by zero"),
    ("heads == mp", {"heads": 32, "mp": "x"}, "`==` compares the number 32 with the word `x`"),
    ("heads > mp", {"heads": True, "mp": 1}, "`>` needs a number, not true"),
    ("heads + mp > 1", {"heads": "x", "mp": 1}, "`+` needs a number, not the word `x`"),
    ("-mp > 1", {"mp": False}, "`-` needs a number, not false"),
    ("not tied", {"tied": 1}, "`not` needs true or false, not the number 1"),
    ("tied and tied", {"tied": 0.5}, "`and` needs true or false, not the number 0.5"),
    ("tied or tied", {"tied": "x"}, "`or` needs true or false, not the word `x`"),
    ("heads / mp > 1", {"heads": 10**400, "mp": 3}, "`/`: the result is too large"),
    ("heads * 0.5 > 1", {"heads": 10**400}, "`*`: the result is too large"),
]


@pytest.mark.parametrize(("text", "names", "message"), WRONG)
def test_without_a_value(text: str, names: dict[str, Value], message: str) -> None:
    with pytest.raises(EvaluationError) as raised:
        evaluate(expression(text), names)
    assert str(raised.value) == message


def test_collectives_are_for_the_compiled_program() -> None:
    assert evaluate(CollectiveQuery(function="bytes"), NAMES) is None
