import io

import pytest

from costmodel.common.progress import ProgressLine
from costmodel.lab.decoder import TinyDecoder

pytest.importorskip("tqdm", reason="the package tqdm, of the extra 'lab', is not installed")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_far_it_is_and_a_line_that_ends() -> None:
    terminal = Terminal()
    line = ProgressLine("writing", "tokens", terminal)
    for done in (1, 2):
        line(done, 2)
    shown = terminal.getvalue()
    assert "writing: 100%" in shown
    assert "2/2" in shown
    assert shown.endswith("\n")


def test_a_file_sees_nothing() -> None:
    file = io.StringIO()
    ProgressLine("writing", "tokens", file)(1, 1)
    assert file.getvalue() == ""


def test_long_answers_show_progress_on_a_terminal_and_short_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    TinyDecoder().generate([1], 8)
    assert terminal.getvalue() == ""
    TinyDecoder(max_len=128).generate([1], 64)
    assert "64/64" in terminal.getvalue()
