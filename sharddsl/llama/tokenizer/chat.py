"""A model's chat template, rendered where it can do no harm.

Templates come with downloaded weights and are programs. They run under jinja2's immutable sandbox, in a child process
with a bound on its time and memory: the sandbox keeps them from Python's objects, but not from looping forever or
asking for a string of a terabyte.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from sharddsl.findings import UsageError
from sharddsl.llama.tokenizer.model import Message

_LONGEST_TEMPLATE = 1 << 18
"""In characters. The longest published ones have about 20,000."""
_SECONDS = 20.0


def render_chat(template: str, messages: Sequence[Message], begin: str, end: str) -> str:
    """The chat as the text that the model was trained on, up to where the assistant's answer begins.

    `begin` and `end` are the control tokens that templates call `bos_token` and `eos_token`. UsageError if the template
    refuses the messages, is broken, or takes too long.
    """
    if len(template) > _LONGEST_TEMPLATE:
        raise UsageError(f"the chat template has {len(template):,} characters; at most {_LONGEST_TEMPLATE:,} are taken")
    variables = {
        "messages": [dict(message) for message in messages],
        "tools": None,
        "documents": None,
        "add_generation_prompt": True,
        "bos_token": begin,
        "eos_token": end,
    }
    child = [sys.executable, "-P", str(Path(__file__).with_name("render_template.py"))]
    request = json.dumps({"template": template, "variables": variables})
    try:
        done = subprocess.run(
            child, input=request, capture_output=True, encoding="utf-8", timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"the chat template did not finish within {_SECONDS:g} seconds") from error
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"it was stopped by signal {-done.returncode}"])[-1]
        raise UsageError(f"the chat template could not be rendered: {why}\n  remedy: give a plain prompt")
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise UsageError(f"the chat template could not be rendered: {answer['error']}\n  remedy: give a plain prompt")
    return str(answer["text"])
