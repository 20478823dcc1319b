"""The names by which ``gymnasium.make`` knows the environments."""

from __future__ import annotations


def register() -> None:
    """Register the environments, unless they are registered already."""
    from gymnasium.envs.registration import register as add
    from gymnasium.envs.registration import registry

    for name, entry, vector in (
        ("CongestionControl", "congestion:CongestionControlEnv", "congestion:CongestionControlVectorEnv"),
        ("Router", "router:RouterEnv", None),
    ):
        full = f"brakelight/{name}-v0"
        if full not in registry:
            add(
                id=full,
                entry_point=f"brakelight.envs.{entry}",
                vector_entry_point=f"brakelight.envs.{vector}" if vector else None,
            )
