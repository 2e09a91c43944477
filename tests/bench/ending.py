"""The early end of a run by a signal, at which it still ends its workers and writes what it has."""
import signal

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """The name of the signal. Not an Exception, so that nobody takes it for the failure of a contender."""


def end_on_signals() -> None:
    """Makes the first of these signals raise Ended in the main thread; later ones do not disturb the report."""
    def end(number, _):
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        raise Ended(signal.Signals(number).name)

    for each in _SIGNALS:
        signal.signal(each, end)
