//! Compares the register circuit with `hardware/registers.csv`: every address, reset value, writable bits, and
//! refused accesses. Also checks the page that lists the registers.

use std::fs;
use std::path::{Path, PathBuf};

use pathweave_cosim::{Circuit, Model};
use pathweave_units::Rng;

use crate::support;

const WORDS: (usize, usize) = (7, 10);
const OKAY: u32 = 0;
const SLAVE_ERROR: u32 = 2;
const DECODE_ERROR: u32 = 3;

/// Commands with their codes from `hardware/commands.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Command {
    Scale = 1,
    Path = 2,
    Address = 3,
    Port = 4,
    Flow = 5,
    Expire = 6,
    Seed = 7,
    Clock = 8,
    Rate = 9,
    Threshold = 10,
}

const COMMANDS: [(Command, &str); 10] = [
    (Command::Scale, "SCALE"),
    (Command::Path, "PATH"),
    (Command::Address, "ADDRESS"),
    (Command::Port, "PORT"),
    (Command::Flow, "FLOW"),
    (Command::Expire, "EXPIRE"),
    (Command::Seed, "SEED"),
    (Command::Clock, "CLOCK"),
    (Command::Rate, "RATE"),
    (Command::Threshold, "THRESHOLD"),
];

struct Register {
    address: u32,
    name: String,
    writable: bool,
    mask: u32,
    /// Reset value. `None` if it depends on inputs.
    reset: Option<u32>,
}

fn hardware() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hardware")
}

/// Returns the rows of a file after its header, without quotes. Only the last column contains commas.
fn rows(name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(hardware().join(name)).expect("it is there");
    text.lines().skip(1).map(|line| line.splitn(6, ',').map(str::to_owned).collect()).collect()
}

fn number(text: &str) -> u32 {
    u32::from_str_radix(text.trim_start_matches("0x"), 16).expect("a number in hexadecimal")
}

fn table() -> Vec<Register> {
    rows("registers.csv")
        .iter()
        .map(|row| Register {
            address: number(&row[0]),
            name: row[1].clone(),
            writable: row[2] == "read write",
            mask: number(&row[3]),
            reset: (row[4] != "-").then(|| number(&row[4])),
        })
        .collect()
}

/// Returns the address of a register.
pub(crate) fn address(name: &str) -> u32 {
    let found = table().into_iter().find(|register| register.name == name);
    found.unwrap_or_else(|| panic!("no register {name}")).address
}

struct Bench {
    model: Model,
    /// Inputs other than the bus: readiness for a command, counts, time, rate and space.
    other_inputs: [u32; 7],
}

impl Bench {
    fn new() -> Option<Self> {
        let mut model = support::build(&Circuit { bench: "registers", parameters: &[], words: WORDS })?;
        let mut reset = vec![0; WORDS.0];
        reset[0] = 1;
        model.run(&vec![reset; 3]);
        Some(Bench { model, other_inputs: [0; 7] })
    }
    fn step(&mut self, flags: u32, data: u32, read: u32) -> Vec<u32> {
        let mut words = self.other_inputs.to_vec();
        words[0] |= flags;
        words[1] = data;
        words[2] |= read;
        self.model.run(&[words]).remove(0)
    }
    /// Writes a register. Returns the response, or `None` if the write is not accepted in this clock.
    fn try_write(&mut self, address: u32, data: u32, strobe: u32) -> Option<u32> {
        let taken = self.step(0b110 | strobe << 8 | address << 16, data, 0)[0] & 3;
        assert!(taken == 0 || taken == 3, "address and data are taken together");
        // The response must stay until it is accepted.
        (taken == 3).then(|| {
            let held: Vec<u32> = (0..2).map(|_| self.step(0, 0, 0)[0] >> 2 & 7).collect();
            let answer = self.step(0b1000, 0, 0)[0] >> 2 & 7;
            assert!(answer & 1 == 1 && held.iter().all(|held| *held == answer), "{held:?} {answer}");
            assert_eq!(self.step(0, 0, 0)[0] >> 2 & 1, 0, "one answer");
            answer >> 1
        })
    }
    fn write(&mut self, address: u32, data: u32) -> u32 {
        self.try_write(address, data, 0xf).expect("nothing is under way")
    }
    /// Reads a register. Returns the response and the data.
    fn read(&mut self, address: u32) -> (u32, u32) {
        assert_eq!(self.step(0b1_0000, 0, address)[0] >> 5 & 1, 1, "taken");
        let held = self.step(0, 0, 0);
        let answer = self.step(0b10_0000, 0, 0);
        assert_eq!((held[0] >> 6 & 7, held[1]), (answer[0] >> 6 & 7, answer[1]));
        assert_eq!(answer[0] >> 6 & 1, 1);
        (answer[0] >> 7 & 3, answer[1])
    }
}

#[test]
fn every_address_is_as_the_table_has_it() {
    let Some(mut bench) = Bench::new() else { return };
    let table = table();
    for address in (0..0x200).chain([0x7fc, 0x800, 0xffc]) {
        let register = table.iter().find(|register| register.address == address);
        let (answer, data) = bench.read(address);
        match register {
            None => assert_eq!((answer, data), (DECODE_ERROR, 0), "{address:#x}"),
            Some(register) => {
                assert_eq!(answer, OKAY, "{}", register.name);
                assert!(register.reset.is_none_or(|reset| reset == data), "{} is {data:#x}", register.name);
            }
        }
        let expected = match register {
            None => DECODE_ERROR,
            // 0 is not a command.
            Some(register) if register.writable && register.name != "COMMAND" => OKAY,
            Some(_) => SLAVE_ERROR,
        };
        assert_eq!(bench.write(address, 0), expected, "{address:#x}");
    }
}

#[test]
fn writes_stay_within_the_mask() {
    let Some(mut bench) = Bench::new() else { return };
    let mut rng = Rng::for_component(1, "cosim-registers", 0);
    let table = table();
    let writable = || table.iter().filter(|register| register.writable && register.name != "COMMAND");
    for _ in 0..3 {
        let values: Vec<u32> = writable().map(|_| rng.next_u64() as u32).collect();
        for (register, value) in writable().zip(&values) {
            assert_eq!(bench.write(register.address, *value), OKAY);
            assert_eq!(
                bench.try_write(register.address, !value, 0b0111),
                Some(SLAVE_ERROR),
                "a part of a word"
            );
        }
        for (register, value) in writable().zip(&values) {
            assert_eq!(bench.read(register.address), (OKAY, value & register.mask), "{}", register.name);
        }
        for register in table.iter().filter(|register| !register.writable) {
            let (_, before) = bench.read(register.address);
            assert_eq!(bench.write(register.address, !before), SLAVE_ERROR, "{}", register.name);
            assert_eq!(bench.read(register.address), (OKAY, before), "{}", register.name);
        }
        let outputs = bench.step(0, 0, 0);
        let value = |name: &str| bench_value(&table, &values, name);
        assert_eq!(outputs[0] >> 14 & 15, value("CONTROL"));
        assert_eq!(outputs[2..6], ["ARGUMENT0", "ARGUMENT1", "ARGUMENT2", "CLOCK_STEP"].map(value));
        assert_eq!(outputs[6..10], ["LINE_LOW", "LINE_HIGH", "FLOOR_LOW", "FLOOR_HIGH"].map(value));
    }
}

fn bench_value(table: &[Register], values: &[u32], name: &str) -> u32 {
    let mut writable =
        table.iter().filter(|register| register.writable && register.name != "COMMAND").zip(values);
    let (register, value) = writable.find(|(register, _)| register.name == name).expect("a register");
    value & register.mask
}

#[test]
fn a_command_waits_for_the_one_before() {
    let Some(mut bench) = Bench::new() else { return };
    let command = address("COMMAND");
    for code in [0, 11, 16, 0x101] {
        assert_eq!(bench.write(command, code), SLAVE_ERROR, "{code}");
    }
    let listed: Vec<(u32, String)> =
        rows("commands.csv").iter().map(|row| (row[0].parse().expect("a number"), row[1].clone())).collect();
    assert_eq!(listed, COMMANDS.map(|(code, name)| (code as u32, name.to_owned())));
    for (code, _) in listed {
        assert_eq!(bench.write(address("ARGUMENT0"), code * 7), OKAY);
        assert_eq!(bench.write(command, code), OKAY);
        assert_eq!(bench.read(command), (OKAY, code));
        assert_eq!(bench.try_write(command, 1, 0xf), None);
        assert_eq!(bench.try_write(address("ARGUMENT0"), 1, 0xf), None);
        assert_eq!(bench.write(address("CONTROL"), 1), OKAY, "others need not wait");
        let outputs = bench.step(1 << 6, 0, 0);
        assert_eq!((outputs[0] >> 9 & 1, outputs[0] >> 10 & 15, outputs[2]), (1, code, code * 7));
        assert_eq!(bench.read(command), (OKAY, 0));
    }
}

#[test]
fn time_rate_room_and_counts_are_read() {
    let Some(mut bench) = Bench::new() else { return };
    bench.other_inputs[3..7].copy_from_slice(&[0x89ab_cdef, 0x0123_4567, 0x7654_3210, 0x1234_56aa]);
    assert_eq!(bench.read(address("CLOCK_LOW")), (OKAY, 0x89ab_cdef));
    bench.other_inputs[4] = 0xffff_ffff;
    assert_eq!(bench.read(address("CLOCK_HIGH")), (OKAY, 0x0123_4567), "as it was with the low half");
    assert_eq!(bench.read(address("RATE_LOW")), (OKAY, 0x7654_3210));
    assert_eq!(bench.read(address("RATE_HIGH")), (OKAY, 0xaa));
    assert_eq!(bench.read(address("RINGS_FREE")), (OKAY, 0x3456));
    let counters: Vec<u32> = table()
        .into_iter()
        .filter(|register| register.address >= 0x80)
        .map(|register| register.address)
        .collect();
    for (i, counter) in counters.iter().enumerate() {
        for _ in 0..=i {
            bench.other_inputs[2] = 1 << (16 + i);
            bench.step(0, 0, 0);
        }
        bench.other_inputs[2] = 0;
        assert_eq!(bench.read(*counter), (OKAY, i as u32 + 1));
    }
}
