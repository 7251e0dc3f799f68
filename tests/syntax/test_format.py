"""The one style, before and after. Each expected text is written out, and is not changed by a second run."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharddsl.findings import ShardError
from sharddsl.syntax.format import formatted

SPECS = Path(__file__).parents[2] / "specs"

# What is done to one statement.
STATEMENTS = [
    ("", ""),
    ("\n\n", ""),
    ("mesh:[dp=1@dcn,fsdp=-1,mp = 2 @ dcn( 4 )]allow_idle", "mesh: [dp=1 @dcn, fsdp=-1, mp=2 @dcn(4)] allow_idle"),
    ("mesh: []", "mesh: []"),
    ('extends   "llama/tp"   with mp = model ,fsdp=data,', 'extends "llama/tp" with mp=model, fsdp=data'),
    ("let data=(dp,fsdp)", "let data = (dp, fsdp)"),
    ("let  a  =  b?", "let a = b?"),
    ("let a = {embed:mp}", "let a = {embed: mp}"),
    ("w:[a,(b ,c)? ,None,* , ...]", "w: [a, (b, c)?, None, *, ...]"),
    ("w: [(a, b?,), c,]", "w: [(a, b?), c]"),
    ("w:{.. ,embed:(a,b),ffn : None}@pinned_host", "w: {.., embed: (a, b), ffn: None} @pinned_host"),
    ("w: {..}", "w: {..}"),
    ("w :replicated", "w: replicated"),
    ("{wq,wk ,  wv} : x", "{wq, wk, wv}: x"),
    ("layers[ 0 : 4 ].mlp . w_in: [a]", "layers[0:4].mlp.w_in: [a]"),
    ("layers[:4].w_{in,gate}_*: [a]", "layers[:4].w_{in, gate}_*: [a]"),
    ("/embed.w: [a]", "/embed.w: [a]"),
    ("opt . / mu.w: [a]", "opt./mu.w: [a]"),
    ('"a b" . 0: [a]', '"a b".0: [a]'),
    ("act.**.w: [a]", "act.**.w: [a]"),
    ("attn{wo:[a]}", "attn { wo: [a] }"),
    ("attn { }", "attn {}"),
    ("when a>1{}", "when a > 1 {}"),
    ("when not tied{ w:[a] }", "when not tied { w: [a] }"),
    ("when a+1*2 - -3==b%c/d and(not e or f){w:[a]}", "when a + 1 * 2 - -3 == b % c / d and (not e or f) { w: [a] }"),
    ("when -a < - 1 { w: [a] }", "when -a < -1 { w: [a] }"),
    ("when mesh.seq != 0.50 { w: [a] }", "when mesh.seq != 0.50 { w: [a] }"),
    ('check m on[dp = 1,fsdp=-1]target"v5e:4x4"batch 8', 'check m on [dp=1, fsdp=-1] target "v5e:4x4" batch 8'),
    ('check "a b" seq 8 mode decode run x', 'check "a b" seq 8 mode decode run x'),
    ("check m{expect flops>1e5}", "check m { expect flops > 1e5 }"),
    ("expect memory.peak<=80GiB", "expect memory.peak <= 80 GiB"),
    (
        "expect count( all_gather,over = (dp,fsdp),of= act.mlp.{a,b}.*, )==0",
        "expect count(all_gather, over=(dp, fsdp), of=act.mlp.{a, b}.*) == 0",
    ),
    ("expect bytes(of=/embed.w)<=1.5 MB", "expect bytes(of=/embed.w) <= 1.5 MB"),
    ("expect (flops)>1", "expect (flops) > 1"),
]

# What is done to several, and to comments.
TEXTS = {
    "colons and layouts": (
        "mlp.w_in: [a]\n*:   replicated\nattn.{wq,wk}: [b]\n",
        "mlp.w_in:      [a]\n*:             replicated\nattn.{wq, wk}: [b]\n",
    ),
    "an empty line parts a group, a comment does not": (
        "w: [a]\n# of ww\nww: [a]\n\n\n\nwww: [a]\n",
        "w:  [a]\n# of ww\nww: [a]\n\nwww: [a]\n",
    ),
    "another statement parts a group": (
        "mesh: [a=1]\nw: [a]\nwhen tied { ww: [a] }\nwww: [a]\n",
        "mesh: [a=1]\nw: [a]\nwhen tied { ww: [a] }\nwww: [a]\n",
    ),
    "comments of a group": (
        "w: [a] # one\nww: [a, b]    # two\nwww: [a]\n\nw: [a]   # alone\n",
        "w:   [a]     # one\nww:  [a, b]  # two\nwww: [a]\n\nw: [a]  # alone\n",
    ),
    "comments stay as they are written": ("#one\n#  two  \n\n\n##\nw: [a]  #x\n", "#one\n#  two\n\n##\nw: [a]  #x\n"),
    "empty lines at both ends, and in a row": ("\n\n\n# a\n\n\nw: [a]\n\n\n", "# a\n\nw: [a]\n"),
    "a block": (
        "attn  {\n\nwq: [a] # q\n\n\n   wkv: [b]\n\n}\nw: [a]\n",
        "attn {\n  wq: [a]  # q\n\n  wkv: [b]\n}\nw: [a]\n",
    ),
    "blocks in blocks": (
        "when tied {\nattn {\n{wq, wk}: [a]\n wo: [b] }\n}\n",
        "when tied {\n  attn {\n    {wq, wk}: [a]\n    wo:       [b]\n  }\n}\n",
    ),
    "comments of a block": (
        "when tied{ # head\n# first\n\nw: [a] # w\n# last\n}# end\n",
        "when tied {  # head\n  # first\n\n  w: [a]  # w\n  # last\n}  # end\n",
    ),
    "a block of comments alone": ("attn { # a\n# b\n}\n", "attn {  # a\n  # b\n}\n"),
    "one rule stays on its line, two do not": (
        "attn { wo: [a] }\nattn { wo: [a]\nwq: [b] }\n",
        "attn { wo: [a] }\nattn {\n  wo: [a]\n  wq: [b]\n}\n",
    ),
    "a rule that has lines keeps them": ("attn {\n  wo: [a] }\n", "attn {\n  wo: [a]\n}\n"),
    "a check with expectations": (
        "check m on [a=1] { # c\nexpect flops > 1 # f\n\nexpect flops < 2 }\n",
        "check m on [a=1] {  # c\n  expect flops > 1  # f\n\n  expect flops < 2\n}\n",
    ),
    "a comment within brackets puts an entry on each line": (
        "mesh: [dp=1, # slow\n fsdp=-1\n ,mp=2 ] # all\n",
        "mesh: [\n  dp=1,  # slow\n  fsdp=-1,\n  mp=2,\n]  # all\n",
    ),
    "comments of their own within brackets": (
        "w: {embed: a,\n   # of ffn\n\n   ffn: (b, c) # why\n # last\n}\n",
        "w: {\n  embed: a,\n  # of ffn\n  ffn: (b, c),  # why\n  # last\n}\n",
    ),
    "a comment behind the bracket that opens": ("w: [ # one\n a]\n", "w: [  # one\n  a,\n]\n"),
    "brackets without entries": ("w: [ # none\n]\n", "w: [  # none\n]\n"),
    "a comment within a tuple": ("w: [(a, # one\n b)]\n", "w: [\n  (a,  # one\n  b),\n]\n"),
    "a comment behind a colon": ("w: # why\n [a]\n", "w:  # why\n  [a]\n"),
    "a comment behind an operator": ("expect flops <= # most\n 3\n", "expect flops <=  # most\n  3\n"),
    "what is too long has an entry a line": (
        "act: {batch: (data, fsdp), heads: tensor, kv_heads: tensor?, ffn: tensor, vocab: tensor, embed: None, "
        "seq: None}\n",
        "act: {\n  batch: (data, fsdp),\n  heads: tensor,\n  kv_heads: tensor?,\n  ffn: tensor,\n  vocab: tensor,\n"
        "  embed: None,\n  seq: None,\n}\n",
    ),
    "what is too long and has no brackets stays": (f"expect {' + '.join(['flops'] * 20)} > 1\n",) * 2,
    "other ends of lines, and a mark": ("\ufeffw: [a]\r\nww: [a]\rwww: [a]\n", "w:   [a]\nww:  [a]\nwww: [a]\n"),
    "no newline at the end": ("w: [a]", "w: [a]\n"),
    "comments alone": ("# a", "# a\n"),
    "quotes, hashes and brackets in quotes": ('"#{".w : [a] # {\n', '"#{".w: [a]  # {\n'),
}


@pytest.mark.parametrize(("before", "after"), STATEMENTS)
def test_a_statement(before: str, after: str) -> None:
    assert formatted(before) == (f"{after}\n" if after else "")
    assert formatted(formatted(before)) == formatted(before)


@pytest.mark.parametrize("name", TEXTS)
def test_a_text(name: str) -> None:
    before, after = TEXTS[name]
    assert formatted(before) == after
    assert formatted(after) == after


@pytest.mark.parametrize("file", sorted(SPECS.rglob("*.shard")), ids=lambda file: file.stem)
def test_the_shipped_specs_are_in_it(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert formatted(text) == text


def test_a_text_with_errors_is_refused() -> None:
    with pytest.raises(ShardError) as raised:
        formatted("w: [a]\nw: [\n", "my.shard")
    assert [finding.code for finding in raised.value.findings] == ["SHD001"]
