//! Environments to learn in: many at once, each a simulation; one call steps all of them.
//!
//! | module | holds |
//! |---|---|
//! | [`source`] | what episodes are: links that are drawn, or a scenario |
//! | [`links`] | what links are drawn from |
//! | [`episode`] | one environment |
//!
//! What is observed, when, and what an action does is said by `brakelight-learn`.

mod episode;
mod links;
mod source;

use std::sync::Arc;

use brakelight::core::units::Rate;
use numpy::{PyReadonlyArray1, PyReadwriteArray1, PyReadwriteArray2};
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::error::{failed, input};
use crate::registry::{Algorithms, interned};
use crate::scenario::{Scenario, names};
use crate::simulation::FlowView;
use crate::trace::Trace;
use crate::work::pool;
use episode::{Environment, INFO, Place, Setup};
use source::{Source, Steered};

/// Environments that are stepped together.
#[pyclass(module = "brakelight._brakelight")]
pub struct Environments {
    setup: Arc<Setup>,
    source: Arc<Source>,
    algorithms: Arc<Algorithms>,
    environments: Vec<Environment>,
}

/// Where an environment stands: its seed, the episodes that were begun with it, and what was done in the
/// present one, if there is one. The rest follows.
type State = (u64, u64, Option<Vec<f64>>);

/// The arrays of a call: observations, rewards, what was measured, whether an episode's time is over.
type Arrays<'py> = (
    PyReadwriteArray2<'py, f32>,
    PyReadwriteArray1<'py, f64>,
    PyReadwriteArray2<'py, f64>,
    PyReadwriteArray1<'py, bool>,
);

#[pymethods]
impl Environments {
    /// Of the links that `setup` says, or else of a scenario with the name of the flow that the agent steers.
    #[new]
    #[pyo3(signature = (setup, seeds, given, steered=None))]
    fn new(
        py: Python<'_>,
        setup: &str,
        seeds: Vec<u64>,
        given: Vec<PyRef<'_, Trace>>,
        steered: Option<(PyRef<'_, Scenario>, String)>,
    ) -> PyResult<Self> {
        let setup: Setup = serde_json::from_str(setup).map_err(input)?;
        let mut algorithms = Algorithms::current();
        let agents: Arc<[&'static str]> =
            (0..setup.agents).map(|number| interned(py, &format!("agent-{number}"))).collect();
        let source = match (&setup.links, steered) {
            (Some(links), None) => {
                links.check(&algorithms.registry).map_err(input)?;
                let names = names(&given)?;
                let traces =
                    links.traces.iter().map(|name| Ok((name.clone(), names.load(name).map_err(input)?)));
                Source::Links(links.clone(), Arc::new(traces.collect::<PyResult<_>>()?))
            }
            (None, Some((scenario, flow))) => {
                // What its algorithms in Python raise is noted where the scenario was read.
                algorithms.failures = scenario.failures.clone();
                let steered = Steered::new(&scenario.scenario, &scenario.traces, &flow);
                Source::Scenario(Box::new(steered.map_err(input)?))
            }
            _ => return Err(input("links, scenario: give one of them")),
        };
        if let Some(failure) = algorithms.failures.take() {
            return Err(failure);
        }
        let (algorithms, source, setup) = (Arc::new(algorithms), Arc::new(source), Arc::new(setup));
        let environments = seeds
            .into_iter()
            .map(|seed| {
                let (source, agents) = (Arc::clone(&source), Arc::clone(&agents));
                Environment::new(setup.clone(), Arc::clone(&algorithms), agents, source, seed)
            })
            .collect();
        Ok(Environments { setup, source, algorithms, environments })
    }

    /// What an agent of these environments is made for, as JSON: what a model of one carries along.
    #[getter]
    fn specification(&self) -> PyResult<String> {
        let ((_, most_mbps), _) = self.source.ranges();
        let most = Rate::from_bps_f64(most_mbps * 1e6);
        serde_json::to_string(&self.setup.specification(&self.source, most)).map_err(failed)
    }

    /// The scenario of the episode that environment `number` is in, as TOML.
    fn scenario(&self, number: usize) -> PyResult<String> {
        let scenario = self.environments.get(number).and_then(Environment::scenario);
        scenario.ok_or_else(|| input("the environment was not reset"))
    }

    /// The first agent's flow of environment `number`, as it stands.
    fn flow(&self, number: usize) -> PyResult<FlowView> {
        let flow = self.environments.get(number).and_then(Environment::flow);
        flow.map(FlowView::from).ok_or_else(|| input("the environment was not reset"))
    }

    /// The names of the columns of what is measured.
    #[staticmethod]
    fn info_names() -> Vec<&'static str> {
        INFO.to_vec()
    }

    /// The least and the most of every number of an interval.
    #[getter]
    fn bounds(&self) -> Vec<(f64, f64)> {
        self.setup.preset.bounds().to_vec()
    }

    /// The least and the most of an action.
    #[getter]
    fn action_bounds(&self) -> (f64, f64) {
        self.setup.preset.action_bounds()
    }

    /// Begins an episode of those environments that `which` says, with the seed that it says, if any.
    fn reset(&mut self, py: Python<'_>, which: Vec<(bool, Option<u64>)>, arrays: Arrays<'_>) -> PyResult<()> {
        self.every(py, arrays, |number, environment, place| match which.get(number) {
            Some((true, seed)) => environment.reset(*seed, place),
            _ => Ok(()),
        })
    }

    /// Where every environment stands.
    fn state(&self) -> Vec<State> {
        self.environments.iter().map(Environment::state).collect()
    }

    /// Has every environment stand where another one stood of the same settings.
    fn restore(&mut self, py: Python<'_>, states: Vec<State>, arrays: Arrays<'_>) -> PyResult<()> {
        if states.len() != self.environments.len() {
            return Err(input("states: there must be one for every environment"));
        }
        self.every(py, arrays, |number, environment, place| environment.restore(&states[number], place))
    }

    /// Steps every environment; those that `fresh` says begin an episode instead.
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyReadonlyArray1<'_, f64>,
        fresh: PyReadonlyArray1<'_, bool>,
        arrays: Arrays<'_>,
    ) -> PyResult<()> {
        let (actions, fresh) = (actions.as_slice()?, fresh.as_slice()?);
        let agents = self.setup.agents;
        if actions.len() != self.environments.len() * agents || fresh.len() != self.environments.len() {
            return Err(input("actions: there must be one for every agent of every environment"));
        }
        self.every(py, arrays, |number, environment, place| {
            if fresh[number] {
                environment.reset(None, place)
            } else {
                environment.step(&actions[number * agents..][..agents], place)
            }
        })
    }
}

impl Environments {
    /// Calls `act` with every environment and its part of the arrays, without the GIL.
    fn every(
        &mut self,
        py: Python<'_>,
        (mut observations, mut rewards, mut info, mut truncated): Arrays<'_>,
        act: impl Fn(usize, &mut Environment, &mut Place<'_>) -> Result<(), String> + Sync,
    ) -> PyResult<()> {
        let agents = self.setup.agents;
        let width = agents * self.setup.history * self.setup.preset.features();
        let count = self.environments.len();
        let (observations, rewards) = (observations.as_slice_mut()?, rewards.as_slice_mut()?);
        let (info, truncated) = (info.as_slice_mut()?, truncated.as_slice_mut()?);
        let fits = observations.len() == count * width
            && rewards.len() == count * agents
            && info.len() == count * agents * INFO.len()
            && truncated.len() == count;
        if !fits {
            return Err(input("arrays: their shapes are not those of the environments"));
        }
        let environments = &mut self.environments;
        let pool = pool(py)?;
        let done = py.detach(|| {
            if count == 1 {
                // Without a detour over another thread.
                let place = &mut Place { observations, rewards, info, truncated: &mut truncated[0] };
                return act(0, &mut environments[0], place);
            }
            let all = environments
                .par_iter_mut()
                .zip(observations.par_chunks_mut(width))
                .zip(rewards.par_chunks_mut(agents))
                .zip(info.par_chunks_mut(agents * INFO.len()))
                .zip(truncated.par_iter_mut())
                .enumerate()
                .map(|(number, ((((environment, observations), rewards), info), truncated))| {
                    act(number, environment, &mut Place { observations, rewards, info, truncated })
                });
            pool.install(|| all.collect::<Result<(), String>>())
        });
        // What an algorithm in Python raised comes before what the simulator made of it.
        self.algorithms.failures.take().map_or_else(|| done.map_err(failed), Err)
    }
}
