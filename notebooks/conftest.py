"""nbval leaves images uncompared; these repeat, so they are compared like the rest."""


def pytest_collectstart(collector: object) -> None:
    """Compare PNG and JPEG outputs like every other."""
    skipped = getattr(collector, "skip_compare", ())
    if skipped:
        collector.skip_compare = tuple(
            kind for kind in skipped if kind not in ("image/png", "image/jpeg")
        )
