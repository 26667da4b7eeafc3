//! A program as a litmus file in C, for [herd7](https://github.com/herd/herdtools7), and what herd7
//! prints of it as outcomes.
//!
//! What herd7 knows beyond RC11 can so be asked of the same program: C11 as it was published
//! (`-model c11_partialSC.cat`), and, of what a compiler makes of the file, AArch64 and Power.
//!
//! - The word of number `n` is `x`, `y`, `z`, `w`; all begin as zero.
//! - Register `rN` of a thread is what its operation number `N` returned, of those that return
//!   something.
//! - An exchange takes the expected value from a location of its own, `eTN`, and leaves there what
//!   it read if it failed; its register says whether it succeeded.
//! - A condition is an `if` around the rest of the thread.
//!
//! The limits are those of the programs here: at most four words, no addresses that depend on what
//! was read, no loops, no plain data.

use super::program::{FAILED, Op, Outcome, Program, words};
use core::fmt::Write as _;
use core::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::collections::{BTreeMap, BTreeSet};

const WORDS: [&str; 4] = ["x", "y", "z", "w"];

const ORDERS: [(Ordering, &str); 5] = [
    (Relaxed, "memory_order_relaxed"),
    (Acquire, "memory_order_acquire"),
    (Release, "memory_order_release"),
    (AcqRel, "memory_order_acq_rel"),
    (SeqCst, "memory_order_seq_cst"),
];

fn order(order: Ordering) -> &'static str {
    ORDERS.iter().find(|(of, _)| *of == order).expect("an ordering").1
}

/// The litmus file of `program`.
pub(super) fn export(name: &str, program: &Program) -> String {
    let mut expected = String::new();
    let mut threads = String::new();
    let mut seen = Vec::new();
    for (t, ops) in program.iter().enumerate() {
        let mut parameters: Vec<String> =
            WORDS[..words(program)].iter().map(|word| format!("atomic_int* {word}")).collect();
        let (mut body, mut reads, mut open) = (String::new(), 0, 0);
        for op in ops {
            let returns = !matches!(op, Op::Store(..) | Op::Copy(..) | Op::Fence(_) | Op::If(..));
            if let Op::Cas { expected: value, .. } = op {
                parameters.push(format!("int* e{t}{reads}"));
                let _ = write!(expected, " [e{t}{reads}]={value};");
                seen.push(format!("e{t}{reads}"));
            }
            if returns {
                seen.push(format!("{t}:r{reads}"));
            }
            let _ = writeln!(body, "  {}", statement(op, t, reads));
            reads += usize::from(returns);
            open += usize::from(matches!(op, Op::If(..)));
        }
        body.push_str(&"  }\n".repeat(open));
        let _ = writeln!(threads, "P{t} ({}) {{\n{body}}}\n", parameters.join(", "));
    }
    seen.extend(WORDS[..words(program)].iter().map(|&word| word.to_owned()));
    let zeros: String = WORDS[..words(program)].iter().map(|word| format!(" [{word}]=0;")).collect();
    format!("C {name}\n{{{zeros}{expected} }}\n\n{threads}locations [{};]\nexists (true)\n", seen.join("; "))
}

fn statement(op: &Op, thread: usize, reads: usize) -> String {
    let word = op.loc().map_or("", |x| WORDS[x]);
    match *op {
        Op::Load(_, o) => format!("int r{reads} = atomic_load_explicit({word}, {});", order(o)),
        Op::Store(_, value, o) => format!("atomic_store_explicit({word}, {value}, {});", order(o)),
        Op::Copy(_, read, o) => format!("atomic_store_explicit({word}, r{read}, {});", order(o)),
        Op::Swap(_, value, o) => {
            format!("int r{reads} = atomic_exchange_explicit({word}, {value}, {});", order(o))
        }
        Op::Add(_, value, o) => {
            format!("int r{reads} = atomic_fetch_add_explicit({word}, {value}, {});", order(o))
        }
        Op::Cas { new, success, failure, weak, .. } => format!(
            "int r{reads} = atomic_compare_exchange_{}_explicit({word}, e{thread}{reads}, {new}, {}, {});",
            if weak { "weak" } else { "strong" },
            order(success),
            order(failure)
        ),
        Op::Fence(o) => format!("atomic_thread_fence({});", order(o)),
        Op::If(read, value) => format!("if (r{read} == {value}) {{"),
    }
}

/// The outcomes in what herd7 has printed of `program`.
pub(super) fn outcomes(program: &Program, printed: &str) -> Option<BTreeSet<Outcome>> {
    let mut lines = printed.lines().skip_while(|line| !line.starts_with("States "));
    let states: usize = lines.next()?.strip_prefix("States ")?.trim().parse().ok()?;
    let found: BTreeSet<Outcome> =
        lines.take(states).map(|line| outcome(program, line)).collect::<Option<_>>()?;
    Some(found)
}

/// One state: `0:r0=1; [x]=2;`.
fn outcome(program: &Program, line: &str) -> Option<Outcome> {
    let mut values: BTreeMap<String, u64> = BTreeMap::new();
    for item in line.split(';').map(str::trim).filter(|item| !item.is_empty()) {
        let (place, value) = item.split_once('=')?;
        values.insert(place.trim_matches(['[', ']']).to_owned(), value.parse().ok()?);
    }
    let mut outcome = Outcome::default();
    for (t, ops) in program.iter().enumerate() {
        let mut reads = Vec::new();
        for op in ops {
            let register = || values.get(&format!("{t}:r{}", reads.len())).copied();
            let read = match *op {
                Op::Store(..) | Op::Copy(..) | Op::Fence(_) => continue,
                Op::If(read, value) if reads.get(read)? % FAILED == value => continue,
                Op::If(..) => break,
                Op::Cas { expected, .. } if register()? == 1 => expected,
                Op::Cas { .. } => values.get(&format!("e{t}{}", reads.len()))? | FAILED,
                Op::Load(..) | Op::Swap(..) | Op::Add(..) => register()?,
            };
            reads.push(read);
        }
        outcome.reads.push(reads);
    }
    outcome.last =
        WORDS[..words(program)].iter().map(|&word| values.get(word).copied()).collect::<Option<_>>()?;
    Some(outcome)
}

mod tests {
    use super::super::axioms;
    use super::super::fuzz::{CLASSES, DEPENDENT, Random, generate};
    use super::super::litmus::TABLE;
    use super::*;
    use std::path::PathBuf;
    use std::process::Command;

    /// Reads a file back. Each line has to be one of those that herd7's grammar of C has for it.
    fn import(text: &str) -> Option<Program> {
        let mut program = Program::new();
        let (head, body) = text.split_once("}\n\n")?;
        let zeros = |item: &str| {
            item.trim().strip_prefix('[')?.split_once("]=").map(|(a, b)| (a.to_owned(), b.to_owned()))
        };
        let items = head.split_once('{')?.1.split(';').filter(|item| !item.trim().is_empty());
        let initial: BTreeMap<String, String> = items.map(zeros).collect::<Option<_>>()?;
        for line in body.lines().map(str::trim) {
            let Some(ops) = program.last_mut().filter(|_| !line.starts_with('P')) else {
                line.starts_with('P').then(|| program.push(Vec::new()))?;
                continue;
            };
            if line.starts_with("locations") {
                break;
            }
            if !line.is_empty() && line != "}" {
                ops.push(operation(line, &initial)?);
            }
        }
        Some(program)
    }

    fn operation(line: &str, initial: &BTreeMap<String, String>) -> Option<Op> {
        let register = |text: &str| text.strip_prefix('r')?.parse().ok();
        if let Some(condition) = line.strip_prefix("if (") {
            let (read, value) = condition.strip_suffix(") {")?.split_once(" == ")?;
            return Some(Op::If(register(read)?, value.parse().ok()?));
        }
        let call = line.split_once(" = ").map_or(line, |(_, call)| call);
        let (name, arguments) = call.strip_suffix(");")?.split_once('(')?;
        let arguments: Vec<&str> = arguments.split(", ").collect();
        let order = |text: &str| ORDERS.iter().find(|(_, name)| *name == text).map(|(order, _)| *order);
        let word = |text: &str| WORDS.iter().position(|word| *word == text);
        let orders = (
            order(arguments[arguments.len() - 1])?,
            arguments.iter().rev().nth(1).and_then(|text| order(text)),
        );
        Some(match (name, arguments.as_slice()) {
            ("atomic_thread_fence", [_]) => Op::Fence(orders.0),
            ("atomic_load_explicit", [x, _]) => Op::Load(word(x)?, orders.0),
            ("atomic_store_explicit", [x, value, _]) => match register(value) {
                Some(read) => Op::Copy(word(x)?, read, orders.0),
                None => Op::Store(word(x)?, value.parse().ok()?, orders.0),
            },
            ("atomic_exchange_explicit", [x, value, _]) => Op::Swap(word(x)?, value.parse().ok()?, orders.0),
            ("atomic_fetch_add_explicit", [x, value, _]) => Op::Add(word(x)?, value.parse().ok()?, orders.0),
            (_, [x, expected, new, _, _]) => Op::Cas {
                x: word(x)?,
                expected: initial.get(*expected)?.parse().ok()?,
                new: new.parse().ok()?,
                success: orders.1?,
                failure: orders.0,
                weak: match name {
                    "atomic_compare_exchange_weak_explicit" => true,
                    "atomic_compare_exchange_strong_explicit" => false,
                    _ => return None,
                },
            },
            _ => return None,
        })
    }

    #[test]
    fn a_file_says_what_the_program_does() {
        let mut random = Random(3);
        let classes = [CLASSES, DEPENDENT].concat();
        let mut program = |n: usize| generate(&mut random, classes[n % classes.len()]);
        let some: Vec<_> = (0..500).map(|n| ("random".to_owned(), program(n))).collect();
        for (name, program) in
            TABLE.iter().map(|litmus| (litmus.name.to_owned(), litmus.program())).chain(some)
        {
            let text = export(&name, &program);
            assert_eq!(text.matches('{').count(), text.matches('}').count(), "{text}");
            assert!(import(&text).as_ref() == Some(&program), "{program:?} is not what is written:\n{text}");
        }
    }

    #[test]
    fn states_are_outcomes() {
        let program = vec![
            vec![Op::Load(0, Relaxed), Op::If(0, 1), Op::Load(0, Relaxed)],
            vec![Op::Cas { x: 0, expected: 0, new: 1, success: Relaxed, failure: Relaxed, weak: true }],
        ];
        let printed = "Test T Allowed\nStates 2\n0:r0=0; 0:r1=0; 1:r0=1; [e10]=0; [x]=1;\n\
                       0:r0=1; 0:r1=1; 1:r0=0; [e10]=0; [x]=1;\nOk\n";
        let found = outcomes(&program, printed).expect("two states");
        let reads: Vec<_> = found.iter().map(|outcome| outcome.reads.clone()).collect();
        assert_eq!(reads, [vec![vec![0], vec![0]], vec![vec![1, 1], vec![FAILED]]]);
        assert_eq!(outcomes(&program, "States 1\n0:r0=0;\n"), None, "a register is missing");
    }

    /// What herd7's RC11 says otherwise, and why.
    const OTHERWISE: &[(&str, &str)] = &[(
        "RS+store",
        "herd7's rc11.cat has the release sequences of C++17, which a store of the same thread continues; C++20 \
         (P0982) has not",
    )];

    /// Writes the table as files to the directory `ULOCKS_VM_LITMUS`, if that is set, and lets
    /// `ULOCKS_VM_HERD7`, if that is set, say what it makes of them.
    #[test]
    fn herd7_says_the_same_if_it_is_there() {
        let Some(directory) = std::env::var_os("ULOCKS_VM_LITMUS").map(PathBuf::from) else {
            println!("not written: ULOCKS_VM_LITMUS names no directory");
            return;
        };
        let herd = std::env::var_os("ULOCKS_VM_HERD7");
        std::fs::create_dir_all(&directory).unwrap();
        let mut wrong = Vec::new();
        for litmus in TABLE {
            let program = litmus.program();
            let path = directory.join(format!("{}.litmus", litmus.name));
            std::fs::write(&path, export(litmus.name, &program)).unwrap();
            let Some(herd) = &herd else { continue };
            let mut run = Command::new(herd);
            let output = run.args(["-model", "rc11.cat"]).arg(&path).output().expect("herd7 runs");
            let printed = String::from_utf8_lossy(&output.stdout);
            let Some(theirs) = outcomes(&program, &printed) else {
                wrong.push(format!("{}: {printed}{}", litmus.name, String::from_utf8_lossy(&output.stderr)));
                continue;
            };
            let ours = axioms::outcomes(&program);
            let is_explained = OTHERWISE.iter().any(|(name, _)| *name == litmus.name);
            if (ours == theirs) == is_explained {
                wrong.push(format!("{}: ours {ours:?}, theirs {theirs:?}", litmus.name));
            }
        }
        println!("{} files, {} differ", TABLE.len(), wrong.len());
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
