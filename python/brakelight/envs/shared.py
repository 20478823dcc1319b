"""Several agents, each with a flow over the same link (PettingZoo)."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from pettingzoo import ParallelEnv

from brakelight._arguments import Time, whole
from brakelight.envs._native import Native
from brakelight.envs._settings import Links, settings

Array = npt.NDArray[np.float32]


class SharedLink(ParallelEnv[str, Array, Array]):
    """Agents ``flow_0``, ``flow_1`` and so on share a link, each with a flow of its own.

    Observations, actions, rewards and ``info`` of each are those of
    :class:`brakelight.envs.CongestionControlEnv`. All decide at the same times; an interval in RTTs is in the mean of
    theirs. ``infos`` has each agent's share of what all delivered in the interval as ``share``.

    >>> from brakelight.envs import SharedLink
    >>> env = SharedLink(agents=3)
    >>> observations, infos = env.reset(seed=1)
    >>> sorted(observations)
    ['flow_0', 'flow_1', 'flow_2']
    """

    metadata: dict[str, Any] = {"name": "brakelight_shared_link_v0", "render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        agents: int = 2,
        preset: str = "default",
        *,
        links: Links | None = None,
        history: int | None = None,
        steps: int | None = None,
        interval: Time | None = None,
        stagger: Time = "0s",
        normalized: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Make an environment.

        Args:
            agents: flows that share the link, at least 1.
            stagger: time between the starts of the flows.
            preset: as of :class:`brakelight.envs.CongestionControlEnv`, with what follows.
            links: what links are drawn from.
            history: intervals in an observation.
            steps: steps of an episode.
            interval: the length of a monitor interval.
            normalized: whether actions are within -1 and 1 whatever the preset is.
            render_mode: None; there is nothing to render.

        Raises:
            InputError: if an argument is wrong.
        """
        agents = whole("agents", agents, 1, 10_000)
        made = settings(
            preset,
            agents,
            links=links,
            history=history,
            steps=steps,
            interval=interval,
            stagger=stagger,
            normalized=normalized,
            render_mode=render_mode,
        )
        self._native = Native(made, 1)
        self.possible_agents = [f"flow_{number}" for number in range(agents)]
        self.agents: list[str] = []
        self.render_mode = render_mode
        observation = gymnasium.spaces.Box(self._native.low, self._native.high, dtype=np.float32)
        low, high = self._native.action_low, self._native.action_high
        action = gymnasium.spaces.Box(low, high, (1,), np.float32)
        self.observation_spaces = dict.fromkeys(self.possible_agents, observation)
        self.action_spaces = dict.fromkeys(self.possible_agents, action)
        self._random = np.random.default_rng()
        self._seeded = False

    def observation_space(self, agent: str) -> gymnasium.spaces.Space[Any]:
        """Return what an agent observes."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Space[Any]:
        """Return what an agent may do."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, dict[str, Any]]]:
        """Begin an episode: the first of ``seed``, or the next."""
        if seed is None and not self._seeded:
            seed = int(self._random.integers(2**63))
        self._seeded = True
        self._native.reset([(True, seed)])
        self.agents = list(self.possible_agents)
        return self._observations(), self._infos()

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[
        dict[str, Array], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Let all act, and advance by a monitor interval."""
        if not self.agents:
            return {}, {}, {}, {}, {}
        self._native.step([float(np.asarray(actions[agent]).reshape(-1)[0]) for agent in self.possible_agents])
        over = bool(self._native.truncated[0])
        rewards = dict(zip(self.agents, self._native.rewards.tolist(), strict=True))
        answer = (
            self._observations(),
            rewards,
            dict.fromkeys(self.agents, False),
            dict.fromkeys(self.agents, over),
            self._infos(),
        )
        if over:
            self.agents = []
        return answer

    def _observations(self) -> dict[str, Array]:
        return {agent: self._native.observations[row].copy() for row, agent in enumerate(self.possible_agents)}

    def _infos(self) -> dict[str, dict[str, Any]]:
        infos = {agent: self._native.row(row) for row, agent in enumerate(self.possible_agents)}
        total = sum(info["throughput_mbps"] for info in infos.values())
        for info in infos.values():
            info["share"] = info["throughput_mbps"] / total if total > 0 else 1 / len(infos)
        return infos
