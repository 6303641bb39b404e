//! `pathweave key`: makes the key file of a cluster, or checks one.

use std::path::PathBuf;

use clap::Args;
use pathweave_datapath::secure::{ClusterKey, OsRandom};

use crate::commands::quoted;
use crate::failure::{Failure, Outcome};
use crate::terminal;

#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    /// Key file. A new one is made, which only its owner can read; an existing file stays as it is
    #[arg(value_name = "FILE", default_value = "cluster.key")]
    pub(crate) file: PathBuf,
    /// Check an existing key file and print its fingerprint, which is the same on every host of a cluster
    #[arg(long)]
    pub(crate) check: bool,
}

pub(crate) fn key(args: &KeyArgs) -> Result<Outcome, Failure> {
    let input = |why: &dyn std::fmt::Display| Failure::Input(why.to_string());
    let file = quoted(&args.file);
    if args.check {
        let key = ClusterKey::read(&args.file).map_err(|why| input(&why))?;
        terminal::out(&format!("{file}: fingerprint {}\n", key.fingerprint()));
        return Ok(Outcome::Done);
    }
    if args.file.symlink_metadata().is_ok() {
        let what = format!(
            "{}: the file exists; name a new one, or `pathweave key {file} --check` to see its fingerprint",
            args.file.display()
        );
        return Err(Failure::Input(what));
    }
    let key = ClusterKey::generate(&mut OsRandom).map_err(|why| input(&why))?;
    key.create_file(&args.file).map_err(|why| input(&why))?;
    terminal::out(&format!(
        "{file}: a new key with fingerprint {}; copy the file to each host of the cluster\n",
        key.fingerprint()
    ));
    Ok(Outcome::Done)
}
