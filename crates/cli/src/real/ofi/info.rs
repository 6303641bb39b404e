//! `pathweave ofi info`.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use pathweave_fi::{Library, LibraryError, Offered, capability_names};
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::real::libraries::{PROVIDER, Search};
use crate::terminal;

/// Loads the library as libfabric does and prints its offers in this environment, one for each subnet. If it offers
/// nothing, or libfabric would not reach it, prints the reason in one line and exits with code 2.
#[derive(Args, Debug)]
pub(crate) struct InfoArgs {
    /// Folder with libpathweave-fi.so [default: FI_PROVIDER_PATH; if that is not set, the one installed with
    /// this program, or /usr/local/lib/libfabric]
    #[arg(long, value_name = "DIR")]
    provider: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl From<LibraryError> for Failure {
    fn from(why: LibraryError) -> Self {
        Failure::Input(why.to_string())
    }
}

pub(super) fn info(args: &InfoArgs) -> Result<Outcome, Failure> {
    is_taken(std::env::var("FI_PROVIDER").ok().as_deref())?;
    let path = folder(args)?.join(PROVIDER.file);
    let path = std::path::absolute(&path).unwrap_or(path);
    let library = Library::open(&path)?;
    let offers = library.offers()?;
    terminal::out(&if args.json {
        crate::commands::json(&json!({
            "library": path,
            "version": dotted(library.version()),
            "libfabric": dotted(library.interface_version()),
            "offers": offers.iter().map(as_json).collect::<Vec<_>>(),
        }))
    } else {
        let mut text = format!(
            "{} {}, written to libfabric {}\n",
            path.display(),
            dotted(library.version()),
            dotted(library.interface_version())
        );
        offers.iter().for_each(|offer| text.push_str(&as_text(offer)));
        text
    });
    Ok(Outcome::Done)
}

fn folder(args: &InfoArgs) -> Result<PathBuf, Failure> {
    if let Some(folder) = &args.provider {
        return PROVIDER.given(folder);
    }
    if let Some(variable) = std::env::var_os("FI_PROVIDER_PATH").filter(|value| !value.is_empty()) {
        let search = Search::as_libfabric(&variable);
        return search.folder().ok_or_else(|| {
            Failure::Input(format!("{search}, where FI_PROVIDER_PATH has libfabric look for providers"))
        });
    }
    let search = PROVIDER.installed()?;
    let folder = search.folder().ok_or_else(|| {
        Failure::Input(format!("{search}, and neither FI_PROVIDER_PATH nor --provider names another folder"))
    })?;
    terminal::note(&format!(
        "note: FI_PROVIDER_PATH is not set: only a libfabric that looks into {} by itself finds the provider",
        folder.display()
    ));
    Ok(folder)
}

/// Checks that libfabric selects the provider if FI_PROVIDER has this value: names separated by commas, or after `^`
/// names that are excluded.
fn is_taken(variable: Option<&str>) -> Result<(), Failure> {
    let Some(names) = variable.filter(|names| !names.is_empty()) else { return Ok(()) };
    let is_in = |list: &str| list.split(',').any(|name| name.trim().eq_ignore_ascii_case("pathweave"));
    let taken = match names.strip_prefix('^') {
        Some(list) => !is_in(list),
        None => is_in(names),
    };
    if taken {
        return Ok(());
    }
    Err(Failure::Input(format!("FI_PROVIDER is \"{names}\", with which libfabric does not take pathweave")))
}

fn dotted((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}

fn address(offer: &Offered) -> String {
    offer.address.map_or("none".to_owned(), |address| match address.port() {
        0 => format!("{}, any port", address.ip()),
        _ => address.to_string(),
    })
}

fn as_text(offer: &Offered) -> String {
    let mut text =
        format!("\nfabric {}, domain {}, address {}\n", offer.fabric, offer.domain, address(offer));
    let caps = capability_names(offer.caps).join(" ");
    let options = textwrap::Options::new(100).initial_indent("  caps: ").subsequent_indent("        ");
    text.push_str(&textwrap::fill(&caps, options));
    let (sends, receives) = offer.queue_size;
    let (pieces, remote_pieces) = offer.iov_limits;
    let _ = write!(
        text,
        "\n  limits: {} B a message, {} B injected; {sends} operations to send and {receives} to receive at a time, \
         {pieces} pieces of a buffer, {remote_pieces} of remote memory\n          tags of 64 bits, {} B of data with a \
         message, {} B a memory key\n",
        offer.max_message_bytes, offer.inject_bytes, offer.cq_data_bytes, offer.mr_key_bytes
    );
    text
}

fn as_json(offer: &Offered) -> serde_json::Value {
    let caps: Vec<String> = capability_names(offer.caps).iter().map(|name| format!("FI_{name}")).collect();
    json!({
        "fabric": offer.fabric,
        "domain": offer.domain,
        "address": offer.address,
        "caps": caps,
        "max_msg_size": offer.max_message_bytes,
        "inject_size": offer.inject_bytes,
        "tx_size": offer.queue_size.0,
        "rx_size": offer.queue_size.1,
        "iov_limit": offer.iov_limits.0,
        "rma_iov_limit": offer.iov_limits.1,
        "mr_key_size": offer.mr_key_bytes,
        "cq_data_size": offer.cq_data_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::is_taken;

    #[test]
    fn lists_of_providers_are_read_as_libfabric_reads_them() {
        for names in [None, Some(""), Some("pathweave"), Some("tcp,pathweave"), Some("^tcp")] {
            assert!(is_taken(names).is_ok(), "{names:?}");
        }
        for names in ["tcp", "^pathweave", "^tcp,pathweave", "pathweave2"] {
            assert!(is_taken(Some(names)).is_err(), "{names}");
        }
    }
}
