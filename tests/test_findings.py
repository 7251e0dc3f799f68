"""How findings are shown: the place, the line with the caret, related places and help."""

from __future__ import annotations

from sharddsl.findings import NOWHERE, Finding, Location, ShardError, Span, render

TEXT = "mesh: [dp=1]\nattn.wq: [fsdp, mp]\n"


def finding(span: Span, **more: object) -> Finding:
    return Finding("SHD101", "error", "no axis `mp`", Location("a.shard", span), **more)  # type: ignore[arg-type]


def test_the_line_with_carets_a_note_and_help() -> None:
    shown = finding(
        Span(2, 17, 2, 19),
        note="attn.wq",
        help="first\nsecond",
        count=3,
        related=((Location("b.shard", Span(4, 2, 4, 3)), "the base"),),
    )
    assert render([shown], {"a.shard": TEXT}).splitlines() == [
        "a.shard:2:17: error SHD101 unknown-axis: no axis `mp` (3 tensors)",
        "  2 | attn.wq: [fsdp, mp]",
        "    |                 ^^ attn.wq",
        "  b.shard:4:2: the base",
        "  help: first",
        "        second",
    ]


def test_a_long_note_stands_below_the_caret() -> None:
    *_, carets, first, second = render([finding(Span(2, 17, 2, 19), note="tensor " * 16)], {"a.shard": TEXT}).split(
        "\n"
    )
    assert carets == "    |                 ^^"
    assert first == "    | " + " ".join(["tensor"] * 13)
    assert second == "    | tensor tensor tensor"


def test_without_a_text_or_a_place() -> None:
    assert render([finding(Span(2, 17, 2, 19), note="attn.wq")]) == (
        "a.shard:2:17: error SHD101 unknown-axis: no axis `mp`\n  attn.wq"
    )
    assert render([finding(NOWHERE)], {"a.shard": TEXT}) == "a.shard: error SHD101 unknown-axis: no axis `mp`"
    assert render([Finding("SHD103", "error", "8 devices")]) == "error SHD103 mesh-is-not-the-devices: 8 devices"


def test_a_long_line_is_cut_around_the_caret() -> None:
    head, line, carets = render([finding(Span(1, 5001, 1, 5003))], {"a.shard": "x" * 5000 + "mp" + "y" * 5000}).split(
        "\n"
    )
    assert head == "a.shard:1:5001: error SHD101 unknown-axis: no axis `mp`"
    assert line == "  1 | " + "x" * 60 + "mp" + "y" * 58
    assert carets == "    | " + " " * 60 + "^^"


def test_lines_end_as_the_parser_says_and_control_characters_do_nothing() -> None:
    text = "a\x0c\u2028b\r\nc\rd\x1b[31mp"
    assert render([finding(Span(3, 6, 3, 7))], {"a.shard": text}).splitlines() == [
        "a.shard:3:6: error SHD101 unknown-axis: no axis `mp`",
        "  3 | d\ufffd[31mp",
        "    |      ^",
    ]


def test_errors_come_first_then_by_place() -> None:
    later, sooner = finding(Span(2, 1, 2, 2)), finding(Span(1, 1, 1, 2))
    warning = Finding("SHD005", "warning", "unused", Location("a.shard", Span(1, 1, 1, 2)))
    assert ShardError([warning, later, sooner]).findings == (sooner, later, warning)
