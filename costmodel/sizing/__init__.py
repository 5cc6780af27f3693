"""Sizing: a model on an accelerator in given formats, and every question asked of that."""

from costmodel.sizing.deployment import Decode, Deployment

__all__ = ["Decode", "Deployment"]
