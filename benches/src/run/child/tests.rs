use super::*;
use crate::subjects::semaphores::kernel_set::SemSet;
use std::env::{args, current_exe};
use std::process::exit;
use ulocks_testkit::limit::output;

const TEST: &str = "run::child::tests::a_trial_answers_or_goes_and_leaves_nothing";
/// The test again, alone. A filter that fits no test says whether as the program or as a trial.
const AS_PROGRAM: [&str; 5] = ["--exact", TEST, "as-program", "--nocapture", "--test-threads=1"];
const AS_TRIAL: [&str; 5] = ["--exact", TEST, "as-trial", "--nocapture", "--test-threads=1"];

/// What a trial does that is ordered so.
fn carry_out(order: &str) -> Result<String> {
    match order {
        "answer" => return Ok("7".into()),
        "fail" => bail!("no more threads"),
        // SAFETY: no pointers are involved.
        "die" => _ = unsafe { libc::raise(libc::SIGKILL) },
        _ => {}
    }
    let (set, mut worker) = (SemSet::new(&[1])?, Command::new("sleep").arg("600").spawn()?);
    match order {
        "leave a worker" => return Ok("7".into()),
        // SAFETY: no pointers are involved; the parent is the runner.
        "interrupt" => _ = unsafe { libc::kill(libc::getppid(), libc::SIGINT) },
        _ => eprintln!("I hang; my set is {}", set.id()),
    }
    bail!("nothing ends it but {}", worker.wait()?)
}

/// A runner adopts, blocks and reaps what other tests would miss: hence a process for it.
#[test]
fn a_trial_answers_or_goes_and_leaves_nothing() {
    let is = |filter: &str| args().any(|argument| argument == filter);
    if is(AS_PROGRAM[2]) {
        runs_probes();
    } else if is(AS_TRIAL[2]) {
        // What the harness has written is no answer.
        io::stdout().flush().unwrap();
        // SAFETY: the calls touch no memory.
        assert_eq!(unsafe { (libc::ftruncate(1, 0), libc::lseek(1, 0, libc::SEEK_SET)) }, (0, 0));
        exit(i32::from(serve(carry_out) != ExitCode::SUCCESS));
    } else {
        let mut command = Command::new(current_exe().unwrap());
        // The harness has another thread, which must not take the signal. A shell ignores it for
        // what it starts in the background, and an ignored signal would interrupt nothing.
        let block = || {
            // SAFETY: the set is initialised, the old mask and the old action are not wanted; both
            // are async-signal-safe.
            unsafe {
                libc::sigprocmask(libc::SIG_BLOCK, &signals([libc::SIGINT]), ptr::null_mut());
                libc::signal(libc::SIGINT, libc::SIG_DFL);
            }
            Ok(())
        };
        // SAFETY: `block` allocates nothing and takes no lock.
        unsafe { command.args(AS_PROGRAM).pre_exec(block) };
        let output = output(&mut command);
        assert!(output.status.success(), "{output:?}");
    }
}

fn runs_probes() {
    let runner = Runner { arguments: &AS_TRIAL, ..Runner::new().unwrap() };
    let run = |order| {
        let outcome = runner.run(order, Duration::from_secs(if order == "hang" { 1 } else { 60 }));
        // SAFETY: a null status pointer is allowed.
        let child = unsafe { libc::waitpid(-1, ptr::null_mut(), libc::WNOHANG) };
        assert_eq!((child, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::ECHILD)));
        outcome
    };
    assert!(matches!(run("answer"), Ok(Outcome::Done(answer)) if answer == "7"));
    assert!(matches!(run("interrupt"), Ok(Outcome::Interrupted(libc::SIGINT))));
    let said = run("leave a worker").unwrap_err().to_string();
    assert_eq!(said, "1 workers outlived their trial");
    assert_eq!(run("fail").unwrap_err().to_string(), "no more threads");
    let said = run("hang").unwrap_err().to_string();
    let rest = said.strip_prefix("the trial did not end within 1 s and was killed: ").expect(&said);
    let (does, words) = rest.split_once("; it said: I hang; my set is ").expect(&said);
    let set: i32 = words.strip_suffix("; it is hang").expect(&said).parse().unwrap();
    assert!(does.contains(" of its threads wait in "), "{said}");
    // SAFETY: GETVAL takes no fourth argument.
    assert_eq!(unsafe { libc::semctl(set, 0, libc::GETVAL) }, -1, "the set is there yet");
    assert_eq!(run("die").unwrap_err().to_string(), "the trial ended with signal: 9 (SIGKILL)");
}
