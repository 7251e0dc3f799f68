"""How findings are shown: the place, the line with the caret, related places and help."""

from __future__ import annotations

import pytest

from sharddsl.findings import NOWHERE, Finding, Location, ShardError, Span, printable, render

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
    shown = render([warning, later, sooner]).splitlines()
    assert [line.split(" ")[0] for line in shown if line.startswith("a.shard")] == [
        "a.shard:1:1:",
        "a.shard:2:1:",
        "a.shard:1:1:",
    ]


@pytest.mark.parametrize(
    ("text", "column", "end", "columns_before", "carets"),
    [
        ("e\u0301: [mp]", 6, 8, 4, 2),  # a combining accent takes no column
        ('"\U0001f600\u6f22": [mp]', 8, 10, 9, 2),  # an emoji and a wide character take two each
        ('"\uff4d\uff50": x', 2, 4, 1, 4),
        ("a\u202eb: [mp]", 7, 9, 6, 2),  # what is not printed stands for itself as one column
        ("\t[\tmp]", 4, 6, 3, 2),
    ],
)
def test_carets_stand_below_what_they_mean(text: str, column: int, end: int, columns_before: int, carets: int) -> None:
    *_, marked = render([finding(Span(1, column, 1, end))], {"a.shard": text}).split("\n")
    assert marked == "    | " + " " * columns_before + "^" * carets


def test_text_that_hides_or_turns_is_not_printed() -> None:
    assert printable("a\x1b[31m\u202eb\ufeff\u200b\n\tc\r") == "a\ufffd[31m\ufffdb\ufffd\ufffd\n c\ufffd"


def test_a_name_as_long_as_a_file_leaves_a_line_that_can_be_read() -> None:
    (line,) = render([Finding("SHD201", "error", f"`{'x' * 100_000}` matches no tensor")]).splitlines()
    assert len(line) < 1010
    assert line.startswith("error SHD201 matches-no-tensor: `xxx")
    assert line.endswith("xxx` matches no tensor")


def test_of_very_many_findings_the_rest_is_counted() -> None:
    infos = [Finding("SHD307", "info", "dropped")] * 150
    unmatched = [Finding("SHD201", "error", "no tensor")] * 70
    lines = render([*infos, *unmatched]).splitlines()
    assert lines[:70] == ["error SHD201 matches-no-tensor: no tensor"] * 70
    assert lines[70:-1] == ["info SHD307 optional-axis-dropped: dropped"] * 30
    assert lines[-1] == "and 120 more: 120 × info SHD307 optional-axis-dropped"
    assert len(ShardError(infos).findings) == 150
