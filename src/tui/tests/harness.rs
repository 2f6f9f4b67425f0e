//! The loop without a terminal: jobs run at once, everything else is written down.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;

use crate::session::{Effect, Input, Session, WalkInput};
use crate::source::{self, InputSpec, Limits};
use crate::tui::keymap::{Chord, Keymap};
use crate::tui::log::search;
use crate::tui::model::Model;
use crate::tui::msg::{Cmd, Msg};
use crate::tui::source::{analysis, sources};
use crate::tui::theme::{Palette, Theme, UNICODE};
use crate::tui::{update, view};

use super::fixture;

/// A UI under test.
pub struct Ui {
    /// Its model.
    pub model: Model,
    /// What it asked for, jobs left out.
    pub asked: Vec<Cmd>,
    /// The engine, where keys of the walk reach one.
    pub session: Option<Session>,
    now: Duration,
}

impl Ui {
    /// An empty screen.
    pub fn new(width: u16, height: u16) -> Self {
        let theme = Theme { palette: Palette::Dark, wide_colours: true, glyphs: &UNICODE };
        let model = Model::new(Rect::new(0, 0, width, height), theme, Keymap::default());
        Self { model, asked: Vec::new(), session: None, now: Duration::ZERO }
    }

    /// The incident of the fixture, read.
    pub fn read(width: u16, height: u16) -> Self {
        let mut ui = Self::loading(width, height);
        ui.load();
        let generation = ui.model.generation;
        let sources = vec![fixture::source(), fixture::kernel_log()];
        ui.send(Msg::Analysed { generation, sources, analysis: Box::new(fixture::analysis()) });
        ui
    }

    /// Inputs, read by the engine, which also carries the walk on.
    pub fn engine(width: u16, height: u16, specs: Vec<InputSpec>) -> Self {
        let mut ui = Self::loading(width, height);
        ui.session = Some(Session::new());
        ui.tell(Input::Loaded(source::load(&specs, Limits::default())));
        ui
    }

    /// Tells the engine something and shows what it makes of it; its effects come back.
    pub fn tell(&mut self, input: Input) -> Vec<Effect> {
        let session = self.session.as_mut().unwrap();
        let effects = session.apply(input);
        let (sources, analysis) = (sources(session), Box::new(analysis(session)));
        let generation = self.model.generation;
        self.send(Msg::Analysed { generation, sources, analysis });
        self.send(Msg::Effects { generation, effects: effects.clone() });
        effects
    }

    /// The incident of the fixture, its inputs being opened.
    pub fn loading(width: u16, height: u16) -> Self {
        let mut ui = Self::new(width, height);
        let commands = update::open(&mut ui.model, vec![InputSpec::Path("logs".into())], false);
        ui.carry_out(commands);
        ui
    }

    /// Its inputs are open.
    pub fn load(&mut self) {
        let generation = self.model.generation;
        self.send(Msg::Loaded {
            generation,
            sources: vec![fixture::source(), fixture::kernel_log()],
            progress: Default::default(),
        });
    }

    /// Sends a message, 10 ms after the last one.
    pub fn send(&mut self, msg: Msg) {
        self.now += Duration::from_millis(10);
        let commands = update::update(&mut self.model, msg, self.now);
        self.carry_out(commands);
    }

    fn carry_out(&mut self, commands: Vec<Cmd>) {
        for command in commands {
            match command {
                Cmd::Index { generation, source, bytes, mut index } => {
                    while !index.step(&bytes) {}
                    self.send(Msg::Indexed { generation, source, index });
                }
                Cmd::Search { id, bytes, mut from, pattern } => loop {
                    let (lines, searched) = search::step(&pattern, &bytes, from);
                    let done = searched >= bytes.len();
                    from = searched;
                    self.send(Msg::Found { id, lines, searched, done });
                    if done {
                        break;
                    }
                },
                Cmd::Filter { id, bytes, mut run } => {
                    let (lines, to) = run.step(&bytes, 0);
                    self.send(Msg::Filtered { id, lines, done: to >= bytes.len() });
                }
                Cmd::Apply(input) if self.session.is_some() => {
                    let effects = self.tell(*input);
                    let generation = self.model.generation;
                    for effect in effects {
                        if let Effect::Run(approved) = effect {
                            let step = approved.proposal().step.clone();
                            let deadline = Duration::from_secs(approved.proposal().deadline_s);
                            self.send(Msg::Started { generation, step, deadline });
                        }
                    }
                }
                Cmd::Feed { step, spec } if self.session.is_some() => {
                    let output = source::load(&[spec], Limits::default());
                    self.tell(Input::Walk(WalkInput::Feed { step, output }));
                }
                other => self.asked.push(other),
            }
        }
    }

    /// Presses keys: names of the key table, separated by blanks; `'text'` is typed.
    pub fn press(&mut self, keys: &str) -> &mut Self {
        for word in keys.split(' ').filter(|word| !word.is_empty()) {
            match word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
                Some(text) => {
                    text.chars().for_each(|c| self.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)))
                }
                None => self.key(Chord::parse(word).unwrap_or_else(|| panic!("no key {word}")).event()),
            }
        }
        self
    }

    /// Presses a key.
    pub fn key(&mut self, key: KeyEvent) {
        self.send(Msg::Key(key));
    }

    /// Whether leaving was asked for.
    pub fn left(&self) -> bool {
        self.asked.iter().any(|command| matches!(command, Cmd::Quit))
    }

    /// The screen.
    pub fn frame(&self) -> TestBackend {
        let backend = TestBackend::new(self.model.size.width, self.model.size.height);
        let mut terminal = Terminal::new(backend).unwrap();
        terminal.draw(|frame| view::draw(&self.model, frame)).unwrap();
        terminal.backend().clone()
    }

    /// The screen as text.
    pub fn text(&self) -> String {
        self.frame().to_string()
    }
}
