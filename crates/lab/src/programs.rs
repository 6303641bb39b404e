//! Programs at the ports of a lab.
//!
//! Every switch clears the sender's hash of arriving packets. Leaving packets are dropped at random at every port
//! whose link has an error rate, and marked at every switch port. If the kernel lets this process load no programs,
//! the lab works without them.

use std::io;
use std::os::fd::AsFd;

use pathweave_linux::bpf::{Program, ProgramKind};
use pathweave_linux::netlink::Netlink;

use crate::error::{LabError, WithContext};
use crate::label::LinkEnd;
use crate::os::device::index_of_port;
use crate::os::filter::{self, Direction};
use crate::os::program::{self, LossAndMarking, Queues, Red};
use crate::plan::{NodePlan, NodeRole, Plan, PortPlan};

/// Programs and maps that all ports of a lab share.
#[derive(Debug)]
pub(crate) struct Programs {
    rehash: Program,
    /// Queue state and counters of all ends of links, if marking is enabled.
    queues: Option<Queues>,
}

impl Programs {
    /// Loads the shared programs. Returns an error with the kernel's reason, which does not make the lab fail.
    pub(crate) fn load(plan: &Plan) -> io::Result<Programs> {
        let queues = match plan.settings().marking {
            None => None,
            // At most MAX_LAB_LINKS.
            Some(_) => Some(Queues::new(2 * plan.topology().links().len() as u32)?),
        };
        Ok(Programs {
            rehash: Program::load(ProgramKind::Classifier, &program::clear_hash_program())?,
            queues,
        })
    }

    /// Attaches the programs that a port needs.
    pub(crate) fn attach(
        &self,
        netlink: &mut Netlink,
        plan: &Plan,
        node: &NodePlan,
        number: u16,
    ) -> Result<(), LabError> {
        let port = &node.ports[usize::from(number)];
        let loss = plan.topology().link(port.link).error_rate;
        let doing = || format!("attach programs to port {} of {}", port.device, node.name);
        if let NodeRole::Switch { .. } = node.role {
            let index = index_of_port(number);
            filter::add_clsact(netlink, index).context(doing)?;
            filter::attach(netlink, index, Direction::Ingress, self.rehash.as_fd()).context(doing)?;
        }
        if loss > 0.0 || red(plan, node, port).is_some() {
            self.set_loss(netlink, plan, node, number, loss)
        } else {
            Ok(())
        }
    }

    /// Sets the probability with which packets that leave through a port are lost, in addition to the port's marking.
    pub(crate) fn set_loss(
        &self,
        netlink: &mut Netlink,
        plan: &Plan,
        node: &NodePlan,
        number: u16,
        loss: f64,
    ) -> Result<(), LabError> {
        let port = &node.ports[usize::from(number)];
        let doing = || format!("attach programs to port {} of {}", port.device, node.name);
        let treatment = LossAndMarking { loss, red: red(plan, node, port) };
        let index = index_of_port(number);
        let code = program::loss_and_marking_program(&treatment, self.queues.as_ref());
        let program = Program::load(ProgramKind::Classifier, &code).context(doing)?;
        filter::add_clsact(netlink, index).context(doing)?;
        filter::attach(netlink, index, Direction::Egress, program.as_fd()).context(doing)
    }

    /// Returns the number of packets marked at a port so far.
    pub(crate) fn marked(&self, port: &PortPlan) -> Result<u64, LabError> {
        let Some(queues) = &self.queues else { return Ok(0) };
        queues.marked(entry(port)).context(|| format!("read the marks of port {}", port.device))
    }
}

fn entry(port: &PortPlan) -> u32 {
    2 * port.link.0 + u32::from(port.end == LinkEnd::B)
}

/// Returns the marking of a switch's port, if the lab has marking.
fn red(plan: &Plan, node: &NodePlan, port: &PortPlan) -> Option<Red> {
    let NodeRole::Switch { .. } = node.role else { return None };
    let marking = plan.settings().marking.as_ref()?;
    let (kmin_bytes, kmax_bytes) = marking.thresholds_at(plan.topology().link(port.link).rate);
    Some(Red {
        rate: port.rate,
        kmin_bytes,
        kmax_bytes,
        room_bytes: plan.settings().queue_bytes,
        pmax_ppm: marking.pmax_ppm,
        entry: entry(port),
    })
}
