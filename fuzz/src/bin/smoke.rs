//! Bounded run of every fuzz target on a stable compiler: each seed, then seeded random mutations of the seeds.
//!
//! `smoke [--iterations N] [--seed S] [TARGET]` prints the seed. A failing input is stored in `artifacts/TARGET` and
//! reported.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use pathweave_fuzz::{TARGETS, Target, mutate};
use pathweave_units::Rng;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

struct Options {
    iterations: u64,
    seed: u64,
    target: Option<String>,
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("smoke: {message}");
            return ExitCode::from(2);
        }
    };
    let chosen = |name: &str| options.target.as_deref().is_none_or(|target| target == name);
    println!("fuzz smoke: seed {}, {} iterations a target", options.seed, options.iterations);
    let mut failed = false;
    for target in TARGETS.iter().filter(|(name, _)| chosen(name)) {
        let started = Instant::now();
        match run(target, &options) {
            Ok(seeds) => {
                println!("  {:<16} {seeds} seeds, {:.1} s", target.0, started.elapsed().as_secs_f64());
            }
            Err(message) => {
                eprintln!("  {:<16} FAILED: {message}", target.0);
                failed = true;
            }
        }
    }
    ExitCode::from(u8::from(failed))
}

fn options() -> Result<Options, String> {
    let mut options = Options { iterations: 20_000, seed: 1, target: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().unwrap_or_default();
            value.parse().map_err(|_| format!("{argument} {value}: expected a whole number"))
        };
        match argument.as_str() {
            "--iterations" => options.iterations = number()?,
            "--seed" => options.seed = number()?,
            name if TARGETS.iter().any(|(target, _)| *target == name) => options.target = Some(argument),
            _ => {
                let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "{argument}: expected --iterations, --seed or one of {}",
                    names.join(", ")
                ));
            }
        }
    }
    Ok(options)
}

fn run(&(name, body): &Target, options: &Options) -> Result<usize, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = read_seeds(&folder.join("seeds").join(name))?;
    let mut rng = Rng::for_component(options.seed, name, 0);
    for (index, seed) in seeds.iter().enumerate() {
        attempt(body, seed).map_err(|()| format!("seed {index} panicked"))?;
    }
    for iteration in 0..options.iterations {
        let pick = |rng: &mut Rng| &seeds[rng.below(seeds.len() as u32) as usize];
        let (seed, other) = (pick(&mut rng), pick(&mut rng));
        let input = mutate(seed, other, &mut rng);
        if attempt(body, &input).is_err() {
            let kept = store_input(&folder.join("artifacts").join(name), iteration, &input);
            return Err(format!(
                "iteration {iteration} of seed {} panicked; input kept in {kept}",
                options.seed
            ));
        }
    }
    Ok(seeds.len())
}

fn attempt(body: fn(&[u8]), input: &[u8]) -> Result<(), ()> {
    std::panic::catch_unwind(|| body(input)).map_err(|_| ())
}

fn read_seeds(folder: &Path) -> Result<Vec<Vec<u8>>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(fail)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<Result<_, _>>()
        .map_err(fail)?;
    // Sorted, so that a seed number has the same meaning on every machine.
    paths.sort();
    if paths.is_empty() {
        return Err(format!("{}: no seeds", folder.display()));
    }
    paths.iter().map(std::fs::read).collect::<Result<_, _>>().map_err(fail)
}

fn store_input(folder: &Path, iteration: u64, input: &[u8]) -> String {
    let path = folder.join(format!("panic-{iteration}"));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, input));
    match written {
        Ok(()) => path.display().to_string(),
        Err(error) => format!("nowhere ({error})"),
    }
}
