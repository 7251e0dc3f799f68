"""Rules: blocks flattened, the conditions around each hung on it, its layout fit for its namespace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sharddsl.findings import Span
from sharddsl.spec.expressions import lower_condition
from sharddsl.spec.layouts import check_namespace, lower_layout
from sharddsl.spec.model import Condition, Rule
from sharddsl.spec.patterns import OUTERMOST, Prefix, as_pattern, extend
from sharddsl.spec.scope import Scope
from sharddsl.syntax import tree

MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
"""JAX's names (`jax.Device.addressable_memories`). Which of them a target has, `partition` finds out."""


def lower_rules(statements: Sequence[tree.Statement], scope: Scope) -> tuple[Rule, ...]:
    """The rules in order. One that is wrong, or stands in a block that is, is left out and reported."""
    return tuple(_rules(statements, OUTERMOST, (), scope))


def _rules(
    statements: Iterable[tree.Statement], prefix: Prefix, conditions: tuple[Condition, ...], scope: Scope
) -> Iterable[Rule]:
    for statement in statements:
        match statement:
            case tree.Rule():
                rule = _rule(statement, prefix, conditions, scope)
                if rule is not None:
                    yield rule
            case tree.Block(pattern=pattern, body=body):
                longer = extend(prefix, pattern, scope.report)
                yield from _rules(body, longer, conditions, scope) if longer is not None else ()
            case tree.When(condition=expr, body=body):
                condition = lower_condition(expr, scope, "when")
                below = conditions if condition is None else (*conditions, condition)
                yield from _rules(body, prefix, below, scope)


def _rule(rule: tree.Rule, prefix: Prefix, conditions: tuple[Condition, ...], scope: Scope) -> Rule | None:
    whole = extend(prefix, rule.pattern, scope.report)
    layout = lower_layout(rule.layout, scope)
    memory_is_known = rule.memory is None or _check_memory(rule.memory, rule.span, scope)
    if whole is None or layout is None or not memory_is_known:
        return None
    pattern = as_pattern(whole)
    if not check_namespace(layout, pattern.namespace, rule.layout.span, scope):
        return None
    return Rule(
        pattern=pattern,
        layout=layout,
        memory=rule.memory,
        conditions=conditions,
        where=scope.at(rule.span),
        pattern_at=scope.at(rule.pattern.span),
        layout_at=scope.at(rule.layout.span),
        origin=scope.origin,
    )


def _check_memory(kind: str, rule: Span, scope: Scope) -> bool:
    if kind in MEMORY_KINDS:
        return True
    last = Span(rule.end_line, max(1, rule.end_column - len(kind)), rule.end_line, rule.end_column)
    span = last if scope.report.excerpt(last) == kind else rule
    scope.report.unknown("SHD002", span, kind, "memory kind", MEMORY_KINDS)
    return False
