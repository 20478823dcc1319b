//! A controller that a model in ONNX drives: what an agent learned, as a row like any other.
//!
//! ```text
//! every monitor interval:   action = model(observation); cwnd or pacing rate = what the preset makes of it
//! ```
//!
//! The file says what the model was made for: the entry `brakelight` of its metadata is a [`Specification`]
//! in JSON. It has one input, `[1, width]` of float32, and its first output's first number is the action.
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | model | `model` | a file | the model that comes with this crate | the page Learning |
//! | - | `start_rate` | bit/s | 1 Mbit/s | chosen here |
//!
//! Limits: a model is at most 64 MB. Its arithmetic is float32 by the instructions of the processor, so the
//! last bit of an action may differ between machines; on one machine a run is repeated to the byte.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use brakelight_core::controller::Connection;
use brakelight_core::parameters;
use brakelight_core::parameters::Value;
use brakelight_core::time::Time;
use brakelight_core::units::Rate;
use brakelight_registry::{Algorithm, CustomController, Needs, RegisterError, Registry};
use brakelight_senders::controller::external::{FASTEST, SLOWEST};
use tract_onnx::prelude::{
    DatumExt, Framework, InferenceModelExt, Tensor, TractError, TypedModel, TypedRunnableModel, tvec,
};

use crate::interval::Interval;
use crate::monitor::{Agent, Monitor, Specification};
use crate::preset::Memory;

/// The entry of a model's metadata that holds its [`Specification`].
pub const METADATA: &str = "brakelight";

/// The name of the model that comes with this crate.
pub const SHIPPED: &str = "shipped";

/// The largest file that is read.
const LARGEST_FILE: u64 = 64_000_000;

/// Why a file is no model that can decide.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unread(#[from] std::io::Error),
    /// It is larger than any model that is meant.
    #[error("it has more than 64 MB")]
    TooLarge,
    /// It is not in ONNX, or has operations that are not supported.
    #[error("it cannot be loaded as ONNX: {0}")]
    Malformed(String),
    /// It does not say what it was made for.
    #[error("its metadata has no entry `{METADATA}`, which says what it observes and decides")]
    NoSpecification,
    /// What it was made for makes no sense.
    #[error("the entry `{METADATA}` of its metadata: {0}")]
    Specification(String),
    /// It takes or gives other numbers than its specification says.
    #[error("it does not give an action for {width} numbers: {reason}")]
    Shape {
        /// How many numbers an observation has.
        width: usize,
        /// What went wrong.
        reason: String,
    },
}

/// A model that was loaded and tried. Copies share it.
#[derive(Clone)]
pub struct Model(Arc<Loaded>);

struct Loaded {
    /// The file, as it was given.
    source: String,
    bytes: Vec<u8>,
    specification: Arc<Specification>,
    plan: TypedRunnableModel<TypedModel>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Model").field(&self.0.source).finish()
    }
}

/// Models are equal if they have the same bytes under the same name.
impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.source == other.0.source && self.0.bytes == other.0.bytes)
    }
}

impl Model {
    /// Reads a model from a file, and tries it.
    ///
    /// # Errors
    /// The file cannot be read, is no model in ONNX, or is none that decides as [`METADATA`] says.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(ModelError::TooLarge);
        }
        Self::from_bytes(path.display().to_string(), bytes)
    }

    /// Returns the model that comes with this crate. `docs/learning.md` says how it was trained.
    pub fn shipped() -> Self {
        static LOADED: OnceLock<Model> = OnceLock::new();
        let load = || {
            Self::from_bytes(SHIPPED.to_string(), include_bytes!("../models/ppo.onnx").to_vec())
                .expect("a test loads the shipped model")
        };
        LOADED.get_or_init(load).clone()
    }

    /// Loads the model of the file `source`, which has these `bytes`, and tries it.
    fn from_bytes(source: String, bytes: Vec<u8>) -> Result<Self, ModelError> {
        let onnx = tract_onnx::onnx();
        let malformed = |error: TractError| ModelError::Malformed(one_line(&error));
        let proto = onnx.proto_model_for_read(&mut bytes.as_slice()).map_err(malformed)?;
        let entry = proto.metadata_props.iter().find(|entry| entry.key == METADATA);
        let text = &entry.ok_or(ModelError::NoSpecification)?.value;
        let specification: Specification =
            serde_json::from_str(text).map_err(|error| ModelError::Specification(error.to_string()))?;
        specification.check().map_err(ModelError::Specification)?;
        let width = specification.width();
        let plan = onnx
            .model_for_proto_model(&proto)
            .and_then(|model| model.with_input_fact(0, f32::fact([1, width]).into()))
            .and_then(InferenceModelExt::into_optimized)
            .and_then(TypedModel::into_runnable)
            .map_err(malformed)?;
        let model = Model(Arc::new(Loaded { source, bytes, specification: Arc::new(specification), plan }));
        match model.run(&model.0.specification.nothing()) {
            Ok(_) => Ok(model),
            Err(reason) => Err(ModelError::Shape { width, reason }),
        }
    }

    /// Returns what it was made for.
    pub fn specification(&self) -> &Arc<Specification> {
        &self.0.specification
    }

    /// Returns the action that it takes for an observation. Of one of another width, or where its arithmetic
    /// fails, that is NaN, which decides nothing.
    pub fn act(&self, observation: &[f32]) -> f64 {
        self.run(observation).unwrap_or(f64::NAN)
    }

    fn run(&self, observation: &[f32]) -> Result<f64, String> {
        let said = |error: TractError| one_line(&error);
        let input = Tensor::from_shape(&[1, observation.len()], observation).map_err(said)?;
        let outputs = self.0.plan.run(tvec!(input.into())).map_err(said)?;
        let output = outputs.first().ok_or("it has no output")?;
        let numbers = output.as_slice::<f32>().map_err(said)?;
        numbers.first().map(|action| f64::from(*action)).ok_or_else(|| "its output is empty".to_string())
    }
}

/// The causes of an error, in one line.
fn one_line(error: &TractError) -> String {
    format!("{error:#}").lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

impl Value for Model {
    fn unit() -> String {
        "a file in ONNX".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text == SHIPPED {
            return Ok(Model::shipped());
        }
        Model::read(Path::new(text)).map_err(|error| format!("a model that can decide: {error}"))
    }

    fn show(&self) -> String {
        self.0.source.clone()
    }
}

parameters! {
    /// The settings of a controller that a model drives.
    pub struct Config {
        /// The model's file; `shipped` is the one that comes with the program.
        model: Model = Model::shipped(), in .., from "the page Learning of the book";
        /// The first pacing rate, of models that decide rates.
        start_rate: Rate = Rate::from_mbps(1), in SLOWEST..=FASTEST, from "chosen here";
    }
}

/// The agent: the model, and what it decided for the last observation.
#[derive(Clone, Debug)]
pub struct Decider {
    model: Model,
    action: f64,
}

impl Agent for Decider {
    fn observe(&mut self, _interval: Option<&Interval>, _memory: &Memory, observation: &[f32]) {
        self.action = self.model.act(observation);
    }

    fn act(&mut self) -> (f64, Option<Time>) {
        (self.action, None)
    }
}

/// The controller `onnx`.
pub type Onnx = Monitor<Decider>;

impl Algorithm for Onnx {
    type Config = Config;
    const NAME: &'static str = "onnx";
    const FILES: Option<(&'static str, &'static str)> = Some((".onnx", "model"));
    const SUMMARY: &'static str = "A model in ONNX that decides each monitor interval: what an agent learned";
}

impl CustomController for Onnx {
    /// The model that comes with it shows how a model is run.
    const NEEDS: Needs = Needs { demonstration: true, ..Needs::PLAIN };

    fn build(config: &Config, connection: &Connection) -> Self {
        let agent = Decider { model: config.model.clone(), action: 0.0 };
        let specification = Arc::clone(config.model.specification());
        Monitor::new(specification, agent, connection, config.start_rate)
    }
}

/// Adds the controller to `registry`.
///
/// # Errors
/// Another controller has its name.
pub fn add_to(registry: &mut Registry) -> Result<(), RegisterError> {
    registry.add_controller::<Onnx>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset::Preset;

    #[test]
    fn the_shipped_model_decides_and_is_a_controller() {
        let model = Model::shipped();
        assert_eq!(model.specification().preset, Preset::Default);
        let action = model.act(&model.specification().nothing());
        assert!((-1.0..=1.0).contains(&action), "{action}");
        assert!(model.act(&[0.0; 3]).is_nan());
        let mut registry = Registry::standard();
        add_to(&mut registry).unwrap();
        let config = registry.controller("onnx", &[("start_rate", "5Mbps")]).unwrap();
        let settings: Vec<_> = config.settings().into_iter().map(|(_, value)| value).collect();
        assert_eq!(settings, ["shipped", "5Mbps"]);
        assert_eq!(
            config,
            registry.controller("onnx", &[("model", SHIPPED), ("start_rate", "5Mbps")]).unwrap()
        );
    }

    #[test]
    fn a_file_that_is_no_model_is_refused_with_its_name() {
        let mut registry = Registry::standard();
        add_to(&mut registry).unwrap();
        let refused = registry.controller("onnx", &[("model", "no/such.onnx")]).unwrap_err().to_string();
        let words = "onnx: model = `no/such.onnx` is not a model that can decide: it cannot be read: ";
        assert!(refused.starts_with(words), "{refused}");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let refused = Model::read(Path::new(source)).unwrap_err();
        assert!(matches!(refused, ModelError::Malformed(_)), "{refused}");
        assert!(!refused.to_string().contains('\n'));
    }
}
