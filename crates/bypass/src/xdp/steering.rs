//! Steering of an interface's packets: those for our ports go to this process, all others to the kernel as usual.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};

use pathweave_linux::bpf::{
    Assembler, Condition, Instruction, Jump, Link, Map, MapKind, Program, ProgramKind, Size, XdpMode,
};

use crate::xdp::stamp;

/// Action that passes a packet to the kernel's network stack (`enum xdp_action`).
const PASS: i32 = 2;
/// Numbers of helper functions of the kernel (`enum bpf_func_id`).
const LOOKUP: i32 = 1;
const CLOCK_NS: i32 = 5;
const REDIRECT: i32 = 51;
const MAKE_ROOM_IN_FRONT: i32 = 54;
/// Largest number of ports of a device: the one on which peers reach it, and one per path.
const MOST_PORTS: u32 = 512;

/// Offsets of fields in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const DATA_META: i16 = 8;
const QUEUE: i16 = 16;

/// Loaded program that steers packets, with its maps.
#[derive(Debug)]
pub(crate) struct Steering {
    ports: Map,
    sockets: Map,
    program: Program,
}

impl Steering {
    /// Loads the program for packets to `local`, on an interface with this number of queues.
    pub(crate) fn load(local: SocketAddr, queues: u32) -> io::Result<Steering> {
        let ports = Map::new(MapKind::Hash, 4, 4, MOST_PORTS)?;
        let sockets = Map::new(MapKind::Sockets, 4, 4, queues)?;
        let program = Program::load(ProgramKind::Xdp, &code(local, &ports, &sockets))?;
        Ok(Steering { ports, sockets, program })
    }

    /// Sets the socket that receives the packets of a queue.
    pub(crate) fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        self.sockets.write(&queue.to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes())
    }

    /// Receives packets to this port as well.
    pub(crate) fn add_port(&self, port: u16) -> io::Result<()> {
        self.ports.write(&u32::from(port.to_be()).to_ne_bytes(), &1u32.to_ne_bytes())
    }

    /// Attaches the program to the interface, in its driver if that supports it.
    pub(crate) fn attach(&self, interface: u32) -> io::Result<(Link, XdpMode)> {
        match Link::attach(&self.program, interface, XdpMode::Driver) {
            Ok(link) => Ok((link, XdpMode::Driver)),
            Err(why) if is_refusal(&why) => Err(why),
            Err(_) => {
                Link::attach(&self.program, interface, XdpMode::Generic).map(|link| (link, XdpMode::Generic))
            }
        }
    }
}

/// Returns true for errors that would occur in any mode.
fn is_refusal(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::EBUSY | libc::EEXIST | libc::ENODEV))
}

/// Offsets in a frame of one address family.
struct Layout {
    kind: u16,
    /// Length of all headers.
    len: i16,
    protocol: i16,
    to: i16,
    to_port: i16,
}

const IPV4: Layout = Layout { kind: 0x0800, len: 42, protocol: 23, to: 30, to_port: 36 };
const IPV6: Layout = Layout { kind: 0x86dd, len: 62, protocol: 20, to: 38, to_port: 56 };

/// Writes the arrival time in front of the packet, if the driver leaves space for it.
fn emit_timestamp(code: &mut Assembler) {
    code.call(CLOCK_NS);
    code.mov(9, 0);
    code.mov(1, 6);
    code.mov_imm(2, -(stamp::BYTES as i32));
    code.call(MAKE_ROOM_IN_FRONT);
    let no_room = code.jump_if(Condition::Differs, 0, 0);
    code.load(Size::Word, 2, 6, DATA_META);
    code.load(Size::Word, 3, 6, DATA);
    code.mov(4, 2);
    code.add(4, stamp::BYTES as i32);
    // This always holds, but the verifier requires the check.
    let too_short = code.jump(Condition::Above, 4, 3);
    code.constant(5, stamp::SIGN);
    code.store(Size::Double, 2, 0, 5);
    code.store(Size::Double, 2, 8, 9);
    code.set_target(no_room);
    code.set_target(too_short);
}

/// Returns the program. It redirects whole, unfragmented UDP packets without options, to our address and one of our
/// ports, to the socket of the queue on which they arrived.
fn code(local: SocketAddr, ports: &Map, sockets: &Map) -> Vec<Instruction> {
    const UDP: i32 = 17;
    let (layout, address) = match local.ip() {
        IpAddr::V4(address) => (IPV4, address.octets().to_vec()),
        IpAddr::V6(address) => (IPV6, address.octets().to_vec()),
    };
    let mut code = Assembler::default();
    let mut others: Vec<Jump> = Vec::new();
    code.mov(6, 1);
    code.load(Size::Word, 7, 6, DATA);
    code.load(Size::Word, 8, 6, DATA_END);
    code.mov(2, 7);
    code.add(2, layout.len.into());
    others.push(code.jump(Condition::Above, 2, 8));
    code.load(Size::Half, 3, 7, 12);
    others.push(code.jump_if(Condition::Differs, 3, layout.kind.to_be().into()));
    code.load(Size::Byte, 3, 7, 14);
    if local.is_ipv4() {
        others.push(code.jump_if(Condition::Differs, 3, 0x45));
        // Fragment offset and "more fragments" flag.
        code.load(Size::Half, 3, 7, 20);
        code.and(3, 0x3fff_u16.to_be().into());
        others.push(code.jump_if(Condition::Differs, 3, 0));
    } else {
        code.shift_right(3, 4);
        others.push(code.jump_if(Condition::Differs, 3, 6));
    }
    code.load(Size::Byte, 3, 7, layout.protocol);
    others.push(code.jump_if(Condition::Differs, 3, UDP));
    for (at, word) in (layout.to..).step_by(4).zip(address.as_chunks::<4>().0) {
        code.load(Size::Word, 3, 7, at);
        code.constant(4, u32::from_ne_bytes(*word).into());
        others.push(code.jump(Condition::Differs, 3, 4));
    }
    // The main port, to which most packets go, is compared directly. Other ports are looked up in the map.
    code.load(Size::Half, 3, 7, layout.to_port);
    let usual = code.jump_if(Condition::Equal, 3, local.port().to_be().into());
    code.store(Size::Word, 10, -4, 3);
    code.mov(2, 10);
    code.add(2, -4);
    code.map(1, ports);
    code.call(LOOKUP);
    others.push(code.jump_if(Condition::Equal, 0, 0));
    code.set_target(usual);
    emit_timestamp(&mut code);
    code.load(Size::Word, 2, 6, QUEUE);
    code.map(1, sockets);
    // Fallback action if the queue has no socket.
    code.mov_imm(3, PASS);
    code.call(REDIRECT);
    code.return_r0();
    for other in others {
        code.set_target(other);
    }
    code.return_value(PASS);
    code.finish()
}
