import io

from costmodel.common.progress import ProgressLine


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_one_line_that_ends() -> None:
    terminal = Terminal()
    line = ProgressLine("writing", "tokens", terminal)
    for done in (1, 2):
        line(done, 2)
    first, last = terminal.getvalue().removeprefix("\r").split("\r")
    assert first.startswith("writing: 1 of 2 tokens, ")
    assert last.endswith("/s\n")


def test_a_file_sees_nothing() -> None:
    file = io.StringIO()
    ProgressLine("writing", "tokens", file)(1, 1)
    assert file.getvalue() == ""
