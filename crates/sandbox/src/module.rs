//! Reading a module, and refusing what cannot be a controller.
//!
//! A copy of a flow must have what the module keeps: its memory and its globals. WebAssembly shows only
//! exported globals, so the module that runs exports all of them besides. Tables cannot be copied; they may
//! not change. Everything else is as the file has it.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use brakelight_core::parameters::Value;
use wasmi::{
    CompilationMode, Config, Engine, ExternType, Instance, Store, StoreLimits, StoreLimitsBuilder, TypedFunc,
};
use wasmparser::{Operator, Parser, Payload};

use crate::abi::{ABI, BUFFER, BYTES, MEMORY, ModuleEvent, TRAITS, VERSION};

/// The name of the module that comes with this crate: NewReno.
pub const SHIPPED: &str = "shipped";

/// The largest file that is read, in bytes.
pub const LARGEST_FILE: u64 = 4_000_000;
/// The most memory of one instance, in bytes.
pub const MOST_MEMORY: usize = 16 << 20;
/// The most work of one call, in units of fuel: about one for each instruction.
pub const FUEL: u64 = 1_000_000;
/// The most work before a flow's first packet.
pub const FUEL_OF_INIT: u64 = 10_000_000;
/// The most entries of tables.
const MOST_ENTRIES: usize = 100_000;

/// What the names of the exported globals begin with.
const GLOBAL: &str = "brakelight global ";

/// Why a file is no module that can decide.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Unread(#[from] std::io::Error),
    /// It is larger than any module that is meant.
    #[error("it has more than 4 MB")]
    TooLarge,
    /// It is not WebAssembly, or has what is not supported.
    #[error("it is no WebAssembly module that can run: {0}")]
    Malformed(String),
    /// It wants something from outside.
    #[error("it imports {0}; a module gets nothing from outside, so build one without imports")]
    Imports(String),
    /// It has code that would run before anything else.
    #[error("it has a start function; what is to run first belongs into `init`")]
    Starts,
    /// It changes what a copy of a flow could not have.
    #[error("it has the instruction `{0}`; tables and segments of a module may not change")]
    Changes(&'static str),
    /// It lacks an export.
    #[error("it does not export {0}")]
    Lacks(String),
    /// An export is something else.
    #[error("its export `{name}` is {found}; valid is {valid}")]
    Signature {
        /// The export.
        name: &'static str,
        /// What it is.
        found: String,
        /// What it should be.
        valid: &'static str,
    },
    /// It speaks another version of the interface.
    #[error("its `{ABI}` returns {0}; valid is {VERSION}")]
    Version(i32),
    /// Its buffer is not in its memory.
    #[error("its buffer of {BYTES} bytes at {at} is not inside its memory of {size} bytes")]
    Buffer {
        /// The address.
        at: u32,
        /// The size of its memory.
        size: usize,
    },
    /// It could not be tried.
    #[error("it cannot be started: {0}")]
    Untried(String),
}

/// A module that was read and tried. Copies share it.
#[derive(Clone)]
pub struct WasmModule(Arc<Loaded>);

struct Loaded {
    /// The file, as it was given.
    source: String,
    bytes: Vec<u8>,
    engine: Engine,
    module: wasmi::Module,
    /// The names by which its globals are exported.
    globals: Vec<String>,
    buffer: usize,
    traits: i32,
}

impl fmt::Debug for WasmModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WasmModule").field(&self.0.source).finish()
    }
}

/// Modules are equal if they have the same bytes under the same name.
impl PartialEq for WasmModule {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.source == other.0.source && self.0.bytes == other.0.bytes)
    }
}

impl WasmModule {
    /// Reads a module from a file, and tries it.
    ///
    /// # Errors
    /// The file cannot be read, or is no module that can decide.
    pub fn read(path: &Path) -> Result<Self, ModuleError> {
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(ModuleError::TooLarge);
        }
        Self::from_bytes(path.display().to_string(), bytes)
    }

    /// Returns the module that comes with this crate, `modules/newreno.wat`.
    pub fn shipped() -> Self {
        static LOADED: OnceLock<WasmModule> = OnceLock::new();
        let load = || {
            Self::from_bytes(SHIPPED.to_string(), include_bytes!("../modules/newreno.wasm").to_vec())
                .expect("a test loads the shipped module")
        };
        LOADED.get_or_init(load).clone()
    }

    /// Loads the module of the file `source`, which has these `bytes`, and tries it.
    ///
    /// # Errors
    /// It is no module that can decide.
    pub fn from_bytes(source: String, bytes: Vec<u8>) -> Result<Self, ModuleError> {
        let (runs, globals) = with_exported_globals(&bytes)?;
        let malformed = |error: wasmi::Error| ModuleError::Malformed(one_line(&error));
        let engine = Engine::new(&config());
        // wasmi 2.0.0 translates what stands after a function's end before it refuses it, and panics.
        wasmi::Module::validate(&engine, &runs).map_err(malformed)?;
        let module = wasmi::Module::new(&engine, &runs).map_err(malformed)?;
        check_exports(&module)?;
        let mut loaded = Loaded { source, bytes, engine, module, globals, buffer: 0, traits: 0 };
        let untried = |error: wasmi::Error| ModuleError::Untried(one_line(&error));
        let (mut store, instance) = loaded.instantiate().map_err(untried)?;
        let mut ask = |name: &'static str| -> Result<i32, wasmi::Error> {
            store.set_fuel(FUEL)?;
            let function: TypedFunc<(), i32> = instance.get_typed_func(&store, name)?;
            function.call(&mut store, ())
        };
        match ask(ABI).map_err(untried)? {
            VERSION => {}
            other => return Err(ModuleError::Version(other)),
        }
        let at = ask(BUFFER).map_err(untried)? as u32;
        if loaded.module.get_export(TRAITS).is_some() {
            loaded.traits = ask(TRAITS).map_err(untried)?;
        }
        let size = instance.get_memory(&store, MEMORY).map_or(0, |memory| memory.data_size(&store));
        if at as usize + BYTES > size {
            return Err(ModuleError::Buffer { at, size });
        }
        loaded.buffer = at as usize;
        Ok(WasmModule(Arc::new(loaded)))
    }

    /// Returns the file, as it was given.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Returns the sum of the [traits](TRAITS) that apply.
    pub fn traits(&self) -> i32 {
        self.0.traits
    }

    /// Returns the address of its buffer.
    pub(crate) fn buffer(&self) -> usize {
        self.0.buffer
    }

    /// Returns the names by which its globals are exported.
    pub(crate) fn globals(&self) -> &[String] {
        &self.0.globals
    }

    /// Returns an instance of its own for a flow.
    pub(crate) fn instantiate(&self) -> Result<(Store<StoreLimits>, Instance), String> {
        self.0.instantiate().map_err(|error| one_line(&error))
    }
}

impl Loaded {
    fn instantiate(&self) -> Result<(Store<StoreLimits>, Instance), wasmi::Error> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(MOST_MEMORY)
            .table_elements(MOST_ENTRIES)
            .instances(1)
            .memories(1)
            .build();
        let mut store = Store::new(&self.engine, limits);
        store.limiter(|limits| limits);
        store.set_fuel(FUEL_OF_INIT)?;
        let instance = Instance::new(&mut store, &self.module, &[])?;
        Ok((store, instance))
    }
}

/// How modules run: alike on every machine, and within limits.
fn config() -> Config {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        // Work that a first call would do for all instances must not be of that call's fuel.
        .compilation_mode(CompilationMode::Eager)
        .allow_start_fn(false)
        .ignore_custom_sections(true)
        .wasm_multi_memory(false);
    config
}

/// Refuses what a controller may not have, and returns the module with all its globals exported, and their
/// names.
fn with_exported_globals(bytes: &[u8]) -> Result<(Vec<u8>, Vec<String>), ModuleError> {
    let malformed = |error: wasmparser::BinaryReaderError| ModuleError::Malformed(one_line(&error));
    let mut imports = Vec::new();
    let mut globals = 0;
    let mut exports = None;
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.map_err(malformed)? {
            Payload::ImportSection(section) => {
                for import in section {
                    let import = import.map_err(malformed)?;
                    imports.push(format!("`{}.{}`", import.module, import.name));
                }
            }
            Payload::GlobalSection(section) => globals = section.count(),
            Payload::ExportSection(section) => exports = Some((section.range(), section.count())),
            Payload::StartSection { .. } => return Err(ModuleError::Starts),
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader().map_err(malformed)? {
                    if let Some(name) = changes(&operator.map_err(malformed)?) {
                        return Err(ModuleError::Changes(name));
                    }
                }
            }
            _ => {}
        }
    }
    if !imports.is_empty() {
        let more = imports.len().saturating_sub(4);
        imports.truncate(4);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return Err(ModuleError::Imports(format!("{}{more}", imports.join(", "))));
    }
    let Some((range, count)) = exports else {
        return Err(ModuleError::Lacks(format!("`{MEMORY}`, `{ABI}` and the others: it has no exports")));
    };
    let names: Vec<String> = (0..globals).map(|index| format!("{GLOBAL}{index}")).collect();
    // The section's contents: how many exports, and each with its name, its kind and its index. The range of
    // the contents begins with the count; the section's own length is the number before it.
    let mut section = Vec::new();
    push_number(&mut section, count + globals);
    section.extend(&bytes[range.start + length_of_number(&bytes[range.clone()])..range.end]);
    for (index, name) in names.iter().enumerate() {
        push_number(&mut section, name.len() as u32);
        section.extend(name.as_bytes());
        section.push(KIND_OF_GLOBAL);
        push_number(&mut section, index as u32);
    }
    let before = start_of_section(bytes, range.start)?;
    let mut made = bytes[..before].to_vec();
    made.push(EXPORT_SECTION);
    push_number(&mut made, section.len() as u32);
    made.extend(section);
    made.extend(&bytes[range.end..]);
    Ok((made, names))
}

/// The number of the section of exports (WebAssembly 2.0 section 5.5.2).
const EXPORT_SECTION: u8 = 7;
/// The kind of an export that is a global (WebAssembly 2.0 section 5.5.10).
const KIND_OF_GLOBAL: u8 = 3;

/// Returns where the section begins whose contents begin at `contents`: before its number and its length.
fn start_of_section(bytes: &[u8], contents: usize) -> Result<usize, ModuleError> {
    // The length has one to five bytes; all but its last have the highest bit.
    let mut at = contents - 1;
    while at > 0 && bytes[at - 1] & 0x80 != 0 {
        at -= 1;
    }
    match at.checked_sub(1) {
        Some(start) if bytes[start] == EXPORT_SECTION => Ok(start),
        _ => Err(ModuleError::Malformed("its section of exports is broken".to_string())),
    }
}

/// Appends a number in unsigned LEB128 (WebAssembly 2.0 section 5.2.2).
fn push_number(bytes: &mut Vec<u8>, mut number: u32) {
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

/// Returns how many bytes the number has at the beginning of `bytes`.
fn length_of_number(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1
}

/// The name of an instruction after which a table or a segment is not what it was.
fn changes(operator: &Operator<'_>) -> Option<&'static str> {
    Some(match operator {
        Operator::TableSet { .. } => "table.set",
        Operator::TableGrow { .. } => "table.grow",
        Operator::TableFill { .. } => "table.fill",
        Operator::TableCopy { .. } => "table.copy",
        Operator::TableInit { .. } => "table.init",
        Operator::ElemDrop { .. } => "elem.drop",
        Operator::DataDrop { .. } => "data.drop",
        _ => return None,
    })
}

/// Refuses a module without the exports that it needs, or with others under their names.
fn check_exports(module: &wasmi::Module) -> Result<(), ModuleError> {
    let found = |name: &'static str, found: &ExternType, valid| ModuleError::Signature {
        name,
        found: shown(found),
        valid,
    };
    match module.get_export(MEMORY) {
        Some(ExternType::Memory(_)) => {}
        Some(other) => return Err(found(MEMORY, &other, "a memory")),
        None => return Err(ModuleError::Lacks(format!("its memory as `{MEMORY}`"))),
    }
    let calls = ModuleEvent::ALL.map(|event| (event.export(), event.is_required(), 0));
    for (name, required, results) in
        [(ABI, true, 1), (BUFFER, true, 1), (TRAITS, false, 1)].into_iter().chain(calls)
    {
        let valid = if results == 0 { "a function () -> ()" } else { "a function () -> (i32)" };
        match module.get_export(name) {
            Some(ExternType::Func(function))
                if function.params().is_empty()
                    && function.results().len() == results
                    && function.results().iter().all(|result| *result == wasmi::ValType::I32) => {}
            Some(other) => return Err(found(name, &other, valid)),
            None if required => return Err(ModuleError::Lacks(format!("`{name}`, {valid}"))),
            None => {}
        }
    }
    Ok(())
}

/// What an export is, for people.
fn shown(found: &ExternType) -> String {
    let list = |types: &[wasmi::ValType]| {
        types.iter().map(|one| format!("{one:?}").to_lowercase()).collect::<Vec<_>>().join(", ")
    };
    match found {
        ExternType::Func(function) => {
            format!("a function ({}) -> ({})", list(function.params()), list(function.results()))
        }
        ExternType::Memory(_) => "a memory".to_string(),
        ExternType::Table(_) => "a table".to_string(),
        ExternType::Global(_) => "a global".to_string(),
    }
}

/// An error of the interpreter or of its parser, in one line.
pub(crate) fn one_line(error: &impl fmt::Display) -> String {
    error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Value for WasmModule {
    fn unit() -> String {
        "a file in WebAssembly".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text == SHIPPED {
            return Ok(WasmModule::shipped());
        }
        WasmModule::read(Path::new(text)).map_err(|error| format!("a module that can decide: {error}"))
    }

    fn show(&self) -> String {
        self.0.source.clone()
    }
}
