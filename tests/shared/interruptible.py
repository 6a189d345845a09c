"""A part of a test that ends at signals as a command of ours does, and leaves pytest's own handlers as they were."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from device_runner.interrupt import end_at


@contextmanager
def ended_by(number: signal.Signals) -> Iterator[None]:
    """The body has to end as a command that this signal ended, and by nothing else that it raises."""
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    raised: list[BaseException] = []
    code: object = None
    try:
        with end_at(*before):
            try:
                yield
            except BaseException as error:
                raised.append(error)
                raise
    except SystemExit as ended:
        code = ended.code
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        with end_at():  # what was received here means nothing to other tests
            pass
    assert [error for error in raised if not isinstance(error, SystemExit)] == []
    assert code == 128 + number
