"""No Ctrl-C is lost, and a step is not cut in two."""

from __future__ import annotations

import signal
from contextlib import suppress

import pytest

from sharddsl.cli.interrupts import interrupts


def test_one_that_a_callback_drops_is_found_later() -> None:
    with interrupts() as noted:
        noted.check()
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            noted.check()


def test_one_that_became_another_error_is_one_again() -> None:
    def turned() -> None:
        with interrupts():
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise RuntimeError("from a callback") from None

    with pytest.raises(KeyboardInterrupt):
        turned()


def test_an_error_of_its_own_stays_one() -> None:
    with pytest.raises(RuntimeError, match="its own"), interrupts():
        raise RuntimeError("its own")


def test_the_first_waits_where_it_is_held_and_the_second_does_not() -> None:
    with interrupts() as noted, noted.held():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_the_handler_before_is_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interrupts():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
