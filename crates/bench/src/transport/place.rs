//! Location of the two ends: in two network namespaces joined by a pair of virtual Ethernet ports, or both on
//! loopback.
//!
//! A namespace lives as long as a process in it. That process is `cat` on a pipe of this program, so that nothing is
//! left behind however the program ends.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// End of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

/// Kind of packets on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packets {
    /// Whole sends with segmentation offload, up to 64 KB.
    Super,
    /// Packets of at most the MTU.
    Real,
}

impl Packets {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Packets::Super => "super",
            Packets::Real => "real",
        }
    }
}

pub(crate) enum Location {
    /// Both ends on this machine's loopback, whose packets have up to 64 KB.
    Loopback,
    Namespaces(Namespaces),
}

pub(crate) struct Namespaces {
    client: NamespaceProcess,
    server: NamespaceProcess,
    user: User,
}

/// User that creates the namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Root,
    /// Root of a user namespace.
    Mapped,
}

/// Process that keeps a namespace alive.
struct NamespaceProcess(Child);

impl Drop for NamespaceProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Name of the interface at either end.
pub(crate) const PORT: &str = "bench0";

impl Location {
    /// Creates namespaces if possible. Otherwise returns loopback and the reason.
    pub(crate) fn make() -> (Location, Option<String>) {
        let first = Namespaces::make(User::Root).or_else(|_| Namespaces::make(User::Mapped));
        match first {
            Ok(made) => (Location::Namespaces(made), None),
            Err(why) => (Location::Loopback, Some(why)),
        }
    }

    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Location::Loopback => "loopback",
            Location::Namespaces(_) => "two network namespaces, one virtual Ethernet link",
        }
    }

    /// Returns the kinds of packets that the link can carry.
    pub(crate) fn packets(&self) -> &'static [Packets] {
        match self {
            Location::Loopback => &[Packets::Super],
            Location::Namespaces(_) => &[Packets::Super, Packets::Real],
        }
    }

    pub(crate) fn address(&self, end: End) -> &'static str {
        match (self, end) {
            (Location::Loopback, _) => "127.0.0.1",
            (Location::Namespaces(_), End::Client) => "10.99.0.1",
            (Location::Namespaces(_), End::Server) => "10.99.0.2",
        }
    }

    /// Returns a command that will run at an end, with its standard output piped.
    pub(crate) fn command(&self, end: End, program: &str) -> Command {
        let mut command = match self {
            Location::Loopback => Command::new(program),
            Location::Namespaces(all) => all.enter(end, program),
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Sets the MTU and kind of packets of the link. Has no effect on loopback.
    pub(crate) fn set(&self, mtu_bytes: u32, packets: Packets) -> Result<(), String> {
        let Location::Namespaces(all) = self else { return Ok(()) };
        let segments = match packets {
            Packets::Super => "65535",
            // The kernel segments larger sends before they enter the link.
            Packets::Real => "1",
        };
        for end in [End::Client, End::Server] {
            let mtu = mtu_bytes.to_string();
            all.ip(end, &["link", "set", PORT, "mtu", &mtu, "gso_max_segs", segments])?;
        }
        Ok(())
    }
}

impl Namespaces {
    fn make(user: User) -> Result<Self, String> {
        let mut unshare = Command::new("unshare");
        if user == User::Mapped {
            unshare.args(["--user", "--map-root-user"]);
        }
        let server = hold(unshare.arg("--net"))?;
        let mut second = enter(&server, user, "unshare");
        let client = hold(second.arg("--net"))?;
        let all = Namespaces { client, server, user };
        let peer = all.client.0.id().to_string();
        let pair = ["link", "add", PORT, "type", "veth", "peer", "name", PORT, "netns", &peer];
        all.ip(End::Server, &pair)?;
        for (end, address) in [(End::Client, "10.99.0.1/24"), (End::Server, "10.99.0.2/24")] {
            all.ip(end, &["address", "add", address, "dev", PORT])?;
            all.ip(end, &["link", "set", "lo", "up"])?;
            all.ip(end, &["link", "set", PORT, "up"])?;
        }
        Ok(all)
    }

    fn enter(&self, end: End, program: &str) -> Command {
        let holder = match end {
            End::Client => &self.client,
            End::Server => &self.server,
        };
        enter(holder, self.user, program)
    }

    fn ip(&self, end: End, args: &[&str]) -> Result<(), String> {
        let output = self.enter(end, "ip").args(args).output().map_err(|why| format!("nsenter: {why}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("ip {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
    }
}

fn enter(holder: &NamespaceProcess, user: User, program: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", &holder.0.id().to_string(), "--net"]);
    if user == User::Mapped {
        command.args(["--user", "--preserve-credentials"]);
    }
    command.args(["--", program]);
    command
}

/// Starts the process that keeps the namespace of `unshare` alive, and waits until it exists.
fn hold(unshare: &mut Command) -> Result<NamespaceProcess, String> {
    unshare.args(["--", "sh", "-c", "echo made; exec cat"]);
    unshare.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut holder = NamespaceProcess(unshare.spawn().map_err(|why| format!("unshare: {why}"))?);
    let mut line = String::new();
    let mut output = BufReader::new(holder.0.stdout.take().expect("it is piped"));
    match output.read_line(&mut line) {
        Ok(_) if line == "made\n" => Ok(holder),
        _ => Err("no network namespace can be made (needs root, or user namespaces)".into()),
    }
}
