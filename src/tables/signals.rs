//! Signals and exit statuses: numbers, names, and the texts that shells and libraries print for them.
//!
//! In: a number or text. Out: the signal. It leaves alone whose failure an exit status is.

/// A signal that ends a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Number on Linux.
    pub number: u32,
    /// Name.
    pub name: &'static str,
    /// The text that shells and `strsignal` print.
    pub text: &'static str,
}

/// Signals that end processes, by number.
pub const SIGNALS: &[Signal] = &[
    Signal { number: 1, name: "SIGHUP", text: "Hangup" },
    Signal { number: 2, name: "SIGINT", text: "Interrupt" },
    Signal { number: 3, name: "SIGQUIT", text: "Quit" },
    Signal { number: 4, name: "SIGILL", text: "Illegal instruction" },
    Signal { number: 5, name: "SIGTRAP", text: "Trace/breakpoint trap" },
    Signal { number: 6, name: "SIGABRT", text: "Aborted" },
    Signal { number: 7, name: "SIGBUS", text: "Bus error" },
    Signal { number: 8, name: "SIGFPE", text: "Floating point exception" },
    Signal { number: 9, name: "SIGKILL", text: "Killed" },
    Signal { number: 11, name: "SIGSEGV", text: "Segmentation fault" },
    Signal { number: 13, name: "SIGPIPE", text: "Broken pipe" },
    Signal { number: 15, name: "SIGTERM", text: "Terminated" },
];

/// What bash prints in other languages (its own and glibc's translations of [`Signal::text`]), with the signal's number. Only
/// words that hardly stand alone on a line otherwise.
pub const TRANSLATED: &[(&str, u32)] = &[
    ("已杀死", 9),
    ("已砍掉", 9),
    ("强制终止", 9),
    ("強制終了", 9),
    ("Getötet", 9),
    ("Processus arrêté", 9),
    ("Terminado (killed)", 9),
    ("Ucciso", 9),
    ("Убито", 9),
    ("죽었음", 9),
    ("Unicestwiony", 9),
    ("段错误", 11),
    ("記憶體區段錯誤", 11),
    ("程式記憶體區段錯誤", 11),
    ("セグメンテーション違反です", 11),
    ("Speicherzugriffsfehler", 11),
    ("Erreur de segmentation", 11),
    ("Violación de segmento", 11),
    ("Errore di segmentazione", 11),
    ("Falha de segmentação", 11),
    ("Ошибка сегментирования", 11),
    ("세그멘테이션 오류", 11),
    ("Naruszenie ochrony pamięci", 11),
    ("已放弃", 6),
    ("已中止", 6),
    ("アボートしました", 6),
    ("Abgebrochen", 6),
    ("Abortado", 6),
    ("Annullato", 6),
    ("Аварийный останов", 6),
    ("중단됨", 6),
    ("非法指令", 4),
    ("不正な命令です", 4),
    ("Ungültiger Maschinenbefehl", 4),
    ("Instruction non permise", 4),
    ("Instrucción ilegal", 4),
    ("Istruzione non consentita", 4),
    ("Instrução ilegal", 4),
    ("Недопустимая инструкция", 4),
    ("잘못된 명령어", 4),
];

/// The number of a signal whose translated text `word` is.
#[must_use]
pub fn of_translation(word: &str) -> Option<u32> {
    TRANSLATED.iter().find(|(text, _)| *text == word).map(|(_, number)| *number)
}

/// The signal of a number.
#[must_use]
pub fn by_number(number: u32) -> Option<&'static Signal> {
    SIGNALS.iter().find(|signal| signal.number == number)
}

/// The signal of a name such as `SIGSEGV`.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Signal> {
    SIGNALS.iter().find(|signal| signal.name == name)
}

/// The first name of a signal in `text`.
#[must_use]
pub fn name_in(text: &str) -> Option<&'static Signal> {
    let mut rest = text;
    while let Some(at) = rest.find("SIG") {
        rest = rest.get(at..)?;
        let len = rest.bytes().take_while(u8::is_ascii_uppercase).count();
        if let Some(signal) = rest.get(..len).and_then(by_name) {
            return Some(signal);
        }
        rest = rest.get(3..)?;
    }
    None
}

/// The signal whose text stands first in `text`, in any case (`segmentation fault`, `Bus error`). Only signals that a
/// fault or an abort raises, and kills.
#[must_use]
pub fn text_in(text: &str) -> Option<&'static Signal> {
    let lower = text.to_ascii_lowercase();
    SIGNALS
        .iter()
        .filter(|signal| !matches!(signal.number, 1 | 2 | 3 | 13))
        .filter_map(|signal| Some((lower.find(&signal.text.to_ascii_lowercase())?, signal)))
        .min_by_key(|(at, _)| *at)
        .map(|(_, signal)| signal)
}

/// The signal that an exit status tells of: negative in Python's manner, 128 + n in a shell's, 256 − n as a byte, and the
/// Windows statuses of an access violation and of an abort.
#[must_use]
pub fn of_status(status: i64) -> Option<u32> {
    let known = |number: i64| u32::try_from(number).ok().filter(|&number| by_number(number).is_some());
    match status {
        0xC000_0005 | -1_073_741_819 => Some(11),
        0xC000_0409 | -1_073_740_791 => Some(6),
        0xC000_001D | -1_073_741_795 => Some(4),
        -64..=-1 => known(-status),
        129..=159 => known(status - 128),
        241..=254 => known(256 - status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_tell_signals() {
        for (status, signal) in [
            (-11, Some(11)),
            (139, Some(11)),
            (245, Some(11)),
            (-6, Some(6)),
            (134, Some(6)),
            (135, Some(7)),
            (132, Some(4)),
            (136, Some(8)),
            (-9, Some(9)),
            (247, Some(9)),
            (137, Some(9)),
            (143, Some(15)),
            (0xC000_0005, Some(11)),
            (-1_073_741_819, Some(11)),
            (1, None),
            (0, None),
            (124, None),
            (127, None),
            (255, None),
        ] {
            assert_eq!(of_status(status), signal, "{status}");
        }
    }

    #[test]
    fn names_and_texts_are_found_in_lines() {
        assert_eq!(name_in("died with <Signals.SIGSEGV: 11>.").unwrap().number, 11);
        assert_eq!(name_in("a SIGMOID, then SIGBUS").unwrap().number, 7);
        assert_eq!(text_in("zsh: segmentation fault  python").unwrap().number, 11);
        assert_eq!(text_in("no signal here"), None);
    }
}
