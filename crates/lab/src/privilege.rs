//! May this process make networks?

use std::fs;

/// CAP_NET_ADMIN and CAP_SYS_ADMIN, as bits of the effective set (capabilities(7)).
const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// What this process lacks to make a lab right here, as a sentence; nothing if it lacks nothing.
pub fn missing_privileges() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    lacking(&status).map(|names| format!("making networks needs {names}, which root has"))
}

/// The capabilities that a process with this `/proc/.../status` lacks.
fn lacking(status: &str) -> Option<String> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).unwrap_or_default();
    let names = NEEDED.iter().filter(|(bit, _)| effective >> bit & 1 == 0).map(|(_, name)| *name);
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| names.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_bits_of_the_effective_set() {
        assert_eq!(lacking("Name:\tx\nCapEff:\t000001ffffffffff\n"), None);
        assert_eq!(
            lacking("CapPrm:\t000001ffffffffff\nCapEff:\t0000000000001000\n").unwrap(),
            "CAP_SYS_ADMIN"
        );
        for nothing in ["CapEff:\t0000000000000000\n", "", "CapEff:\tzz\n"] {
            assert_eq!(lacking(nothing).unwrap(), "CAP_NET_ADMIN and CAP_SYS_ADMIN");
        }
    }
}
