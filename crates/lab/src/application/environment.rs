//! Environment variables of an application: hosts and agent for launchers, and settings of the libfabric provider.

use std::ffi::OsString;
use std::path::PathBuf;

use pathweave_units::Rate;

use crate::privilege::LabNamespaces;

/// Device that has the address of a host.
pub(crate) const DEVICE: &str = "p0";

/// Smallest line rate that the provider accepts.
const LEAST_LINE_RATE: Rate = Rate::from_mbps(1);

/// Values of the variables.
#[derive(Debug)]
pub(super) struct Environment {
    pub(super) agent: PathBuf,
    pub(super) open_mpi_hosts: PathBuf,
    pub(super) hydra_hosts: PathBuf,
    /// Folder for the files that Open MPI's processes on a host share.
    pub(super) sessions: PathBuf,
    pub(super) key: PathBuf,
    pub(super) line_rate: Rate,
    pub(super) provider: Option<PathBuf>,
    pub(super) workplace: LabNamespaces,
}

impl Environment {
    /// Returns all variables except those that are already set: settings of the user take precedence.
    pub(super) fn variables(&self, is_set: &dyn Fn(&str) -> bool) -> Vec<(&'static str, OsString)> {
        let mut all = self.of_launchers();
        all.extend(self.of_provider(is_set));
        all.retain(|(name, _)| !is_set(name));
        all
    }

    fn of_launchers(&self) -> Vec<(&'static str, OsString)> {
        let agent = || self.agent.clone().into_os_string();
        let open_mpi = || self.open_mpi_hosts.clone().into_os_string();
        let hydra = || self.hydra_hosts.clone().into_os_string();
        // Open MPI names these folders by host name, which other labs use, too.
        let sessions = || self.sessions.clone().into_os_string();
        let text = OsString::from;
        let mut all = vec![
            // Open MPI 4 (ORTE). All hosts of a lab share the cores, so no rank is bound to one, and no rank spins
            // while another waits.
            ("OMPI_MCA_plm_rsh_agent", agent()),
            ("OMPI_MCA_orte_default_hostfile", open_mpi()),
            ("OMPI_MCA_orte_tmpdir_base", sessions()),
            ("OMPI_MCA_hwloc_base_binding_policy", text("none")),
            ("OMPI_MCA_rmaps_base_oversubscribe", text("1")),
            ("OMPI_MCA_mpi_yield_when_idle", text("1")),
            // Open MPI 5 (PRRTE).
            ("PRTE_MCA_plm_ssh_agent", agent()),
            ("PRTE_MCA_prte_default_hostfile", open_mpi()),
            ("PRTE_MCA_prte_tmpdir_base", sessions()),
            ("PRTE_MCA_hwloc_default_binding_policy", text("none")),
            ("PRTE_MCA_rmaps_default_mapping_policy", text("slot:oversubscribe")),
            // MPICH (Hydra).
            ("HYDRA_LAUNCHER", text("ssh")),
            ("HYDRA_LAUNCHER_EXEC", agent()),
            ("HYDRA_HOST_FILE", hydra()),
            // Intel MPI.
            ("I_MPI_HYDRA_BOOTSTRAP", text("ssh")),
            ("I_MPI_HYDRA_BOOTSTRAP_EXEC", agent()),
            ("I_MPI_HYDRA_HOST_FILE", hydra()),
            ("I_MPI_PERHOST", text("1")),
            ("I_MPI_PIN", text("0")),
            // Waiting ranks sleep.
            ("I_MPI_THREAD_YIELD", text("3")),
        ];
        if matches!(self.workplace, LabNamespaces::User { .. }) {
            // Root in a user namespace has no privileges outside of it.
            let allowed = [
                "OMPI_ALLOW_RUN_AS_ROOT",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                "PRTE_ALLOW_RUN_AS_ROOT",
                "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM",
            ];
            all.extend(allowed.map(|name| (name, text("1"))));
        }
        all
    }

    fn of_provider(&self, is_set: &dyn Fn(&str) -> bool) -> Vec<(&'static str, OsString)> {
        let mut all = vec![
            ("PATHWEAVE_KEY_FILE", self.key.clone().into_os_string()),
            ("PATHWEAVE_LINE_RATE", self.line_rate.max(LEAST_LINE_RATE).to_string().into()),
        ];
        // The provider refuses both variables at once.
        if !is_set("PATHWEAVE_ADDRESS") {
            all.push(("PATHWEAVE_IFACE", DEVICE.into()));
        }
        if let Some(folder) = &self.provider {
            all.push(("FI_PROVIDER", "pathweave".into()));
            all.push(("FI_PROVIDER_PATH", folder.clone().into_os_string()));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn variables(
        workplace: LabNamespaces,
        provider: Option<&str>,
        set: &[&str],
    ) -> BTreeMap<&'static str, String> {
        let environment = Environment {
            agent: "/t/agent".into(),
            open_mpi_hosts: "/t/o".into(),
            hydra_hosts: "/t/h".into(),
            sessions: "/t".into(),
            key: "/t/key".into(),
            line_rate: Rate::from_mbps(100),
            provider: provider.map(PathBuf::from),
            workplace,
        };
        let all = environment.variables(&|name| set.contains(&name));
        let count = all.len();
        let all: BTreeMap<_, _> =
            all.into_iter().map(|(name, value)| (name, value.into_string().unwrap())).collect();
        assert_eq!(all.len(), count, "each once");
        all
    }

    #[test]
    fn launchers_find_agent_and_hosts() {
        let all = variables(LabNamespaces::Machine, None, &[]);
        for name in [
            "OMPI_MCA_plm_rsh_agent",
            "PRTE_MCA_plm_ssh_agent",
            "HYDRA_LAUNCHER_EXEC",
            "I_MPI_HYDRA_BOOTSTRAP_EXEC",
        ] {
            assert_eq!(all[name], "/t/agent");
        }
        assert_eq!(
            (&all["OMPI_MCA_orte_default_hostfile"][..], &all["HYDRA_HOST_FILE"][..]),
            ("/t/o", "/t/h")
        );
        for name in ["OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base"] {
            assert_eq!(all[name], "/t");
        }
        let provider =
            ["PATHWEAVE_IFACE", "PATHWEAVE_LINE_RATE", "PATHWEAVE_KEY_FILE"].map(|name| &all[name][..]);
        assert_eq!(provider, ["p0", "100Mbps", "/t/key"]);
        assert!(!all.keys().any(|name| name.starts_with("FI_") || name.contains("ALLOW_RUN_AS_ROOT")));
    }

    #[test]
    fn variables_set_by_the_user_stay() {
        let set = ["HYDRA_HOST_FILE", "PATHWEAVE_ADDRESS", "PATHWEAVE_KEY_FILE", "FI_PROVIDER"];
        let all = variables(LabNamespaces::Machine, Some("/lib"), &set);
        for name in ["HYDRA_HOST_FILE", "PATHWEAVE_IFACE", "PATHWEAVE_KEY_FILE", "FI_PROVIDER"] {
            assert!(!all.contains_key(name), "{name}");
        }
        assert_eq!(all["FI_PROVIDER_PATH"], "/lib");
    }

    #[test]
    fn root_of_a_user_namespace_may_start_what_root_may_not() {
        let all = variables(LabNamespaces::User { namespace_holder: 1 }, None, &[]);
        assert_eq!(all["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"], "1");
    }
}
