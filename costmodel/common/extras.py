"""Packages that only some jobs need: imported when the job is asked for, their absence said in words."""

from importlib import import_module
from types import ModuleType

from costmodel.common.errors import CostModelError


def needed(module: str, purpose: str, extra: str) -> ModuleType:
    """Import an optional package.

    Raises
    ------
    CostModelError
        when it is not installed, naming the extra that brings it

    Examples
    --------
    >>> needed("json", "reading", "lab").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise CostModelError(f"{purpose} needs the package {package!r}: pip install 'costmodel[{extra}]'") from error
