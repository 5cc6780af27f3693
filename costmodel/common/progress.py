"""How far a long job is, on a terminal; silent where nobody watches, such as in a file or CI."""

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import TextIO

from costmodel.common.extras import needed

LONG = 64  # steps from which a person wants to see how far it is


class ProgressLine:
    """Told (done, total), it keeps a progress bar; the last step closes it.

    Parameters
    ----------
    label : what is being done
    unit : of what is counted
    stream : where the bar goes; standard error unless given

    Examples
    --------
    >>> import io
    >>> line = ProgressLine("writing", "tokens", stream=io.StringIO())
    >>> line(3, 10)  # not a terminal: nothing is shown
    """

    def __init__(self, label: str, unit: str, stream: TextIO | None = None) -> None:
        tqdm = needed("tqdm", "a progress bar", "lab").tqdm
        self.bar = tqdm(desc=label, unit=f" {unit}", file=stream, disable=None, leave=True)

    def __call__(self, done: int, total: int) -> None:
        """Show it."""
        self.bar.total = total
        self.bar.update(done - self.bar.n)
        if done >= total:
            self.bar.close()


def watched(label: str, unit: str, total: int) -> Callable[[int, int], None] | None:
    """A progress line for a long job that somebody watches on a terminal; None for any other."""
    seen = total >= LONG and sys.stderr.isatty() and find_spec("tqdm") is not None
    return ProgressLine(label, unit) if seen else None
