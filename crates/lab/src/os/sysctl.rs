//! Settings of a network namespace under `/proc/sys/net`.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::{Doing, LabError};
use crate::plan::Role;

/// What a missing setting of the kernel takes away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HashSeeds {
    /// Every switch has its own.
    #[default]
    Own,
    /// Before Linux 6.11 all switches share one.
    Shared,
}

/// Sets up the calling thread's namespace for a node.
pub(crate) fn set_up(role: Role) -> Result<HashSeeds, LabError> {
    // Only what we send shall be on the links: no router solicitations, no multicast reports.
    set_if_there("ipv6/conf/all/disable_ipv6", "1")?;
    set_if_there("ipv6/conf/default/disable_ipv6", "1")?;
    // A packet may come back another way than it went.
    set("ipv4/conf/all/rp_filter", "0")?;
    set("ipv4/conf/default/rp_filter", "0")?;
    // Paths are chosen by addresses and ports.
    set("ipv4/fib_multipath_hash_policy", "1")?;
    let Role::Switch { hash_seed } = role else { return Ok(HashSeeds::Own) };
    set("ipv4/ip_forward", "1")?;
    set_if_there("ipv4/fib_multipath_hash_seed", &hash_seed.to_string())
        .map(|there| if there { HashSeeds::Own } else { HashSeeds::Shared })
}

fn set(name: &str, value: &str) -> Result<(), LabError> {
    let path = Path::new("/proc/sys/net").join(name);
    fs::write(&path, value).doing(|| format!("set {} to {value}", path.display()))
}

/// Whether the kernel has it.
fn set_if_there(name: &str, value: &str) -> Result<bool, LabError> {
    match set(name, value) {
        Err(LabError::System { why, .. }) if why.error.kind() == io::ErrorKind::NotFound => Ok(false),
        done => done.map(|()| true),
    }
}
