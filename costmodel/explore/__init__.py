"""Interactive pages: the same formulas behind sliders."""

from costmodel.explore.calculator import Calculator

__all__ = ["Calculator"]
