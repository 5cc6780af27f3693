"""Parallelism: what one of many devices holds, does and sends."""

from costmodel.parallel.options import ONE_DEVICE, Parallel

__all__ = ["ONE_DEVICE", "Parallel"]
