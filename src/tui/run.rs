//! The loop: events in, `update`, commands out, a frame where something changed.
//!
//! In: options and the environment. Out: an exit status. All I/O of the UI is here, in `terminal` and in `work`.

mod effects;
mod events;
mod settings;

use std::io::{self, Write};
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, select};
use crossterm::event::Event;
use ratatui::layout::Rect;

use crate::error::{Error, ErrorKind, Result};
use crate::source::InputSpec;

use super::model::{Model, Origin};
use super::msg::Msg;
use super::terminal::{self, Screen};
use super::theme::Theme;
use super::update;
use super::view;
use super::work::Work;
use events::Keyboard;
use settings::Settings;

/// What to open, and how.
#[derive(Debug, Clone, Default)]
pub struct TuiOptions {
    /// What to open; empty for an incident that waits for a paste.
    pub inputs: Vec<InputSpec>,
    /// A saved incident to take up instead, by id.
    pub resume: Option<String>,
    /// Go on reading as the inputs grow.
    pub follow: bool,
    /// `dark`, `light` or `mono`; none to see from the environment.
    pub theme: Option<String>,
    /// Leave the mouse to the terminal.
    pub no_mouse: bool,
}

/// How long a signal may wait while nothing moves.
const IDLE: Duration = Duration::from_millis(200);
/// Most answers taken in before the next frame.
const ANSWERS: usize = 256;
/// Time between two frames that only show that time passes.
const TICK: Duration = Duration::from_millis(100);

/// Runs the UI until it is left.
///
/// # Errors
/// The terminal can't be taken or written.
pub fn run(options: TuiOptions) -> Result<u8> {
    let settings = Settings::read(&options);
    let broken = |error: io::Error| {
        Error::new(ErrorKind::Output, "the terminal could not be used")
            .hint("warpfault analyze prints the report without a terminal")
            .because(error)
    };
    terminal::listen().map_err(broken)?;
    let mut screen = Screen::take(settings.mouse).map_err(broken)?;
    let keyboard = Keyboard::listen().map_err(broken)?;
    let (width, height) = screen.size().map_err(broken)?;
    let theme = Theme::choose(&settings.surroundings);
    let mut model = Model::new(Rect::new(0, 0, width, height), theme, settings.keymap.clone());
    model.mouse = settings.mouse;
    model.home.clone_from(&settings.home);
    if let Some(fault) = settings.faults.first() {
        model.say(crate::text::escape(fault).to_string());
    }
    let ended = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let mut ui = Ui::new(&mut screen, &keyboard, &mut model, &settings);
        ui.open(options);
        let ended = ui.run();
        if ui.model.incident.as_ref().is_some_and(|incident| incident.run.is_some()) {
            ui.work.close();
        }
        ended
    }));
    drop(screen);
    match ended {
        Ok(Ok(None)) => {
            tell_kept(&model);
            Ok(0)
        }
        Ok(Ok(Some(signal))) => {
            keep(&model, &settings);
            terminal::end_by(signal);
            Ok(2)
        }
        Ok(Err(error)) => {
            keep(&model, &settings);
            Err(broken(error))
        }
        Err(_) => {
            let kept = keep(&model, &settings);
            let error = Error::new(ErrorKind::Output, "the UI failed, which is a fault of warpfault");
            Err(match kept {
                Some(path) => error.hint(format!("what you pasted is in {}", path.display())),
                None => match model.incident.as_ref().and_then(|incident| incident.kept.as_ref()) {
                    Some(id) => error.hint(format!("the incident is saved: warpfault resume {id}")),
                    None => error
                        .hint("your inputs are as they were; warpfault analyze reads them without the UI"),
                },
            })
        }
    }
}

/// How to go on with the incident another time.
fn tell_kept(model: &Model) {
    if let Some(id) = model.incident.as_ref().and_then(|incident| incident.kept.as_ref()) {
        // The UI is over; where nobody can read this, nothing is lost.
        let _ =
            writeln!(anstream::stderr(), "The incident is saved. To go on with it: warpfault resume {id}");
    }
}

/// A paste that isn't on disk is put there before the program ends by force.
fn keep(model: &Model, settings: &Settings) -> Option<std::path::PathBuf> {
    let incident = model.incident.as_ref().filter(|incident| incident.is_unsaved())?;
    let Origin::Pasted(text) = &incident.origin else { return None };
    effects::save(None, text, settings).ok()
}

struct Ui<'a> {
    screen: &'a mut Screen,
    keyboard: &'a Keyboard,
    model: &'a mut Model,
    settings: &'a Settings,
    begun: Instant,
    work: Work,
    answers: Receiver<Msg>,
    ended: bool,
}

impl<'a> Ui<'a> {
    fn new(
        screen: &'a mut Screen,
        keyboard: &'a Keyboard,
        model: &'a mut Model,
        settings: &'a Settings,
    ) -> Self {
        let (sender, answers) = crossbeam_channel::unbounded();
        let work = Work::new(sender);
        Self { screen, keyboard, model, settings, begun: Instant::now(), work, answers, ended: false }
    }

    fn open(&mut self, options: TuiOptions) {
        self.model.now = self.begun.elapsed();
        let commands = match options.resume {
            Some(id) => update::resume(self.model, id),
            None if options.inputs.is_empty() => {
                effects::find_picks(&self.work, self.settings);
                return;
            }
            None => update::open(self.model, options.inputs, options.follow),
        };
        for command in commands {
            // Opening asks for nothing that can fail here.
            let _ = effects::carry_out(self, command);
        }
    }

    /// Runs until the UI is left; a signal that ended it comes back.
    fn run(&mut self) -> io::Result<Option<i32>> {
        let mut ticked = Instant::now();
        let mut changed = true;
        loop {
            if let Some(signal) = terminal::ending() {
                return Ok(Some(signal));
            }
            if changed {
                let model = &*self.model;
                self.screen.draw(|frame| view::draw(model, frame))?;
            }
            changed = self.react_to_stops()?;
            changed |= self.wait_and_take(if self.model.is_busy() { TICK } else { IDLE })?;
            if self.model.is_busy() && ticked.elapsed() >= TICK {
                ticked = Instant::now();
                self.take(Msg::Tick)?;
                changed = true;
            }
            if self.ended {
                return Ok(None);
            }
        }
    }

    /// Waits for keys or answers, and takes in all that are there: one frame shows them together. Keys come first, so that
    /// no flood of answers delays them.
    fn wait_and_take(&mut self, time: Duration) -> io::Result<bool> {
        let mut changed = false;
        let gone = || io::Error::other("the keyboard can't be read any more");
        select! {
            recv(self.keyboard.events) -> batch => {
                self.take_events(batch.map_err(|_| gone())?)?;
                changed = true;
            }
            recv(self.answers) -> msg => {
                if let Ok(msg) = msg {
                    self.take(msg)?;
                    changed = true;
                }
            }
            default(time) => {}
        }
        for _ in 0..ANSWERS {
            if let Ok(batch) = self.keyboard.events.try_recv() {
                self.take_events(batch)?;
            } else if let Ok(msg) = self.answers.try_recv() {
                self.take(msg)?;
            } else {
                break;
            }
        }
        Ok(changed)
    }

    fn take_events(&mut self, batch: Vec<Event>) -> io::Result<()> {
        for msg in events::messages(batch, self.model.incident.is_none()) {
            self.take(msg)?;
        }
        Ok(())
    }

    fn react_to_stops(&mut self) -> io::Result<bool> {
        let (stop, continued) = terminal::stops();
        let stop = stop && terminal::has_shell();
        if stop {
            self.screen.suspend()?;
        }
        if stop || continued {
            self.screen.again()?;
            self.take_size()?;
        }
        Ok(stop || continued)
    }

    /// The terminal may have changed its size while it wasn't ours.
    fn take_size(&mut self) -> io::Result<()> {
        let (width, height) = self.screen.size()?;
        self.take(Msg::Resize(width, height))
    }

    fn take(&mut self, msg: Msg) -> io::Result<()> {
        let commands = update::update(self.model, msg, self.begun.elapsed());
        for command in commands {
            effects::carry_out(self, command)?;
        }
        Ok(())
    }

    fn end(&mut self) {
        self.ended = true;
    }
}
