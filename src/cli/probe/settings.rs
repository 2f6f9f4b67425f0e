//! Options of `warpfault probe` as a [`Spec`].
//!
//! In: arguments, and a `probe.toml` where one is named. Out: settings; an option wins over the file.

use std::path::Path;

use super::ProbeArgs;
use crate::error::{Error, ErrorKind, Result};
use crate::probe::spec::Spec;

/// Longest `probe.toml`.
const LIMIT_BYTES: u64 = 1 << 20;

/// The settings.
///
/// # Errors
/// `Input` or `Format` for the file, `Usage` for an option that can't be read.
pub fn spec(args: &ProbeArgs) -> Result<Spec> {
    let path = Path::new(&args.path);
    let mut spec = if path.extension().is_some_and(|extension| extension == "toml") {
        from_file(path)?
    } else {
        Spec { path: args.path.clone(), ..Spec::default() }
    };
    for text in &args.set {
        let (name, value) = pair(text, "--set N=9216")?;
        spec.set.insert(name, value);
    }
    for text in &args.lattice {
        let (name, value) = pair(text, "--lattice M=16")?;
        let multiple: u64 = value.parse().ok().filter(|multiple| *multiple > 0).ok_or_else(|| {
            Error::new(ErrorKind::Usage, format!("`{text}`: a lattice is a positive number, as in M=16"))
        })?;
        spec.lattice.insert(name, multiple);
    }
    let text = |slot: &mut Option<String>, option: &Option<String>| {
        if option.is_some() {
            slot.clone_from(option);
        }
    };
    text(&mut spec.entry, &args.entry);
    text(&mut spec.sweep, &args.sweep);
    text(&mut spec.grid, &args.grid);
    text(&mut spec.block, &args.block);
    text(&mut spec.control, &args.control);
    text(&mut spec.control_entry, &args.control_entry);
    text(&mut spec.dtype, &args.dtype);
    spec.shared_bytes = args.shared.or(spec.shared_bytes);
    spec.memory = args.memory.unwrap_or(spec.memory);
    spec.guard = args.guard.unwrap_or(spec.guard);
    spec.device = args.device.unwrap_or(spec.device);
    spec.timeout_s = args.timeout.unwrap_or(spec.timeout_s);
    spec.memory_limit_mib = args.memory_limit.unwrap_or(spec.memory_limit_mib);
    spec.nvrtc |= args.nvrtc;
    spec.also.extend(&args.also);
    Ok(spec)
}

fn from_file(path: &Path) -> Result<Spec> {
    let failed =
        |error: std::io::Error| Error::new(ErrorKind::Input, "can't be read").at(path, None).because(error);
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > LIMIT_BYTES {
        return Err(Error::new(ErrorKind::Limit, format!("{size} bytes are no probe.toml")).at(path, None));
    }
    let mut spec =
        Spec::parse(&std::fs::read_to_string(path).map_err(failed)?).map_err(|error| error.at(path, None))?;
    // Paths in the file are meant from where it lies.
    let from = path.parent().unwrap_or(Path::new(""));
    for slot in std::iter::once(&mut spec.path).chain(spec.control.as_mut()) {
        let below = from.join(&*slot);
        if !Path::new(&*slot).exists() && below.exists() {
            *slot = below.to_string_lossy().into_owned();
        }
    }
    Ok(spec)
}

fn pair(text: &str, example: &str) -> Result<(String, String)> {
    let parts = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    parts.filter(|(name, value)| !name.is_empty() && !value.is_empty()).ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("`{text}` is no NAME=VALUE"))
            .hint(format!("write for example {example}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_wins_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("probe.toml");
        std::fs::write(&file, "path = 'cache'\nsweep = 'M'\ntimeout_s = 5\n[set]\nN = '9216'\nK = '32'\n")
            .unwrap();
        std::fs::create_dir(folder.path().join("cache")).unwrap();
        let args = ProbeArgs {
            path: file.to_string_lossy().into_owned(),
            set: vec!["N=1232".into()],
            sweep: Some("N".into()),
            ..ProbeArgs::default()
        };
        let spec = spec(&args).unwrap();
        assert_eq!((spec.set["N"].as_str(), spec.set["K"].as_str()), ("1232", "32"));
        assert_eq!((spec.sweep.as_deref(), spec.timeout_s), (Some("N"), 5));
        assert!(Path::new(&spec.path).is_absolute(), "{}", spec.path);
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        let args = |set: &str| ProbeArgs { path: "x".into(), set: vec![set.into()], ..ProbeArgs::default() };
        for set in ["N", "=1", "N="] {
            assert_eq!(spec(&args(set)).unwrap_err().kind(), ErrorKind::Usage, "{set}");
        }
    }
}
