//! `pathweave view`: a folder of results in a browser, updated while runs are in progress. Serves only this machine.

mod body;
mod index;
mod path;
mod remake;
mod scan;
mod serve;

use clap::Args;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use crate::failure::{Failure, Outcome};
use crate::folder;
use crate::interrupt::Interrupt;
use crate::terminal;

/// Default port, which is tried first.
const USUAL_PORT: u16 = 8642;

// Doc comments of arguments are their help texts.
#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    /// Folder of results, including its subfolders; before RUN, the folder of one run or comparison
    #[arg(value_name = "DIR", default_value = "results")]
    pub(crate) folder: PathBuf,
    /// Folder of another run or comparison: one page has both, beside each other
    #[arg(value_name = "RUN")]
    pub(crate) beside: Option<PathBuf>,
    /// Port on 127.0.0.1; 0 selects a free one [default: 8642, or a free one if that is in use]
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
}

pub(crate) fn view(args: &ViewArgs) -> Result<Outcome, Failure> {
    let site = match &args.beside {
        None => Site::Folder(folder::existing(&args.folder, "serve")?),
        Some(other) => Site::beside(args.folder.clone(), other.clone())?,
    };
    let listener = listen(args.port)?;
    let address = listener.local_addr().map_err(|why| system(&why))?;
    let interrupt = Interrupt::listen_saying("stopping")?;
    terminal::out(&format!("http://{address}/\n"));
    let beside = args.beside.as_ref().map_or(String::new(), |other| format!(" beside {}", other.display()));
    terminal::note(&format!("serving {}{beside} to this machine; Ctrl-C ends it", args.folder.display()));
    serve::serve(listener, site, &interrupt).map_err(|why| system(&why))?;
    Ok(Outcome::Done)
}

/// Results that are served.
enum Site {
    /// Everything in a folder.
    Folder(PathBuf),
    /// A page with two runs or comparisons beside each other, made anew on each request.
    Beside(PathBuf, PathBuf),
}

impl Site {
    /// Checks that the folders have a run or comparison each.
    fn beside(a: PathBuf, b: PathBuf) -> Result<Self, Failure> {
        pathweave_report::beside_html(&a, &b)
            .map_err(|why| Failure::Input(format!("cannot lay runs beside each other: {why}")))?;
        Ok(Site::Beside(a, b))
    }
}

fn listen(port: Option<u16>) -> Result<TcpListener, Failure> {
    let on = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = match port {
        Some(port) => on(port),
        None => on(USUAL_PORT).or_else(|_| on(0)),
    };
    listener.map_err(|why| {
        let port = port.unwrap_or(0);
        Failure::Input(match why.kind() {
            io::ErrorKind::AddrInUse => format!(
                "--port {port}: another program uses that port of 127.0.0.1; name another one, or none to get a free one"
            ),
            io::ErrorKind::PermissionDenied => format!(
                "--port {port}: this user may not use that port; name one of 1024 to 65535, or none to get a free one"
            ),
            _ => format!("--port {port}: cannot listen on 127.0.0.1: {why}"),
        })
    })
}

fn system(why: &io::Error) -> Failure {
    Failure::Input(format!("cannot serve: {why}"))
}
