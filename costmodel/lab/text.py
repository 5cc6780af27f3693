"""A short text to measure models on: eight paragraphs of plain English, written for this project, MIT as all of it."""

from importlib.resources import files


def sample_text() -> str:
    """The text, paragraphs separated by an empty line.

    Returns
    -------
    eight paragraphs, without a line break at the end

    Examples
    --------
    >>> text = sample_text()
    >>> text[:35], len(text.split("\\n\\n"))
    ('The lighthouse at the end of the pi', 8)
    """
    return (files("costmodel") / "data" / "text.txt").read_text(encoding="utf-8").strip()
