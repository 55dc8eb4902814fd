"""The version of modelplan, and those of other packages; imports nothing, so that whatever asks starts at once."""

__version__ = "0.1.0"


def installed_version(package: str) -> str:
    """The version of an installed package, empty where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # here, since it reads mail headers

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
