"""--calibrated: a forecast in place of the bound, and the line that says how wrong such forecasts were."""

import argparse

from costmodel.calibration import AVERAGE, Engine, engine, fitted
from costmodel.common.errors import CostModelError


def add_calibrated(parser: argparse.ArgumentParser) -> None:
    """--calibrated, alone or with the software that serves."""
    parser.add_argument(
        "--calibrated", type=software, nargs="?", const=True, default=False, metavar="SOFTWARE",
        help="a forecast fitted to published measurements, with its error, in place of the bound (as SOFTWARE runs)",
    )  # fmt: skip


def software(text: str) -> str:
    """The family that a software belongs to."""
    try:
        found = engine(text)
        return (Engine(text.lower()) if found.family == AVERAGE else found).family  # it refuses all but the average
    except CostModelError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def forecast_for(calibrated: bool | str) -> str:
    """Whose software is forecast."""
    average = calibrated is True or calibrated == AVERAGE
    return f"forecast for {'average software' if average else calibrated}"


def noted(text: object, calibrated: bool | str) -> str:
    """The text, and under it for a forecast how wrong such forecasts were."""
    return f"{text}\nnote: a {forecast_for(calibrated)}: {fitted().stated_error}" if calibrated else str(text)
