"""`python -m costmodel.evidence`: fit the constants anew and write data/calibration.toml with their held-out errors."""

from importlib.resources import as_file, files

from costmodel.evidence.fit import family_of, fifth_of, fit, held_out, source_of, summary, training_rows

HEADER = """# Constants of the forecast, fitted to data/evidence.csv; written by `python -m costmodel.evidence`.
#
# Efficiencies are shares of the recorded rates; layer, step, sequence and all_reduce are seconds; what ends in the name
# of a software family is a factor by which it departs from the average one (see costmodel/calibration/terms.py);
# factors that no row speaks for are left out and count as 1.
"""
ERRORS = (
    "# |forecast/measured - 1| on decode rows with batch and lengths stated, each held out of the fit: one fifth by",
    "# the hash of its id, each fifth in turn, each source in turn, each family of software in turn.",
)


def written() -> str:
    """The file's text."""
    constants = fit(training_rows())
    error = {
        "hash": summary(held_out(fifth_of, groups=(0,)).values()),
        "fifths": summary(held_out(fifth_of).values()),
        "source": summary(held_out(source_of).values()),
        "software": summary(held_out(family_of).values()),
    }
    lines = [HEADER, "[constants]", *(f'"{name}" = {value!r}' for name, value in constants.items() if value != 1)]
    lines += ["", *ERRORS, "[error]"]
    for name, found in error.items():
        lines.append(f"{name} = {{ {', '.join(f'{key} = {value!r}' for key, value in found.items())} }}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = written()
    with as_file(files("costmodel") / "data" / "calibration.toml") as path:
        path.write_text(text, encoding="utf-8")
    print(text[text.index("[error]") :])
