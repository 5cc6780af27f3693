"""Sizing: a model on an accelerator in given formats, and every question asked of that."""

from costmodel.sizing.deployment import Deployment
from costmodel.sizing.steps import Decode

__all__ = ["Decode", "Deployment"]
