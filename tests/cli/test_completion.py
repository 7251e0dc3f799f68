"""Tab completion, as the shell asks for it."""

from __future__ import annotations

import pytest

from sharddsl.cli.main import main

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sharddsl sh", ["show"]),
        ("sharddsl show mod", ["model="]),
        ("sharddsl show spec=llama/fsdp", ["spec=llama/fsdp", "spec=llama/fsdp_tp"]),
        ("sharddsl show model=llama_ti", ["model=llama_tiny"]),
        ("sharddsl generate run=g", ["run=generate"]),
        ("sharddsl show model=llama_tiny spec=llama/fsdp_tp spec.mesh.", ["dp", "fsdp", "mp"]),
        ("sharddsl show model=llama_tiny spec=llama/fsdp_tp run.pre", ["run.precision="]),
        ("sharddsl schema ", []),
        ("sharddsl show --ru", ["--rule"]),
        ("sharddsl generate --top", ["--top-k", "--top-p"]),
        ("sharddsl show --rule 'act: [x=1, y]' --devices 8 model=llama_ti", ["model=llama_tiny"]),
        ("sharddsl show -m weights='a b' spec=llama/tp model=llama_tiny spec.mesh.", ["mp"]),
        ("sharddsl show --devices ", []),
        ("sharddsl show --rule 'a: ", []),
        ("sharddsl lint --unsafe", ["--unsafe-fixes"]),
        ("sharddsl lint specs --select splits", ["splits-a-head"]),
        ("sharddsl lint --ignore SHD20", [f"SHD20{n}" for n in range(1, 10)]),
        ("sharddsl lint specs/", []),
        ("sharddsl fmt --ch", ["--check"]),
        ("sharddsl di", ["diff"]),
        ("sharddsl diff specs --ag", ["--against"]),
    ],
)
def test_words_offered(line: str, expected: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    assert main(["-sc", "query=bash"]) == 0
    offered = [
        word.removeprefix("spec.mesh.").removesuffix("=") if "spec.mesh." in word else word
        for word in capsys.readouterr().out.split()
    ]
    assert offered == expected


def test_the_script_for_bash(capsys: Capture) -> None:
    assert main(["-sc", "install=bash"]) == 0
    assert "complete -o nospace" in capsys.readouterr().out
