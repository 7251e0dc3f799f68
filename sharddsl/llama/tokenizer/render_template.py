"""Run as a program: renders one jinja2 template, JSON in on stdin and out on stdout, in bounded time and memory."""

from __future__ import annotations

import contextlib
import datetime
import json
import sys
from typing import NoReturn

_MEMORY = 1 << 30
_CPU_SECONDS = 5


def _limit() -> None:
    """Bounds this process, where the system can. Elsewhere the caller's time limit remains."""
    if sys.platform == "win32":
        return
    import resource

    for limit, bound in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_CPU, _CPU_SECONDS)):
        _, hard = resource.getrlimit(limit)
        with contextlib.suppress(ValueError, OSError):  # macOS refuses a bound on memory
            resource.setrlimit(limit, (bound if hard == resource.RLIM_INFINITY else min(bound, hard), hard))


def _refuse(message: str) -> NoReturn:
    """What templates call to reject a chat."""
    from jinja2 import TemplateError

    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.datetime.now().strftime(form)


def render(template: str, variables: dict[str, object]) -> str:
    """The template's text, with the settings and helpers that chat templates are written for."""
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals.update(raise_exception=_refuse, strftime_now=_now)
    environment.filters["tojson"] = _to_json
    text: str = environment.from_string(template).render(**variables)
    return text


def _to_json(value: object, indent: int | None = None) -> str:
    """Plain JSON: jinja2's own filter escapes for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def main() -> None:
    _limit()
    from jinja2 import TemplateError

    request = json.loads(sys.stdin.buffer.read())
    try:
        answer = {"text": render(request["template"], request["variables"])}
    except TemplateError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "it needs too much memory"}
    except Exception as error:  # a template is a program: whatever it raises is its own fault
        answer = {"error": f"{type(error).__name__}: {error}"}
    sys.stdout.buffer.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
