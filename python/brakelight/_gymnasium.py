"""The names by which ``gymnasium.make`` knows the environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

_PLACES = {
    "CongestionControl": ("congestion:CongestionControlEnv", "congestion:CongestionControlVectorEnv"),
    "Router": ("router:RouterEnv", None),
}
"""Where each environment is, and several of it."""

# The actions of version 1 are within -1 and 1 whatever the preset. Under the same name, an agent that was saved
# would do something else.
_VERSIONS: dict[str, list[dict[str, Any]]] = {"CongestionControl": [{}, {"normalized": True}], "Router": [{}]}


def _made_of(name: str, version: int, arguments: Mapping[str, Any]) -> dict[str, Any]:
    entry, vector = _PLACES[name]
    return {
        "id": f"brakelight/{name}-v{version}",
        "entry_point": f"brakelight.envs.{entry}",
        "vector_entry_point": f"brakelight.envs.{vector}" if vector else None,
        "kwargs": dict(arguments),
    }


def register() -> None:
    """Register the environments, unless they are registered already."""
    from gymnasium.envs.registration import register as add
    from gymnasium.envs.registration import registry

    for name, versions in _VERSIONS.items():
        for version, arguments in enumerate(versions):
            made = _made_of(name, version, arguments)
            if made["id"] not in registry:
                add(**made)


def spec_of(name: str, arguments: Mapping[str, Any]) -> EnvSpec:
    """Return what makes an environment again that was made without ``gymnasium.make``."""
    from gymnasium.envs.registration import EnvSpec

    version = 1 if arguments.get("normalized") else 0
    return EnvSpec(**_made_of(name, version, arguments))
