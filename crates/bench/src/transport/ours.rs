//! `pathweave perf` at both ends, as users run it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::figures::{Bandwidth, Latency};
use super::place::{End, Location};
use super::process::Running;

/// Protection of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    Off,
    Auth,
    Encrypt,
}

impl Protection {
    pub(crate) const ALL: [Protection; 3] = [Protection::Off, Protection::Auth, Protection::Encrypt];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Protection::Off => "insecure",
            Protection::Auth => "auth-only",
            Protection::Encrypt => "encrypt",
        }
    }
}

/// Program, with a key that is removed on drop.
pub(crate) struct Ours {
    program: String,
    key: PathBuf,
}

/// Running server, with the options that its clients need.
pub(crate) struct Server<'a> {
    ours: &'a Ours,
    place: &'a Location,
    common: Vec<String>,
    address: String,
    _running: Running,
}

impl Ours {
    /// Finds the program beside this one.
    pub(crate) fn find() -> Result<Ours, String> {
        let here = std::env::current_exe().map_err(|why| why.to_string())?;
        let program = here.with_file_name("pathweave");
        if !program.exists() {
            let build = "cargo build --release -p pathweave-cli";
            return Err(format!("{} is missing; `{build}` makes it", program.display()));
        }
        let key = std::env::temp_dir().join(format!("pathweave-bench-{}.key", std::process::id()));
        write_key(&key).map_err(|why| format!("{}: {why}", key.display()))?;
        Ok(Ours { program: program.to_string_lossy().into_owned(), key })
    }

    pub(crate) fn serve<'a>(
        &'a self,
        place: &'a Location,
        mtu_bytes: u32,
        protection: Protection,
    ) -> Result<Server<'a>, String> {
        self.serve_with(place, mtu_bytes, protection, &[])
    }

    /// Starts a server with further options for both ends.
    pub(crate) fn serve_with<'a>(
        &'a self,
        place: &'a Location,
        mtu_bytes: u32,
        protection: Protection,
        options: &[&str],
    ) -> Result<Server<'a>, String> {
        self.serve_each(place, mtu_bytes, protection, [options, options])
    }

    /// Starts a server with further options for the client and for the server.
    pub(crate) fn serve_each<'a>(
        &'a self,
        place: &'a Location,
        mtu_bytes: u32,
        protection: Protection,
        [of_client, of_server]: [&[&str]; 2],
    ) -> Result<Server<'a>, String> {
        let key = self.key.to_string_lossy().into_owned();
        let mut common: Vec<String> =
            ["--mtu", &mtu_bytes.to_string(), "--paths", "1"].map(String::from).into();
        match protection {
            Protection::Off => common.push("--insecure".into()),
            Protection::Auth => common.extend(["--auth-only".into(), "--key".into(), key]),
            Protection::Encrypt => common.extend(["--key".into(), key]),
        }
        let mut command = place.command(End::Server, &self.program);
        let bind = format!("{}:0", place.address(End::Server));
        command.args(["perf", "server", "--quiet", "--bind", &bind]).args(&common).args(of_server);
        let mut running = Running::start(command)?;
        let mut line = String::new();
        let output = running.child().stdout.as_mut().expect("it is piped");
        BufReader::new(output).read_line(&mut line).map_err(|why| why.to_string())?;
        let address = line.split_whitespace().nth(2).map(str::to_owned);
        let Some(address) = address else {
            let mut why = String::new();
            let _ = running.child().stderr.as_mut().expect("it is piped").read_to_string(&mut why);
            return Err(format!("pathweave perf server: {}", why.trim()));
        };
        common.extend(of_client.iter().map(|option| (*option).to_owned()));
        Ok(Server { ours: self, place, common, address, _running: running })
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.key);
    }
}

/// Writes a key of random bytes that only this user can read.
pub(crate) fn write_key(path: &Path) -> std::io::Result<()> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let _ = std::fs::remove_file(path);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(file, "{text}")
}

impl Server<'_> {
    /// Measures a stream of messages of `size_bytes`.
    pub(crate) fn bandwidth(&self, op: &str, size_bytes: u64, seconds: f64) -> Result<Bandwidth, String> {
        let size = size_bytes.to_string();
        let row = self.client(&["--op", op, "--size", &size, "--depth", "8"], seconds)?;
        let figure = |name: &str| row[name].as_f64().ok_or_else(|| format!("no {name} in {row}"));
        Ok(Bandwidth {
            bytes_per_second: figure("average_bytes_per_second")?,
            client_cpu_ns_per_byte: Some(figure("client_cpu_ns_per_byte")?),
            server_cpu_ns_per_byte: Some(figure("server_cpu_ns_per_byte")?),
            client_user_ns_per_byte: Some(figure("client_user_ns_per_byte")?),
            server_user_ns_per_byte: Some(figure("server_user_ns_per_byte")?),
        })
    }

    /// Measures round trips of SENDs of 8 bytes.
    pub(crate) fn latency(&self, seconds: f64) -> Result<Latency, String> {
        let row = self.client(&["--op", "send", "--size", "8", "--latency"], seconds)?;
        Latency::of(&row["latency"]).ok_or_else(|| format!("no latency in {row}"))
    }

    fn client(&self, args: &[&str], seconds: f64) -> Result<Value, String> {
        let mut command = self.place.command(End::Client, &self.ours.program);
        command.args(["perf", "client", &self.address, "--json", "--progress", "never"]);
        command.args(["--time", &seconds.to_string()]).args(&self.common).args(args);
        let ran = Running::start(command)?.finish().map_err(|why| format!("pathweave perf client: {why}"))?;
        let document: Value =
            serde_json::from_str(&ran.output).map_err(|why| format!("{why}: {}", ran.output))?;
        Ok(document["results"][0].clone())
    }
}
