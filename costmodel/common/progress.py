"""A line that says how far a long job is."""

import sys
import time
from typing import TextIO


class ProgressLine:
    """Told (done, total), rewrites one line of a terminal; silent where nobody watches, such as in a file or CI.

    Parameters
    ----------
    label : what is being done
    unit : of what is counted
    stream : where the line goes

    Examples
    --------
    >>> line = ProgressLine("writing", "tokens", stream=sys.stdout)
    >>> line(3, 10)  # not a terminal
    """

    def __init__(self, label: str, unit: str, stream: TextIO | None = None) -> None:
        self.label, self.unit = label, unit
        self.stream = sys.stderr if stream is None else stream
        self.started = time.perf_counter()

    def __call__(self, done: int, total: int) -> None:
        """Show it; the last step ends the line."""
        if not self.stream.isatty():
            return
        rate = done / max(time.perf_counter() - self.started, 1e-9)
        end = "\n" if done >= total else ""
        self.stream.write(f"\r{self.label}: {done:,} of {total:,} {self.unit}, {rate:,.1f}/s{end}")
        self.stream.flush()
