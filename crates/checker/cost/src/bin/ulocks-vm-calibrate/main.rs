//! Measures the machine at hand for the cost model.

mod fit;
mod futex;
mod probes;
mod topology;

use std::fs::write;
use std::process::ExitCode;

const USAGE: &str = "\
ulocks-vm-calibrate: parameters of this machine for the cost model of ulocks-vm

usage:
  ulocks-vm-calibrate [--name NAME] [--output FILE]   measure; about ten seconds

  --name NAME    what to call the machine (default: this machine)
  --output FILE  where to write; without it, to standard output

Keep the machine quiet meanwhile. What cannot be measured with the CPUs at hand is marked in the file.";

/// What was asked for.
#[derive(Default)]
struct Options {
    name: Option<String>,
    output: Option<String>,
    help: bool,
}

fn parse(arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let slot = match argument.as_str() {
            "--name" => &mut options.name,
            "--output" => &mut options.output,
            "--help" | "-h" => {
                options.help = true;
                continue;
            }
            other => {
                return Err(format!("unknown argument `{other}`; allowed are --name, --output, --help"));
            }
        };
        *slot = Some(arguments.next().ok_or_else(|| format!("{argument} needs a value"))?);
    }
    Ok(options)
}

fn run(options: &Options) -> Result<(), String> {
    let cpus =
        topology::Cpus::find().map_err(|error| format!("the allowed CPUs cannot be found: {error}"))?;
    let machine = fit::calibrate(options.name.as_deref().unwrap_or("this machine"), &cpus);
    machine.check().map_err(|error| format!("the measurements make no machine: {error}"))?;
    let text = machine.to_json();
    match &options.output {
        Some(file) => write(file, text).map_err(|error| format!("{file}: cannot be written: {error}")),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            eprintln!("ulocks-vm-calibrate: {why}");
            return ExitCode::from(2);
        }
    };
    if options.help {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("ulocks-vm-calibrate: {why}");
            ExitCode::FAILURE
        }
    }
}
