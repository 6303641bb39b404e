//! Simulation of a circuit as a separate program.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Bench of `hardware/laps/bench` with values for its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Circuit<'a> {
    /// Name of the bench: `chooser` for `chooser_bench.sv`.
    pub bench: &'a str,
    /// Parameters that differ from the defaults in the file.
    pub parameters: &'a [(&'a str, u32)],
    /// Numbers of words in the input and in the output vector.
    pub words: (usize, usize),
}

/// Reason why a circuit cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Verilator is not installed.
    #[error("there is no Verilator (Debian: apt install verilator)")]
    NoVerilator,
    /// Verilator or the compiler reported an error.
    #[error("{bench} cannot be built:\n{output}")]
    Build {
        /// Name of the bench.
        bench: String,
        /// Output of the failed program.
        output: String,
    },
    /// The operating system reported an error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Running simulation. It ends on drop.
#[derive(Debug)]
pub struct Model {
    program: Child,
    stimuli: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
    words: (usize, usize),
}

/// Number of clocks sent to the program at a time. It answers after it has received all of them.
const BATCH: usize = 4_096;

impl Model {
    /// Starts a simulation of the circuit in an arbitrary state. Builds the program if the sources have changed since
    /// the last build.
    pub fn build(circuit: &Circuit<'_>) -> Result<Self, Error> {
        let mut program =
            Command::new(build_program(circuit)?).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stimuli = program.stdin.take();
        let responses = BufReader::new(program.stdout.take().expect("it is piped"));
        Ok(Model { program, stimuli, responses, words: circuit.words })
    }

    /// Clocks the circuit once for each stimulus and returns the output words of each clock. These are the outputs
    /// before the clock's edge. Panics if the program fails, which is a mistake in the bench.
    pub fn run(&mut self, stimuli: &[Vec<u32>]) -> Vec<Vec<u32>> {
        stimuli.chunks(BATCH).flat_map(|batch| self.batch(batch)).collect()
    }

    fn batch(&mut self, batch: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let (goes_in, comes_out) = self.words;
        let count = u32::try_from(batch.len()).expect("a batch");
        let mut bytes = Vec::with_capacity(4 + batch.len() * goes_in * 4);
        bytes.extend(count.to_ne_bytes());
        for stimulus in batch {
            assert_eq!(stimulus.len(), goes_in, "words of a stimulus");
            bytes.extend(stimulus.iter().flat_map(|word| word.to_ne_bytes()));
        }
        let pipe = self.stimuli.as_mut().expect("it is open until the end");
        pipe.write_all(&bytes).and_then(|()| pipe.flush()).expect("the model reads");
        let mut answer = vec![0; batch.len() * comes_out * 4];
        self.responses
            .read_exact(&mut answer)
            .expect("the model answers; its vectors have the words of Circuit");
        let word = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
        answer.chunks_exact(comes_out * 4).map(|clock| clock.chunks_exact(4).map(word).collect()).collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // The program ends at the end of its input.
        self.stimuli = None;
        let _ = self.program.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the program of a circuit, and builds it if necessary. Among tests that run in parallel, one builds and the
/// others wait.
fn build_program(circuit: &Circuit<'_>) -> Result<PathBuf, Error> {
    let sources = root().join("hardware/laps");
    let values: String = circuit.parameters.iter().map(|(name, value)| format!("-{name}-{value}")).collect();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let folder = target.join("hardware").join(format!("{}{values}", circuit.bench));
    fs::create_dir_all(&folder)?;
    let program = folder.join("Vmodel");
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    let bench = sources.join(format!("bench/{}_bench.sv", circuit.bench));
    let modules = bench_modules(&sources, &bench)?;
    let driver = sources.join("bench/main.cpp");
    let table = sources.join("exp2.hex").canonicalize()?;
    if is_newer(&program, modules.iter().chain([&bench, &driver, &table]))? {
        return Ok(program);
    }
    let top = format!("laps_{}_bench", circuit.bench);
    let mut command = Command::new("verilator");
    command.args([
        "--cc",
        "--exe",
        "--build",
        "-j",
        "1",
        "-Wno-WIDTH",
        "-Wno-CMPCONST",
        "--x-initial",
        "unique",
    ]);
    command.args(["--prefix", "Vmodel", "-CFLAGS", "-O1", "--top-module", &top, "--Mdir"]).arg(&folder);
    command.args(circuit.parameters.iter().map(|(name, value)| format!("-G{name}={value}")));
    if fs::read_to_string(&bench)?.contains("parameter TABLE") {
        command.arg(format!("-GTABLE=\"{}\"", table.display()));
    }
    command.args(modules).arg(bench).arg(driver);
    let runtime = target.join("hardware/runtime");
    copy_runtime(&runtime, &folder)?;
    let done = match command.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Error::NoVerilator),
        done => done?,
    };
    if done.status.success() {
        copy_runtime(&folder, &runtime)?;
        return Ok(program);
    }
    let told = String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
    Err(Error::Build { bench: circuit.bench.to_owned(), output: told })
}

/// Copies the object files of Verilator's runtime library. They are the same for all circuits, and take longer to
/// compile than many circuits. Time stamps are kept, so that another version of the library is compiled again.
fn copy_runtime(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for name in ["verilated.o", "verilated_threads.o"] {
        let Ok(modified) = fs::metadata(from.join(name)).and_then(|data| data.modified()) else { continue };
        // Another test may copy at the same time, so the file is replaced atomically.
        let part = to.join(format!("{name}-{}", from.file_name().unwrap_or_default().display()));
        fs::copy(from.join(name), &part)?;
        File::options().write(true).open(&part)?.set_modified(modified)?;
        fs::rename(&part, to.join(name))?;
    }
    Ok(())
}

/// Returns the files of all modules that a bench uses, directly or indirectly.
fn bench_modules(sources: &Path, bench: &Path) -> io::Result<Vec<PathBuf>> {
    let mut modules = Vec::new();
    for entry in fs::read_dir(sources)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "sv") {
            let text = fs::read_to_string(&path)?;
            modules.push((path, text));
        }
    }
    modules.sort();
    let defines = |text: &str, name: &str| {
        text.lines().any(|line| line.strip_prefix("module ").is_some_and(|rest| rest.starts_with(name)))
    };
    let mut found: Vec<usize> = Vec::new();
    let mut ahead = vec![fs::read_to_string(bench)?];
    while let Some(text) = ahead.pop() {
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        let words = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
        for name in words.filter(|word| word.starts_with("laps_")) {
            for (i, (_, text)) in modules.iter().enumerate() {
                if !found.contains(&i) && defines(text, &format!("{name} ")) {
                    found.push(i);
                    ahead.push(text.clone());
                }
            }
        }
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|i| modules[i].0.clone()).collect())
}

/// Returns true if the program exists and is newer than all sources.
fn is_newer<'a>(program: &Path, sources: impl Iterator<Item = &'a PathBuf>) -> io::Result<bool> {
    let Ok(built) = fs::metadata(program).and_then(|data| data.modified()) else { return Ok(false) };
    for source in sources {
        if fs::metadata(source)?.modified()? >= built {
            return Ok(false);
        }
    }
    Ok(true)
}
