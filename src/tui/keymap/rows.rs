//! The rows of the key table.
//!
//! In: nothing. Out: [`ROWS`]: the only place where a key, its action and its words are written.

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Quit,
    Back,
    Interrupt,
    Help,
    Command,
    NextPane,
    PreviousPane,
    Pane1,
    Pane2,
    Pane3,
    Pane4,
    Pane5,
    Zoom,
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    Top,
    Bottom,
    Left,
    Right,
    LineStart,
    Open,
    Copy,
    CopyReport,
    Edit,
    Search,
    NextMatch,
    PreviousMatch,
    NextFailure,
    PreviousFailure,
    Wrap,
    FilterRank,
    FilterKind,
    Filter,
    ClearFilter,
    NextInput,
    PreviousInput,
    Act,
    Skip,
    Reopen,
    Change,
    Outcome,
    Feed,
    OtherPlaybook,
    Repro,
    EndRun,
    Mouse,
    Theme,
    Suspend,
    Redraw,
}

/// Where a row works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// In every pane.
    Everywhere,
    /// In verdict, evidence and ranks.
    List,
    /// In the playbook.
    Playbook,
    /// In the log.
    Log,
}

/// A row of the table.
#[derive(Debug)]
pub struct Row {
    /// The action.
    pub action: Action,
    /// Its name in configuration.
    pub name: &'static str,
    /// Default keys.
    pub keys: &'static [&'static str],
    /// Where it works.
    pub scope: Scope,
    /// What it does, in a few words.
    pub help: &'static str,
}

const fn row(
    action: Action,
    name: &'static str,
    keys: &'static [&'static str],
    scope: Scope,
    help: &'static str,
) -> Row {
    Row { action, name, keys, scope, help }
}

use Scope::{Everywhere, Log, Playbook};

/// The table.
pub static ROWS: &[Row] = &[
    row(Action::Down, "down", &["j", "down"], Everywhere, "down"),
    row(Action::Up, "up", &["k", "up"], Everywhere, "up"),
    row(Action::HalfDown, "half-down", &["ctrl-d"], Everywhere, "half a page down"),
    row(Action::HalfUp, "half-up", &["ctrl-u"], Everywhere, "half a page up"),
    row(Action::PageDown, "page-down", &["space", "pgdn", "ctrl-f"], Everywhere, "a page down"),
    row(Action::PageUp, "page-up", &["b", "pgup", "ctrl-b"], Everywhere, "a page up"),
    row(Action::Top, "top", &["g", "home"], Everywhere, "to the first line"),
    row(Action::Bottom, "bottom", &["G", "end"], Everywhere, "to the last line"),
    row(
        Action::Open,
        "open",
        &["enter"],
        Everywhere,
        "the log line behind this; in the log: its evidence; a step: do it",
    ),
    row(Action::Back, "back", &["esc", "backspace", "ctrl-o"], Everywhere, "back: close, clear, return"),
    row(Action::NextPane, "next-pane", &["tab"], Everywhere, "next pane"),
    row(Action::PreviousPane, "previous-pane", &["shift-tab"], Everywhere, "previous pane"),
    row(Action::Pane1, "pane-1", &["1"], Everywhere, "verdict"),
    row(Action::Pane2, "pane-2", &["2"], Everywhere, "evidence"),
    row(Action::Pane3, "pane-3", &["3"], Everywhere, "ranks"),
    row(Action::Pane4, "pane-4", &["4"], Everywhere, "playbook: the steps, one key each"),
    row(Action::Pane5, "pane-5", &["5"], Everywhere, "log"),
    row(Action::Zoom, "zoom", &["z"], Everywhere, "this pane alone, or all of them"),
    row(Action::NextFailure, "next-failure", &["m", "}"], Everywhere, "log: next marked failure"),
    row(Action::PreviousFailure, "previous-failure", &["M", "{"], Everywhere, "log: previous marked failure"),
    row(Action::Search, "search", &["/"], Everywhere, "search the log (regular expression)"),
    row(Action::NextMatch, "next-match", &["n"], Everywhere, "next match"),
    row(Action::PreviousMatch, "previous-match", &["N"], Everywhere, "previous match"),
    row(Action::Left, "left", &["h", "left"], Log, "scroll left"),
    row(Action::Right, "right", &["l", "right"], Log, "scroll right"),
    row(Action::LineStart, "line-start", &["0"], Log, "to the start of the line"),
    row(Action::Wrap, "wrap", &["w", "ctrl-w"], Log, "wrap long lines, or cut them"),
    row(Action::FilterRank, "filter-rank", &["r"], Log, "only one rank: next rank, then all"),
    row(Action::FilterKind, "filter-kind", &["t"], Log, "only one kind of evidence: next kind, then all"),
    row(Action::Filter, "filter", &["f"], Log, "only lines that match (! in front: that don't)"),
    row(Action::ClearFilter, "clear-filter", &["F"], Log, "all lines again"),
    row(Action::NextInput, "next-input", &["]"], Log, "next input"),
    row(Action::PreviousInput, "previous-input", &["["], Log, "previous input"),
    row(Action::Act, "act", &["r"], Playbook, "do this step: run it (after a yes), answer it, mark it done"),
    row(Action::Skip, "skip", &["s"], Playbook, "skip this step"),
    row(Action::Reopen, "reopen", &["u"], Playbook, "undo: open this step again"),
    row(Action::Change, "change", &["c"], Playbook, "change the command, then run it"),
    row(Action::Outcome, "outcome", &["o"], Playbook, "say which outcome it had"),
    row(Action::Feed, "feed", &["i"], Playbook, "take the log of a run made elsewhere"),
    row(Action::OtherPlaybook, "playbook", &["p"], Playbook, "another playbook"),
    row(Action::Repro, "repro", &["R"], Everywhere, "write a minimal repro (after a yes)"),
    row(Action::EndRun, "end-run", &["x"], Playbook, "end the running command and all that it started"),
    row(Action::Copy, "copy", &["y"], Everywhere, "copy the sentence, command or line in focus"),
    row(Action::CopyReport, "copy-report", &["Y"], Everywhere, "copy the whole report as Markdown"),
    row(Action::Edit, "edit", &["e", "v"], Everywhere, "open the source or log line in $EDITOR"),
    row(Action::Command, "command", &[":"], Everywhere, "a command, Tab completes"),
    row(Action::Help, "help", &["?", "f1"], Everywhere, "this help"),
    row(Action::Mouse, "mouse", &["f2"], Everywhere, "mouse on or off (off: the terminal selects text)"),
    row(Action::Theme, "theme", &["T"], Everywhere, "dark, light, no colours"),
    row(Action::Redraw, "redraw", &["ctrl-l"], Everywhere, "draw the screen again"),
    row(Action::Suspend, "suspend", &["ctrl-z"], Everywhere, "to the shell; fg comes back"),
    row(Action::Interrupt, "interrupt", &["ctrl-c"], Everywhere, "stop the work that runs; else leave"),
    row(Action::Quit, "quit", &["q"], Everywhere, "back, then leave"),
];
