"""Registration where Gymnasium did not find the package by itself."""

from brakelight._gymnasium import register as register_environments

__all__ = ["register_environments"]
