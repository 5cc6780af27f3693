"""The package's own exceptions: each message names the thing, its value and what would be accepted."""

from collections.abc import Iterable

LONGEST = 80  # characters of a name that is not known: more is neither compared nor repeated


class CostModelError(ValueError):
    """Anything this package refuses to work with."""


class UnknownNameError(CostModelError, KeyError):
    """A model, accelerator, format or quantity that is not on record."""

    def __str__(self) -> str:  # KeyError would print the repr
        return str(self.args[0])


class NotHereError(CostModelError):
    """Something that is fetched apart and has not been."""


class ConfigError(CostModelError):
    """A model configuration that cannot be right, or that is not understood."""


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """An error for a name not on record that suggests the near ones, or lists them all if none is near.

    Examples
    --------
    >>> print(unknown_name("model", "llama-3-9b", ["llama-3-8b", "llama-2-7b"]))
    unknown model 'llama-3-9b'; did you mean llama-3-8b, llama-2-7b?
    """
    from difflib import get_close_matches  # only when a name is wrong

    known = sorted(known)
    shown = repr(name) if len(str(name)) <= LONGEST else repr(str(name)[:LONGEST] + "…")
    near = get_close_matches(str(name)[:LONGEST].lower(), known, n=3, cutoff=0.6)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(known)}"
    return UnknownNameError(f"unknown {kind} {shown}; {hint}")


def resolve_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The one known slug that `name` means: itself in any case, or the only one it begins.

    Examples
    --------
    >>> resolve_name("accelerator", "H100-S", ["h100-sxm", "h100-pcie"])
    'h100-sxm'
    """
    known = list(known)
    if not isinstance(name, str):
        raise unknown_name(kind, name, known)
    wanted = name.strip().lower().replace("_", "-").replace(" ", "-")
    if wanted in known:
        return wanted
    begun = sorted(slug for slug in known if wanted and slug.startswith(wanted))
    if len(begun) == 1:
        return begun[0]
    if begun:
        raise UnknownNameError(f"{kind} {name!r} is ambiguous: it begins {', '.join(begun)}")
    raise unknown_name(kind, name, known)
