//! Settings of a network namespace under `/proc/sys/net`.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::{LabError, WithContext};
use crate::plan::NodeRole;

/// Availability of separate hash seeds for switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HashSeeds {
    /// Every switch has its own seed.
    #[default]
    Own,
    /// Before Linux 6.11 all switches share one seed.
    Shared,
}

/// Configures the calling thread's namespace for a node.
pub(crate) fn set_up(role: NodeRole) -> Result<HashSeeds, LabError> {
    // Only packets of the workload may be on the links: no router solicitations, no multicast reports.
    set_if_there("ipv6/conf/all/disable_ipv6", "1")?;
    set_if_there("ipv6/conf/default/disable_ipv6", "1")?;
    // Packets may return over another route.
    set("ipv4/conf/all/rp_filter", "0")?;
    set("ipv4/conf/default/rp_filter", "0")?;
    // Routes are chosen by addresses and ports.
    set("ipv4/fib_multipath_hash_policy", "1")?;
    let NodeRole::Switch { hash_seed } = role else { return Ok(HashSeeds::Own) };
    set("ipv4/ip_forward", "1")?;
    set_if_there("ipv4/fib_multipath_hash_seed", &hash_seed.to_string())
        .map(|there| if there { HashSeeds::Own } else { HashSeeds::Shared })
}

fn set(name: &str, value: &str) -> Result<(), LabError> {
    let path = Path::new("/proc/sys/net").join(name);
    fs::write(&path, value).context(|| format!("set {} to {value}", path.display()))
}

/// Sets the value. Returns false if the kernel does not have the setting.
fn set_if_there(name: &str, value: &str) -> Result<bool, LabError> {
    match set(name, value) {
        Err(LabError::System { why, .. }) if why.error.kind() == io::ErrorKind::NotFound => Ok(false),
        done => done.map(|()| true),
    }
}
