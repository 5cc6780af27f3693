"""nbval leaves images uncompared by default; the figures here are repeatable, so they are compared too."""


def pytest_collectstart(collector: object) -> None:
    """Compare PNG and JPEG outputs like every other."""
    skipped = getattr(collector, "skip_compare", ())
    if skipped:
        collector.skip_compare = tuple(kind for kind in skipped if kind not in ("image/png", "image/jpeg"))
