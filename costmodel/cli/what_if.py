"""`costmodel what-if`: what should I change first?"""

import argparse

from costmodel.cli._arguments import add_json, add_parallel, print_json
from costmodel.cli._forecast import noted
from costmodel.cli._questions import add_question, deployed, where
from costmodel.sizing.levers import METRICS
from costmodel.sizing.words import titled


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_question(parser)
    parser.add_argument("--metric", choices=METRICS, default="latency", help="what is to change (default latency)")
    add_parallel(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Print every lever, the strongest first."""
    deployment = deployed(options)
    found = deployment.elasticities(metric=options.metric, **where(options))
    if options.json:
        print_json(
            {
                "metric": options.metric,
                "value": found.value,
                "unit": found.metric.unit,
                "bound": found.bound,
                "elasticities": dict(found.levers),
                "other_branch": found.other and dict(found.other),
            }
        )
    else:
        answer = f"{titled(deployment)}, batch {options.batch:,}, context {options.context:,}\n{found}"
        print(noted(answer, options.calibrated))
