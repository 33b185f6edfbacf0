"""What a run takes of its machine."""

import time

from penstock.observe.log import MachineUse


def test_a_busy_process_uses_a_processor_and_a_sleeping_one_does_not() -> None:
    # By this clock an hour passes without work, and then a second with some: true on a machine of any speed.
    clock = iter([0.0, 3600.0, 3601.0])
    use = MachineUse(clock=lambda: next(clock))
    asleep = use.since_last()
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
    awake = use.since_last()

    assert 0 <= asleep["cpu_share"] < awake["cpu_share"] <= 1


def test_reading_is_never_negative() -> None:
    use = MachineUse()

    assert use.since_last()["read_bytes_per_second"] >= 0
