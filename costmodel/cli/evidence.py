"""`costmodel evidence`: published measurements against the bound and against the calibrated forecast."""

import argparse
from collections import defaultdict
from statistics import median
from typing import Any

from costmodel.calibration import fitted
from costmodel.cli._arguments import add_json, print_json
from costmodel.common.checks import present
from costmodel.common.errors import CostModelError
from costmodel.evidence import Report, Verdict, against_the_bound, check
from costmodel.tables import Table, with_prefix

ALL = 40  # more rows than this are summed up by software, hardware and phase


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--model", metavar="TEXT", help="rows whose model contains this")
    parser.add_argument("--hardware", metavar="TEXT", help="rows whose accelerator contains this")
    parser.add_argument("--check", metavar="FILE", help="a CSV of the same columns, in place of the project's table")
    parser.add_argument("--rows", action="store_true", help="every row, however many")
    add_json(parser)


def as_record(verdict: Verdict) -> dict[str, Any]:
    """One row under the keys that scripts rely on, in SI base units."""
    row, found = verdict.row, verdict.bound
    return {
        "id": row.id, "model": row.model, "hardware": row.hardware, "devices": row.devices,
        "weight_bits": row.weight_bits, "cache_bits": row.cache_bits, "batch": row.batch, "prompt": row.prompt,
        "generated": row.generated, "phase": row.phase, "value": row.value, "unit": row.unit,
        "software": row.software, "source": row.source, "excluded": row.excluded, "note": row.note,
        "measured_s": found.measured, "ideal_s": found.ideal, "binds": found.binds, "utilisation": found.utilisation,
        "forecast_s": verdict.forecast, "forecast_error": verdict.error,
    }  # fmt: skip


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.0%}"


def row_table(report: Report) -> Table:
    """A line for each row."""
    lines = []
    for v in report.verdicts:
        r, b = v.row, v.bound
        what = f"{r.model} x{r.devices} {r.hardware}" if r.devices > 1 else f"{r.model} on {r.hardware}"
        asked = f"{r.weight_bits:g}-bit" if r.weight_bits else ""
        ideal = "" if b.ideal is None else with_prefix(b.ideal, "s")
        said = "excluded" if r.excluded else (b.binds or "")
        lines.append([r.id, what, asked, r.batch or "", r.phase, r.software, with_prefix(b.measured, "s"), ideal,
                      _share(b.utilisation), said, _signed(v.error)])  # fmt: skip
    heads = [
        "row",
        "what",
        "weights",
        "batch",
        "phase",
        "software",
        "measured",
        "at best",
        "reached",
        "binds",
        "forecast",
    ]
    return Table(heads, lines)


def sums(report: Report) -> Table:
    """Median utilisation and forecast error by phase and software."""
    groups: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for v in report.verdicts:
        if v.row.honest and v.bound.utilisation is not None:
            groups[v.row.phase, v.row.software.split(",")[0]].append(v)
    lines = []
    for (phase, software), found in sorted(groups.items()):
        reached = [present("the bound", v.bound.utilisation) for v in found]
        errors = [abs(v.error) for v in found if v.error is not None]
        off = f"{median(errors):.0%}" if errors else ""
        lines.append([phase, software, len(found), _share(median(reached)), _share(max(reached)), off])
    return Table(["phase", "software", "rows", "median reached", "best", "forecast off by"], lines)


def run(options: argparse.Namespace) -> None:
    """Print the rows, or their sums where there are many."""
    if options.check is None:
        report = against_the_bound(model=options.model, hardware=options.hardware)
    else:
        rows = [verdict.row for verdict in check(options.check).verdicts]
        report = against_the_bound(rows, model=options.model, hardware=options.hardware)
    if options.json:
        print_json([as_record(verdict) for verdict in report.verdicts])
    else:
        print(row_table(report) if options.rows or len(report.verdicts) <= ALL else sums(report))
        honest = sum(verdict.row.honest for verdict in report.verdicts)
        counted = "1 row" if len(report.verdicts) == 1 else f"{len(report.verdicts)} rows"
        print(f"\n{counted}, {honest} honest, {len(report.impossible)} of these beat the bound")
        if report.median_error is not None:
            fit = "" if options.check else " (most of them fitted to)"
            print(f"decode forecasts, on these rows{fit}: off by {report.median_error:.0%} at the median")
            print(f"on rows not fitted to: {fitted().stated_error}")
    if options.check is not None and report.impossible:
        names = ", ".join(verdict.row.id for verdict in report.impossible)
        raise CostModelError(f"{options.check}: faster than physics allows: {names}; a wrong row, or a wrong record")
