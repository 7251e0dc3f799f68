"""`check` and `expect`: what is carried for later."""

from __future__ import annotations

import pytest

from sharddsl.findings import Location, Span
from sharddsl.spec import parse
from sharddsl.spec.model import Check, CheckAxis, CollectiveQuery, Pattern, Segment
from sharddsl.spec.targets import problem_of


def test_check_with_everything() -> None:
    text = 'check llama3_8b on [dp=1, fsdp=-1] target "v5p:4x4x4" batch 64 seq 8192 mode prefill run bf16'
    spec = parse(f"mesh: [dp=1, fsdp=4]\n{text}").checked()
    assert spec.checks == (
        Check(
            model="llama3_8b",
            mesh=(CheckAxis(name="dp", size=1), CheckAxis(name="fsdp", size=-1)),
            target="v5p:4x4x4",
            batch=64,
            seq=8192,
            mode="prefill",
            run="bf16",
            where=Location("<text>", Span(2, 1, 2, 1 + len(text))),
        ),
    )


def test_check_with_nothing_but_a_model() -> None:
    (check,) = parse("check anything").checked().checks
    assert (check.model, check.mesh, check.target, check.batch, check.seq, check.mode, check.run, check.expect) == (
        "anything",
        None,
        None,
        None,
        None,
        "train",
        None,
        (),
    )


def test_expects_of_the_file_and_of_a_check() -> None:
    spec = parse("check m {\n  expect flops > 1\n  expect devices == 8\n}\nexpect replicated.params <= 1 GiB").checked()
    assert [condition.text for condition in spec.checks[0].expect] == ["flops > 1", "devices == 8"]
    assert [condition.text for condition in spec.expect] == ["replicated.params <= 1 GiB"]


QUERIES = [
    ("count()", CollectiveQuery(function="count")),
    ("bytes(all_gather)", CollectiveQuery(function="bytes", collective="all_gather")),
    ("count(permute, over=dp)", CollectiveQuery(function="count", collective="permute", over=("dp",))),
    ("count(over=(dp, mp))", CollectiveQuery(function="count", over=("dp", "mp"))),
    ("count(over=data)", CollectiveQuery(function="count", over=("dp", "fsdp"))),
    ("count(over=(data, mp))", CollectiveQuery(function="count", over=("dp", "fsdp", "mp"))),
    ("count(in=remat, at=layer)", CollectiveQuery(function="count", during="remat", at="layer")),
    ("count(of=act)", CollectiveQuery(function="count", of=Pattern(namespace="act", segments=(), text="act"))),
    (
        "count(all_reduce, of=grad.mlp.w_*)",
        CollectiveQuery(
            function="count",
            collective="all_reduce",
            of=Pattern(namespace="grad", segments=(Segment(text="mlp"), Segment(text="w_*")), text="grad.mlp.w_*"),
        ),
    ),
]


@pytest.mark.parametrize(("text", "query"), QUERIES, ids=[text for text, _ in QUERIES])
def test_collectives(text: str, query: CollectiveQuery) -> None:
    spec = parse(f"let data = (dp, fsdp)\nmesh: [dp=2, fsdp=2, mp=2]\nw: [data]\nexpect {text} == 0").checked()
    (condition,) = spec.expect
    assert condition.expr.kind == "binary"
    assert condition.expr.left == query


@pytest.mark.parametrize(
    "target",
    [
        "cpu:8",
        "cpu:2x4",
        "v5e:4x4",
        "2*v5e:4x4",
        "v6e:16x16",
        "v4:2x2x1",
        "v5p:4x4x4",
        "tpu7x:2x2x1",
        "h100:1x8",
        "b200:9x8",
    ],
)
def test_targets(target: str) -> None:
    assert problem_of(target) is None


WRONG_TARGETS = [
    "", "cpu", "cpu:", ":8", "cpu:x8", "cpu:8x", "cpu:-1", "cpu:1x2x3", "cpu:0", "cpu:٣", "v5e:16", "v5e:4x0",
    "V5E:4x4", "v5e:4x4\n", "v4:2x2", "0*v5e:4x4", "*v5e:4x4", "9999999999*v5e:4x4", "h100:8", "2*h100:1x8", "abacus:8",
]  # fmt: skip


@pytest.mark.parametrize("target", WRONG_TARGETS)
def test_wrong_targets(target: str) -> None:
    assert problem_of(target) is not None
