//! A circuit as a program: built once, then fed.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A bench of `hardware/laps/bench` with values for its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Circuit<'a> {
    /// The name of the bench: `chooser` for `chooser_bench.sv`.
    pub bench: &'a str,
    /// Parameters that are not as in the file.
    pub parameters: &'a [(&'a str, u32)],
    /// Words of its two vectors: what goes in, what comes out.
    pub words: (usize, usize),
}

/// Why a circuit cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Verilator is missing.
    #[error("there is no Verilator (Debian: apt install verilator)")]
    NoVerilator,
    /// Verilator, or the compiler after it, found a mistake.
    #[error("{bench} cannot be built:\n{told}")]
    Build {
        /// The bench.
        bench: String,
        /// What they said.
        told: String,
    },
    /// The operating system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A running simulation. It ends when this is dropped.
#[derive(Debug)]
pub struct Model {
    program: Child,
    stimuli: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
    words: (usize, usize),
}

/// Clocks that go to the program at once: what it answers waits there until it has them all.
const BATCH: usize = 4_096;

impl Model {
    /// Starts a simulation of the circuit, in an arbitrary state. Builds the program unless that has been done since the sources
    /// changed.
    pub fn build(circuit: &Circuit<'_>) -> Result<Self, Error> {
        let mut program =
            Command::new(built(circuit)?).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stimuli = program.stdin.take();
        let responses = BufReader::new(program.stdout.take().expect("it is piped"));
        Ok(Model { program, stimuli, responses, words: circuit.words })
    }

    /// Clocks the circuit once for each stimulus; gives the words that come out, as many for each clock as the circuit has. A
    /// response is what the outputs were before the clock's edge. Panics if the program fails: that is a mistake in the bench.
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
        // The program ends with its input.
        self.stimuli = None;
        let _ = self.program.wait();
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program of a circuit. Tests run side by side: one builds, the others wait.
fn built(circuit: &Circuit<'_>) -> Result<PathBuf, Error> {
    let sources = root().join("hardware/laps");
    let values: String = circuit.parameters.iter().map(|(name, value)| format!("-{name}-{value}")).collect();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let folder = target.join("hardware").join(format!("{}{values}", circuit.bench));
    fs::create_dir_all(&folder)?;
    let program = folder.join("Vmodel");
    let lock = File::create(folder.join("lock"))?;
    lock.lock()?;
    if is_newer(&program, &sources)? {
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
    let table = sources.join("exp2.hex").canonicalize()?;
    if fs::read_to_string(sources.join(format!("bench/{}_bench.sv", circuit.bench)))?
        .contains("parameter TABLE")
    {
        command.arg(format!("-GTABLE=\"{}\"", table.display()));
    }
    let mut modules: Vec<PathBuf> =
        files(&sources)?.into_iter().filter(|file| file.extension().is_some_and(|e| e == "sv")).collect();
    modules.sort();
    command.args(modules).arg(sources.join(format!("bench/{}_bench.sv", circuit.bench)));
    command.arg(sources.join("bench/main.cpp"));
    let done = match command.output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Error::NoVerilator),
        done => done?,
    };
    if done.status.success() {
        return Ok(program);
    }
    let told = String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
    Err(Error::Build { bench: circuit.bench.to_owned(), told })
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file()).collect())
}

/// Whether the program is there and no source has changed since.
fn is_newer(program: &Path, sources: &Path) -> io::Result<bool> {
    let Ok(built) = fs::metadata(program).and_then(|data| data.modified()) else { return Ok(false) };
    for file in files(sources)?.into_iter().chain(files(&sources.join("bench"))?) {
        if fs::metadata(file)?.modified()? >= built {
            return Ok(false);
        }
    }
    Ok(true)
}
