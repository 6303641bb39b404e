//! `pathweave paper`: the evaluation of a publication, run again.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration as Wall, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use pathweave_paper::{
    Catalogue, Destination, Look, PaperError, Plan, Settings, Size, claims_text, json, rankings_text,
    verdicts,
};
use pathweave_sim::{Control, Monitor, Snapshot};
use serde::Serialize;

use crate::args::PaperArgs;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::progress::clock;
use crate::terminal;

pub(crate) fn paper(args: &PaperArgs) -> Result<Outcome, Failure> {
    let catalogue = match &args.papers {
        Some(folder) => Catalogue::read(folder).map_err(failure)?,
        None => Catalogue::embedded(),
    };
    if args.name == "list" {
        return list(&catalogue, args.json);
    }
    let paper = catalogue.paper(&args.name).map_err(failure)?;
    let size = if args.full { Size::Full } else { Size::Quick };
    let plan = Plan::new(paper, args.figure.as_deref(), size, args.seeds).map_err(failure)?;
    let destination = Destination::create(&args.out.join(&args.name)).map_err(failure)?;
    let interrupt = Interrupt::listen()?;
    let (plan, finished) = run_all(plan, args, &interrupt)?;
    let outcome = if finished { Outcome::Done } else { Outcome::Interrupted };

    let verdicts = verdicts(&plan);
    let settings = Settings {
        command: command(args, size),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        partial: !finished,
    };
    destination.write(&plan, &verdicts, &settings).map_err(failure)?;
    if args.json {
        terminal::out(&json(&verdicts));
    } else if !args.quiet {
        let page = args.out.join(&args.name).join("index.html");
        let text = format!("{}{}\npage: {}\n", claims_text(&verdicts), rankings_text(&plan), page.display());
        terminal::out(&text);
    }
    Ok(outcome)
}

/// The same results again.
fn command(args: &PaperArgs, size: Size) -> String {
    let mut text = format!("pathweave paper {} {}", args.name, size.flag());
    if let Some(figure) = &args.figure {
        text.push_str(&format!(" --figure {figure}"));
    }
    if let Some(seeds) = args.seeds {
        text.push_str(&format!(" --seeds {seeds}"));
    }
    text
}

fn list(catalogue: &Catalogue, as_json: bool) -> Result<Outcome, Failure> {
    #[derive(Serialize)]
    struct Entry {
        name: String,
        title: String,
        citation: String,
        figures: Vec<Item>,
    }
    #[derive(Serialize)]
    struct Item {
        id: String,
        title: String,
        claims: usize,
    }
    let mut entries = Vec::new();
    for name in catalogue.names() {
        let paper = catalogue.paper(name).map_err(failure)?;
        let figures = paper.figures.iter().map(|figure| Item {
            id: figure.id.clone(),
            title: figure.file.title.clone(),
            claims: figure.file.claim.len(),
        });
        let figures = figures.collect();
        entries.push(Entry {
            name: name.to_owned(),
            title: paper.file.title,
            citation: paper.file.citation,
            figures,
        });
    }
    if as_json {
        terminal::out(&super::json(&entries));
        return Ok(Outcome::Done);
    }
    for entry in entries {
        terminal::out(&format!("{}: {}\n  {}\n", entry.name, entry.title, entry.citation));
        for item in entry.figures {
            terminal::out(&format!("  {:<10} {}\n", item.id, item.title));
        }
    }
    Ok(Outcome::Done)
}

fn failure(why: PaperError) -> Failure {
    match why {
        PaperError::Scenario { findings, .. } => Failure::Scenario(findings),
        PaperError::Plot { .. } => Failure::Internal(why.to_string()),
        other => Failure::Input(other.to_string()),
    }
}

/// Runs what `plan` asks for, `jobs` at a time. Whether all of it ran.
fn run_all(mut plan: Plan, args: &PaperArgs, interrupt: &Interrupt) -> Result<(Plan, bool), Failure> {
    let next = AtomicUsize::new(0);
    let looks: Mutex<Vec<Result<Look, Failure>>> = Mutex::new(Vec::new());
    let progress = Progress::new(&plan, args.quiet);
    // The longest first, so that none is left alone at the end.
    let mut order: Vec<usize> = (0..plan.runs.len()).collect();
    order.sort_by(|&a, &b| plan.runs[b].cost.total_cmp(&plan.runs[a].cost).then(a.cmp(&b)));
    let work = || {
        while let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if interrupt.requested() {
                return;
            }
            let look = run_one(&plan, index, &progress, interrupt);
            looks.lock().expect("no thread panics while it holds the lock").extend(look.transpose());
        }
    };
    std::thread::scope(|scope| {
        let threads = usize::from(args.jobs).min(order.len());
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    progress.finish();
    let looks = looks.into_inner().expect("every thread has ended well");
    let finished = looks.len() == plan.runs.len();
    for look in looks {
        plan.record(look?);
    }
    Ok((plan, finished))
}

/// `None` if it was interrupted: half a run says nothing.
fn run_one(
    plan: &Plan,
    index: usize,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<Option<Look>, Failure> {
    let run = &plan.runs[index];
    let prepared = run.loaded.prepare()?;
    let until_ps = prepared.spec.stop.until.map(pathweave_scenario::units::Duration::as_ps);
    let mut watcher = Watcher { index, progress, interrupt, until_ps };
    let result = pathweave_sim::run(&prepared.spec, &mut watcher);
    let result = result.map_err(|why| Failure::Scenario(run.loaded.sim_error(&why)))?;
    progress.update(index, None);
    if result.info.ended == pathweave_results::EndReason::Interrupted {
        return Ok(None);
    }
    Ok(Some(plan.look(index, &result)))
}

struct Watcher<'a> {
    index: usize,
    progress: &'a Progress,
    interrupt: &'a Interrupt,
    until_ps: Option<u64>,
}

impl Monitor for Watcher<'_> {
    fn look(&mut self, at: &Snapshot) -> Control {
        let of_bytes = at.bytes_done as f64 / (at.bytes_total as f64).max(1.0);
        let of_time = self.until_ps.map_or(0.0, |until| at.now.as_ps() as f64 / until as f64);
        self.progress.update(self.index, Some(of_bytes.max(of_time).min(1.0)));
        if self.interrupt.requested() { Control::Stop } else { Control::Continue }
    }
}

/// How far all runs are together.
struct Progress {
    costs: Vec<f64>,
    labels: Vec<String>,
    started: Instant,
    bar: Option<ProgressBar>,
    state: Mutex<State>,
    quiet: bool,
}

struct State {
    done: f64,
    finished: usize,
    running: BTreeMap<usize, f64>,
    next_line: Instant,
}

/// Time between lines where there is no terminal.
const LINE_EVERY: Wall = Wall::from_secs(5);
const BAR_STEPS: u64 = 1_000;

impl Progress {
    fn new(plan: &Plan, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{bar:24} {wide_msg}").expect("the template is valid");
            ProgressBar::new(BAR_STEPS).with_style(style.progress_chars("=> "))
        });
        let started = Instant::now();
        let state =
            State { done: 0.0, finished: 0, running: BTreeMap::new(), next_line: started + LINE_EVERY };
        Progress {
            costs: plan.runs.iter().map(|run| run.cost).collect(),
            labels: plan.runs.iter().map(|run| run.label.clone()).collect(),
            started,
            bar,
            state: Mutex::new(state),
            quiet,
        }
    }

    /// So much of run `index` is done; `None`: it is over.
    fn update(&self, index: usize, part: Option<f64>) {
        if self.quiet {
            return;
        }
        let mut state = self.state.lock().expect("no thread panics while it holds the lock");
        match part {
            Some(part) => {
                state.running.insert(index, part);
            }
            None => {
                state.running.remove(&index);
                state.done += self.costs[index];
                state.finished += 1;
            }
        }
        let running: f64 = state.running.iter().map(|(&run, part)| self.costs[run] * part).sum();
        let share = (state.done + running) / self.costs.iter().sum::<f64>().max(1.0);
        let now = Instant::now();
        if self.bar.is_none() && now < state.next_line {
            return;
        }
        state.next_line = now + LINE_EVERY;
        let elapsed = now.saturating_duration_since(self.started);
        let left = if share > 0.0 {
            clock(Wall::from_secs_f64(elapsed.as_secs_f64() * (1.0 - share).max(0.0) / share))
        } else {
            "-:--".to_owned()
        };
        let (finished, runs) = (state.finished, self.costs.len());
        let label = &self.labels[index];
        let line = format!("{:>3.0} %  {finished} of {runs} runs  {left} left  {label}", share * 100.0);
        match &self.bar {
            Some(bar) => {
                bar.set_position((share * BAR_STEPS as f64) as u64);
                bar.set_message(line);
            }
            None => terminal::note(&line),
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if !self.quiet {
            let finished = self.state.lock().expect("no thread panics while it holds the lock").finished;
            terminal::note(&format!("{finished} runs in {}", clock(self.started.elapsed())));
        }
    }
}
