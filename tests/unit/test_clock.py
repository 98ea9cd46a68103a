"""The ledger of judging time: nothing counts twice, and threads do not see each other's."""

from __future__ import annotations

import threading
import time

import pytest

from oracle import clock


def test_an_activity_inside_another_counts_as_itself_alone():
    clock.taken()
    with clock.spending("outer"):
        time.sleep(0.02)
        with clock.spending("inner"):
            time.sleep(0.03)
        clock.spent("told", 0.01)
    own, whole = clock.taken()
    assert own["inner"] == pytest.approx(0.03, abs=0.015)
    assert own["outer"] + own["told"] + own["inner"] == pytest.approx(whole["outer"])
    assert own["told"] == 0.01
    assert clock.taken() == ({}, {})


def test_an_exception_is_booked_and_threads_have_ledgers_of_their_own():
    clock.taken()
    with pytest.raises(ValueError, match="on purpose"), clock.spending("broken"):
        raise ValueError("on purpose")
    thread = threading.Thread(target=clock.spent, args=("elsewhere", 1.0))
    thread.start()
    thread.join()
    own, _ = clock.taken()
    assert own.keys() == {"broken"}
