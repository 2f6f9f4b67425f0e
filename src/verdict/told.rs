//! Launches whose arguments are known: what a tool read off the device, and what a trace wrote down.
//!
//! In: the case, and a compiled kernel. Out: its arguments by the kernel's own names ([`Told`]), and the names for a launch that
//! only numbers them. A launch of another specialisation has other parameters, so that lists must agree in number and type. It
//! leaves what the arguments lead to alone.

use crate::case::Case;
use crate::image::symbol;
use crate::kernel::bind::Expr;
use crate::kernel::interval::{Interval, Sign};
use crate::kernel::model::{Param, Source};
use crate::kernel::{Bindings, Kernel};
use crate::read::event::{Data, Dim3, FaultingLaunch};

use super::failure::Failure;
use super::launches::{Traced, compilation_of, same_rank, traced};

/// Pointers that a compiler appends to a kernel's own parameters.
const HIDDEN: usize = 4;

/// A launch of a kernel, with its arguments.
#[derive(Debug)]
pub enum Told<'a> {
    /// A tool read it off the device that failed.
    Device(&'a FaultingLaunch),
    /// A trace wrote it down before it was launched.
    Traced(Box<Traced<'a>>),
}

/// The launch of a kernel whose arguments are known: the faulting one, else the last traced one of the same compilation, or an
/// earlier one that wraps.
#[must_use]
pub fn told<'a>(case: &'a Case, root: &Failure, kernel: &Kernel) -> Option<Told<'a>> {
    if let Some(launch) = device(case, &kernel.model.entry).filter(|launch| fits(launch, kernel)) {
        return Some(Told::Device(launch));
    }
    let (evidence, _) = case.kernels().find(|(_, known)| std::ptr::eq(*known, kernel))?;
    let compilation = compilation_of(case, evidence)?;
    traced(case, root)
        .into_iter()
        .filter(|traced| traced.launch.compilation.as_deref() == Some(compilation))
        .max_by_key(|traced| (traced.launch.last_of_trace, traced.wraps()))
        .map(|traced| Told::Traced(Box::new(traced)))
}

/// The launch that a tool read off the device with its arguments, where it was this kernel's.
#[must_use]
pub fn device<'a>(case: &'a Case, entry: &str) -> Option<&'a FaultingLaunch> {
    case.pick(|data| match data {
        Data::FaultingLaunch(launch) if !launch.arguments.is_empty() => Some(launch),
        _ => None,
    })
    .next()
    .map(|(_, _, launch)| launch)
    .filter(|launch| launch.kernel.as_deref().is_some_and(|name| is_named(entry, name)))
}

/// The arguments of the launch of a kernel of this name, compiled form or not: of the faulting launch, else of the last traced one.
#[must_use]
pub fn arguments<'a>(case: &'a Case, root: &Failure, entry: &str) -> Option<&'a [(String, String)]> {
    if let Some(launch) = device(case, entry) {
        return Some(&launch.arguments);
    }
    case.pick(|data| match data {
        Data::LaunchMention(launch) if launch.last_of_trace => Some(launch),
        _ => None,
    })
    .find(|(_, event, launch)| launch.kernel == entry && same_rank(event, root))
    .map(|(_, _, launch)| launch.arguments.as_slice())
}

/// Whether a tool's name of a kernel is that of a compiled entry: tools print C++ names, PTX holds mangled ones.
#[must_use]
pub fn is_named(entry: &str, name: &str) -> bool {
    entry == name || (entry.starts_with("_Z") && symbol::name(entry) == name)
}

impl Told<'_> {
    /// Its grid, and its integers by the kernel's own names.
    #[must_use]
    pub fn bindings(&self, kernel: &Kernel) -> Bindings {
        let launch = match self {
            Self::Traced(traced) => return traced.bindings.clone(),
            Self::Device(launch) => launch,
        };
        let mut bindings = Bindings::default();
        if let Some(grid) = launch.grid {
            bindings.grid = grid.map(|blocks| Some(Expr::Number(i128::from(blocks))));
        }
        for (at, parameter) in kernel.model.params.iter().enumerate() {
            if let (Some(_), Some(value)) = (parameter.int_width, argument(launch, at, parameter))
                && let Ok(value) = value.parse()
            {
                bindings.values.insert(parameter.name.clone(), value);
            }
        }
        bindings
    }

    /// Its grid.
    #[must_use]
    pub fn grid(&self) -> Option<Dim3> {
        match self {
            Self::Device(launch) => launch.grid,
            Self::Traced(traced) => traced.launch.grid,
        }
    }

    /// Threads of a block.
    #[must_use]
    pub fn block_dim(&self) -> Option<Dim3> {
        match self {
            Self::Device(launch) => launch.block_dim,
            Self::Traced(traced) => traced.launch.block_dim,
        }
    }

    /// Who told it, as a clause.
    #[must_use]
    pub fn by(&self) -> &'static str {
        match self {
            Self::Device(_) => "read off the launch",
            Self::Traced(traced) if traced.launch.last_of_trace => "of the last traced launch",
            Self::Traced(_) => "of a traced launch",
        }
    }
}

/// The arguments of a launch by the names that the kernel's author gave them, where its compiled form is among the inputs.
#[must_use]
pub fn named(case: &Case, launch: &FaultingLaunch) -> Option<Vec<(String, String)>> {
    let name = launch.kernel.as_deref()?;
    let (_, kernel) = case.kernels().find(|(_, kernel)| {
        kernel.model.entry == name && kernel.model.source == Source::Ttir && fits(launch, kernel)
    })?;
    let names = kernel.model.params.iter().map(|parameter| parameter.name.as_str());
    let own = names.zip(&launch.arguments).map(|(name, (_, value))| (name.to_owned(), value.clone()));
    Some(own.collect())
}

/// An argument by name; a dump without names numbers them.
fn argument<'a>(launch: &'a FaultingLaunch, at: usize, parameter: &Param) -> Option<&'a str> {
    let numbered = format!("arg{at}");
    let told = launch.arguments.iter().find(|(name, _)| *name == parameter.name || *name == numbered);
    told.map(|(_, value)| value.as_str())
}

/// Whether a launch can be this kernel's: as many arguments, pointers where it has pointers, numbers that fit their types.
fn fits(launch: &FaultingLaunch, kernel: &Kernel) -> bool {
    let parameters = &kernel.model.params;
    let more = launch.arguments.len().checked_sub(parameters.len());
    more.is_some_and(|more| more <= HIDDEN)
        && parameters.iter().enumerate().all(|(at, parameter)| {
            argument(launch, at, parameter).is_none_or(|value| holds(parameter, value))
        })
}

fn holds(parameter: &Param, value: &str) -> bool {
    let is_address = value.starts_with("0x");
    match parameter.int_width {
        // A large count is taken for a pointer where nothing tells its type.
        Some(64) if is_address => true,
        Some(width) => value.parse::<i128>().is_ok_and(|value| {
            [Sign::Signed, Sign::Unsigned].iter().any(|sign| Interval::of_type(width, *sign).holds(value))
        }),
        None if parameter.pointee_bytes.is_some() => is_address || value == "0",
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::cache;

    const TTIR: &str = "module {\n  tt.func public @k(%x_ptr: !tt.ptr<f32>, %n: i32, %stride: i64) {\n    tt.return\n  }\n}\n";

    fn launch(values: &[&str]) -> FaultingLaunch {
        let arguments =
            values.iter().enumerate().map(|(at, value)| (format!("arg{at}"), (*value).to_owned()));
        FaultingLaunch {
            kernel: Some("k".to_owned()),
            arguments: arguments.collect(),
            ..FaultingLaunch::default()
        }
    }

    /// A value of 1 is folded into the code, so that another specialisation of one kernel has other parameters.
    #[test]
    fn a_launch_of_another_specialisation_does_not_fit() {
        let kernel = cache::from_ttir(TTIR).remove(0);
        let table = [
            (&["0x7f00", "12", "64"][..], true),
            (&["0x7f00", "12", "64", "0x0", "0x0"], true),
            (&["0", "4294967295", "0x7f00deadbeef"], true),
            (&["0x7f00", "0x7f00", "12"], false),
            (&["12", "12", "64"], false),
            (&["0x7f00", "4294967296", "64"], false),
            (&["0x7f00", "12"], false),
            (&["0x7f00", "12", "64", "1", "2", "3", "4", "5"], false),
        ];
        for (values, expected) in table {
            assert_eq!(fits(&launch(values), &kernel), expected, "{values:?}");
        }
        let bindings = Told::Device(&launch(&["0x7f00", "12", "64"])).bindings(&kernel);
        let values: Vec<_> = bindings.values.into_iter().collect();
        assert_eq!(values, [("n".to_owned(), 12), ("stride".to_owned(), 64)]);
    }

    #[test]
    fn mangled_entries_have_their_readable_names() {
        assert!(is_named("_Z6gatherPKfPKiPfi", "gather"));
        assert!(is_named("scatter_rows", "scatter_rows"));
        assert!(!is_named("scatter_rows_i64", "scatter_rows"));
    }
}
