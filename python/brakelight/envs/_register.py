"""Gymnasium knows the environments once ``brakelight.envs`` is imported."""

from brakelight._gymnasium import register as register_environments

__all__ = ["register_environments"]
