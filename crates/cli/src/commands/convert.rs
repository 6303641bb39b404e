//! `pathweave convert`.

use std::io::Write;

use pathweave_scenario::convert::{Conversion, ConvertError, convert as convert_file, formats};

use crate::args::ConvertArgs;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::terminal;

pub(crate) fn convert(args: &ConvertArgs) -> Result<Outcome, Failure> {
    let how = Conversion { from: args.from.as_deref(), to: args.to.as_deref(), set: &args.set };
    let converted = convert_file(&args.input, &args.output, how).map_err(|why| match why {
        ConvertError::Scenario(found) => Failure::Scenario(found),
        ConvertError::Other(what) => Failure::Input(what),
    })?;
    let lost: String = converted.lost.iter().map(|lost| format!("\n  - {lost}")).collect();
    if !lost.is_empty() && !args.lossy {
        return Err(Failure::Input(format!(
            "{} cannot say:{lost}\n{} is not written; with --lossy it is, without that",
            converted.to,
            args.output.display()
        )));
    }
    let output = Output::create(&args.output)?;
    let tell = if output.is_stdout() { terminal::note } else { terminal::out };
    output.write(|out| out.write_all(converted.text.as_bytes()))?;
    if !args.quiet {
        for note in &converted.notes {
            terminal::note(&format!("note: {note}"));
        }
        if !lost.is_empty() {
            terminal::note(&format!("note: {} does not say:{lost}", args.output.display()));
        }
        tell(&format!(
            "{} ({}) to {} ({})\n",
            args.input.display(),
            converted.from,
            args.output.display(),
            converted.to
        ));
    }
    Ok(Outcome::Done)
}

/// The formats, for the help of the command.
pub(crate) fn formats_help() -> String {
    let all = formats();
    let width = all.iter().map(|format| format.name.len()).max().unwrap_or(0);
    let mut text = "Formats:\n".to_owned();
    for format in all {
        let extension = format.extension.map_or(String::new(), |extension| format!(" (.{extension})"));
        let how = if format.is_written { "" } else { "; read only" };
        text.push_str(&format!("  {:width$}  {}{extension}{how}\n", format.name, format.help));
    }
    text.push_str("OUT with extension .txt is topology.txt or flow.txt of HPCC, as IN is a topology or not.");
    text
}
