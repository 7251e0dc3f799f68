"""One list of findings for all the cases of a file."""

from __future__ import annotations

from sharddsl.lint.text import to_concise, to_full
from tests.lint.cases import codes, linted

BASE = "mesh: [fsdp=4]\n*: {embed: fsdp}\nact: {batch: fsdp}\ncache: {batch: fsdp}\n"


def test_a_cause_that_is_in_several_cases_is_one_finding_that_names_them() -> None:
    text = f"{BASE}check llama_tiny batch 6 seq 8\ncheck smollm2_135m batch 6 seq 8\ncheck llama_tiny batch 8 seq 8\n"
    (judged,) = linted(text).findings
    assert judged.finding.code == "SHD302"
    assert judged.cases == (
        "llama_tiny, train, on [fsdp=4]: 4 devices batch 6 seq 8",
        "smollm2_135m, train, on [fsdp=4]: 4 devices batch 6 seq 8",
    )
    told = to_full([linted(text)]).splitlines()
    assert "  in: llama_tiny, train, on [fsdp=4]: 4 devices batch 6 seq 8" in told
    assert told[-4] == "my.shard: 1 error"


def test_a_rule_for_another_mode_is_not_dead() -> None:
    text = f"{BASE}when mode == decode {{ act.attn.q: replicated }}\n"
    assert codes(f"{text}check llama_tiny batch 8 seq 64\n") == []
    assert codes(f"{text}check llama_tiny batch 8 seq 64 mode decode\n") == []


def test_a_rule_for_one_of_the_models_is_not_dead() -> None:
    """smollm2_135m's head is tied, so it has no lm_head.w."""
    both = "check llama_tiny batch 8 seq 64\ncheck smollm2_135m batch 8 seq 64\n"
    assert codes(f"{BASE}when not tied {{ lm_head.w: [fsdp, None] }}\n{both}") == []
    assert codes(f"{BASE}lm_hed.w: [fsdp, None]\n{both}") == ["SHD201"]


def test_what_was_not_checked_is_said() -> None:
    assert linted("mesh: [fsdp=4]\n*: {embed: fsdp}\n").unchecked == (
        "layouts: it has no `check` line; name a model (model=…), or add `check MODEL on [AXIS=SIZE]`",
    )
    assert linted("mesh: [").unchecked == ("layouts: the text has errors",)
    assert linted("*: replicated\n").unchecked == ("layouts: it has no mesh of its own, and is there to be extended",)
    expecting = linted(f"{BASE}check llama_tiny batch 8 seq 64 {{ expect memory.peak < 1 GiB }}\n")
    assert expecting.unchecked == ("1 `expect` line: it asks about the compiled program",)


def test_an_axis_whose_size_nobody_gave_is_taken_as_one_and_that_is_said() -> None:
    report = linted(f"{BASE.replace('fsdp=4', 'fsdp=-1')}check llama_tiny batch 8 seq 64\n")
    assert report.cases == ("llama_tiny, train, on [fsdp=1] (fsdp=-1 taken as 1): 1 device batch 8 seq 64",)


def test_sums() -> None:
    reports = [linted(f"{BASE}check llama_tiny batch 8 seq 64\n"), linted("mesh: [")]
    assert to_concise(reports).splitlines() == [
        "my.shard:1:7: error SHD001 syntax-error: `[` is never closed: expected `]` or a name",
        "2 files, 1 case: 1 error; layouts only, not compiled; not all was checked of 1 file",
    ]
