"""The value of an expression, where the names in it have values: three-valued logic over numbers, words and truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from sharddsl.spec.model import Binary, CollectiveQuery, Expr, Mode, Name, Number, Unary

Value = int | float | str | bool | None
"""What an expression may be worth; None is unknown."""

MODES: frozenset[str] = frozenset(get_args(Mode))
"""The words that stand for themselves."""


class EvaluationError(Exception):
    """The expression has no value: a division by zero, or operands of the wrong kind."""


def evaluate(expr: Expr, names: Mapping[str, Value]) -> Value:
    """The value of `expr`, or None where it depends on a name without one.

    `names` gives the value of each name as it is written (`kv_heads`, `mesh.seq`, `memory.peak`); one that is missing
    is unknown, save a mode's word, which stands for itself. `count(…)` and `bytes(…)` are unknown. `and` and `or` do
    not look at their right side where the left one decides, and are known where one side decides whatever the other
    is. `/` is true division, `%` is Python's. Raises `EvaluationError`.
    """
    match expr:
        case Number(value=value):
            return value
        case Name(text=text):
            return names.get(text, text if text in MODES else None)
        case Unary(op="not", operand=operand):
            truth = _truth(evaluate(operand, names), "not")
            return None if truth is None else not truth
        case Unary(operand=operand):
            number = _number(evaluate(operand, names), "-")
            return None if number is None else -number
        case Binary(op="and" | "or" as op):
            return _connect(op, expr, names)
        case Binary(op=op, left=left, right=right):
            return _combine(op, evaluate(left, names), evaluate(right, names))
        case CollectiveQuery():
            return None


def _connect(op: str, expr: Binary, names: Mapping[str, Value]) -> bool | None:
    """Kleene's `and` and `or`."""
    decides = op == "or"
    left = _truth(evaluate(expr.left, names), op)
    if left is decides:
        return decides
    right = _truth(evaluate(expr.right, names), op)
    if right is decides:
        return decides
    return None if left is None or right is None else not decides


def _combine(op: str, left: Value, right: Value) -> Value:
    if op in ("==", "!="):
        if left is None or right is None:
            return None
        if kind_of(left) != kind_of(right):
            raise EvaluationError(f"`{op}` compares {_described(left)} with {_described(right)}")
        return (left == right) is (op == "==")
    a, b = _number(left, op), _number(right, op)
    if op in ("/", "%") and b == 0:
        raise EvaluationError("division by zero" if a is None else f"division by zero: {_shown(a)} {op} 0")
    if a is None or b is None:
        return None
    try:
        return _arithmetic(op, a, b)
    except OverflowError:
        raise EvaluationError(f"`{op}`: the result is too large") from None


def _arithmetic(op: str, a: int | float, b: int | float) -> int | float | bool:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return a / b
        case "%":
            return a % b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case _:
            return a >= b


def kind_of(value: int | float | str | bool) -> str:
    """`truth`, `number` or `word`."""
    if isinstance(value, bool):
        return "truth"
    return "word" if isinstance(value, str) else "number"


def _truth(value: Value, op: str) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise EvaluationError(f"`{op}` needs true or false, not {_described(value)}")


def _number(value: Value, op: str) -> int | float | None:
    if isinstance(value, bool | str):
        raise EvaluationError(f"`{op}` needs a number, not {_described(value)}")
    return value


def _described(value: int | float | str | bool) -> str:
    match kind_of(value):
        case "truth":
            return "true" if value else "false"
        case "word":
            return f"the word `{value}`"
        case _:
            return f"the number {_shown(value)}"


def _shown(value: int | float | str) -> str:
    """A number as a message shows it: `8`, `0.5`, `1.5e+300`."""
    return str(value) if isinstance(value, int) and abs(value) < 10**15 else f"{float(value):.12g}"
