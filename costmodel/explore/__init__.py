"""Interactive pages: the same formulas behind sliders."""

from costmodel.explore.calculator import Calculator
from costmodel.explore.catalogue import Catalogue
from costmodel.explore.document import page

__all__ = ["Calculator", "Catalogue", "page"]
