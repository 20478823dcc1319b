"""Models that decide: what an agent learned, as the command's controller ``onnx`` has it."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from brakelight import _brakelight


class Model:
    """A model in ONNX, with what it was made for.

    It decides as the controller ``onnx:model=PATH`` does, so an environment can be stepped with it.

    >>> from brakelight.envs import CongestionControlEnv, Model
    >>> model = Model.shipped()
    >>> model.specification["preset"], model.specification["history"]
    ('default', 4)
    >>> observation, _ = CongestionControlEnv().reset(seed=1)
    >>> -1.0 <= model(observation) <= 1.0
    True
    """

    def __init__(self, model: _brakelight.Model) -> None:
        """Take a model of the extension; use :meth:`read` or :meth:`shipped`."""
        self._model = model

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model from a file.

        Raises:
            InputError: if it cannot be read, is not in ONNX, or does not say what it was made for.
        """
        return cls(_brakelight.Model.read(path))

    @classmethod
    def shipped(cls) -> Model:
        """Return the model that comes with the package; ``docs/learning.md`` says how it was trained."""
        return cls(_brakelight.Model.shipped())

    @property
    def specification(self) -> dict[str, Any]:
        """What it was made for: preset, monitor interval, history and limits."""
        made: dict[str, Any] = json.loads(self._model.specification)
        return made

    def __call__(self, observation: Any) -> float:
        """Return the action for an observation, shape ``(n,)``, float32.

        Raises:
            InputError: if the observation has another width than those the model was made for.
        """
        return self._model.act(np.ascontiguousarray(observation, dtype=np.float32).reshape(-1))
