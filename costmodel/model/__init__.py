"""A model is a stack of blocks, each with how often it occurs; sizes may be numbers or symbols."""

from costmodel.model.block import WIDEST, Block, Tower, element_bytes
from costmodel.model.dense import stated_model, transformer
from costmodel.model.stack import Model

__all__ = ["WIDEST", "Block", "Model", "Tower", "element_bytes", "stated_model", "transformer"]
