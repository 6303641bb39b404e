//! `pathweave convert`.

use clap::Args;
use std::io::Write;
use std::path::PathBuf;

use pathweave_scenario::convert::{
    Conversion, ConvertError, Converted, Written, convert as convert_file, formats,
};
use pathweave_scenario::{Changes, Loaded};

use crate::failure::{Failure, Outcome};
use crate::inputs::Inputs;
use crate::output::{Output, write_new_folder};
use crate::scenario_input;
use crate::terminal;

#[derive(Args, Debug)]
#[command(after_help = formats_help())]
pub(crate) struct ConvertArgs {
    /// File to read. For a Chakra trace, its folder, or the folder and the prefix of its files
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// File to write. For a Chakra trace, a new folder. The output appears only when it is complete
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Format of IN [default: by its extension or first line]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Format of OUT [default: by its extension]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<String>,
    /// Set a field of the workload or scenario that IN is converted to: gpus=32, tp=4, hosts=[1,0]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Write the parts that the format can express, and list the others, instead of refusing
    #[arg(long)]
    pub(crate) lossy: bool,
    /// Print only errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

pub(crate) fn convert(args: &ConvertArgs) -> Result<Outcome, Failure> {
    scenario_input::check_is_file(&args.input)?;
    let how = Conversion { from: args.from.as_deref(), to: args.to.as_deref(), set: &args.set };
    let converted = convert_file(&args.input, &args.output, how).map_err(|why| match why {
        ConvertError::Scenario(found) => Failure::Scenario(found),
        ConvertError::Other(what) => Failure::Input(what),
    })?;
    check_output(args, &converted)?;
    let lost: String = converted.lost.iter().map(|lost| format!("\n  - {lost}")).collect();
    if !lost.is_empty() && !args.lossy {
        return Err(Failure::Input(format!(
            "{} cannot represent:{lost}\n{} was not written; --lossy writes it without this",
            converted.to,
            args.output.display()
        )));
    }
    let is_stdout = match &converted.written {
        Written::Text(text) => {
            let output = Output::create(&args.output)?;
            let is_stdout = output.is_stdout();
            output.write(|out| out.write_all(text.as_bytes()))?;
            is_stdout
        }
        Written::Folder(files) => {
            write_new_folder(&args.output, files)?;
            false
        }
    };
    let tell = if is_stdout { terminal::note } else { terminal::out };
    if !args.quiet {
        for note in &converted.notes {
            terminal::note(&format!("note: {note}"));
        }
        if !lost.is_empty() {
            terminal::note(&format!("note: {} leaves out:{lost}", args.output.display()));
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

/// Checks that the output is no file that was read: the input, or one that a scenario names.
fn check_output(args: &ConvertArgs, converted: &Converted) -> Result<(), Failure> {
    let inputs = match converted.from {
        "scenario" => {
            let changes = Changes { set: args.set.clone(), ..Changes::default() };
            Inputs::default().with_scenario(&args.input, &Loaded::read(&args.input, &changes)?)
        }
        _ => Inputs::default().with(&args.input),
    };
    inputs.check_output("OUT", &args.output)
}

/// Returns the list of formats for the help of the command.
pub(crate) fn formats_help() -> String {
    let all = formats();
    let width = all.iter().map(|format| format.name.len()).max().unwrap_or(0);
    let mut text = "Formats:\n".to_owned();
    for format in all {
        let extension = format.extension.map_or(String::new(), |extension| format!(" (.{extension})"));
        let how = match (format.is_read, format.is_written) {
            (true, true) => "",
            (true, false) => "; read only",
            (false, _) => "; written only",
        };
        text.push_str(&format!("  {:width$}  {}{extension}{how}\n", format.name, format.help));
    }
    text.push_str("OUT with extension .txt is topology.txt or flow.txt of HPCC, as IN is a topology or not.");
    text
}
