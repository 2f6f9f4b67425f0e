//! What is known about a launch: values of arguments, the grid, lattices, block sizes.
//!
//! In: `M=234624`, `cdiv(M, 128), 72`, `M=16` as text. Out: a [`Bindings`]. It knows no kernel; names are matched later.

use std::collections::BTreeMap;

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{char, digit1, multispace0};
use nom::combinator::{all_consuming, map, map_opt, recognize};
use nom::multi::{fold_many0, separated_list1};
use nom::sequence::{delimited, pair, preceded};
use nom::{IResult, Parser};

use crate::error::{Error, ErrorKind, Result};

/// An integer expression over argument names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// A number.
    Number(i128),
    /// An argument, or another name that has a value.
    Name(String),
    /// An operation.
    Apply(Function, Box<Expr>, Box<Expr>),
}

/// An operation of an [`Expr`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient, rounded down.
    Div,
    /// Quotient, rounded up.
    Cdiv,
    /// Smaller.
    Min,
    /// Larger.
    Max,
}

/// What is known about a launch.
#[derive(Debug, Clone, Default)]
pub struct Bindings {
    /// Values by argument name; names that no argument has may stand in the grid.
    pub values: BTreeMap<String, i128>,
    /// The number of programs or blocks by axis, where known.
    pub grid: [Option<Expr>; 3],
    /// What arguments are multiples of, where the compiled text doesn't say.
    pub lattice: BTreeMap<String, u64>,
    /// Threads of a block by axis, where known.
    pub block: [Option<u32>; 3],
}

/// Deepest parentheses.
const MAX_DEPTH: usize = 32;

fn spaced<'a, O>(
    inner: impl Parser<&'a str, Output = O, Error = nom::error::Error<&'a str>>,
) -> impl Parser<&'a str, Output = O, Error = nom::error::Error<&'a str>> {
    delimited(multispace0, inner, multispace0)
}

fn name(input: &str) -> IResult<&str, &str> {
    recognize(pair(
        take_while1(|c: char| c.is_alphabetic() || c == '_'),
        take_while(|c: char| c.is_alphanumeric() || matches!(c, '_' | '.')),
    ))
    .parse(input)
}

/// factor = number | name | function "(" sum "," sum ")" | "(" sum ")"
fn factor(input: &str, depth: usize) -> IResult<&str, Expr> {
    if depth > MAX_DEPTH {
        return Err(nom::Err::Failure(nom::error::Error::new(input, nom::error::ErrorKind::TooLarge)));
    }
    let inner = move |i| sum(i, depth + 1);
    let function = map_opt(name, |word| match word.rsplit('.').next()? {
        "cdiv" => Some(Function::Cdiv),
        "min" => Some(Function::Min),
        "max" => Some(Function::Max),
        _ => None,
    });
    let call = (function, delimited(char('('), (inner, preceded(char(','), inner)), char(')')));
    spaced(alt((
        map_opt(digit1, |digits: &str| digits.parse().ok().map(Expr::Number)),
        map(call, |(f, (a, b))| Expr::Apply(f, Box::new(a), Box::new(b))),
        map(name, |word| Expr::Name(word.to_owned())),
        delimited(char('('), inner, char(')')),
    )))
    .parse(input)
}

/// product = factor { ( "*" | "//" | "/" ) factor }
fn product(input: &str, depth: usize) -> IResult<&str, Expr> {
    let (rest, first) = factor(input, depth)?;
    let sign = alt((map(char('*'), |_| Function::Mul), map(alt((tag("//"), tag("/"))), |_| Function::Div)));
    let more = pair(sign, move |i| factor(i, depth));
    fold_many0(
        more,
        move || first.clone(),
        |left, (f, right)| Expr::Apply(f, Box::new(left), Box::new(right)),
    )
    .parse(rest)
}

/// sum = product { ( "+" | "-" ) product }
fn sum(input: &str, depth: usize) -> IResult<&str, Expr> {
    let (rest, first) = product(input, depth)?;
    let sign = alt((map(char('+'), |_| Function::Add), map(char('-'), |_| Function::Sub)));
    let more = pair(sign, move |i| product(i, depth));
    fold_many0(
        more,
        move || first.clone(),
        |left, (f, right)| Expr::Apply(f, Box::new(left), Box::new(right)),
    )
    .parse(rest)
}

impl Expr {
    /// Reads an expression.
    ///
    /// # Errors
    /// Of kind `Usage` when the text is none.
    pub fn parse(text: &str) -> Result<Self> {
        all_consuming(|i| sum(i, 0)).parse(text).map(|(_, expr)| expr).map_err(|_| {
            Error::new(ErrorKind::Usage, format!("`{text}` is no expression"))
                .hint("write numbers, argument names, + - * / and cdiv(a, b), as in cdiv(M, 128)")
        })
    }

    /// The value, where every name has one. `None` too for a division by zero or a value past 128 bits.
    #[must_use]
    pub fn value(&self, of: &dyn Fn(&str) -> Option<i128>) -> Option<i128> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Name(name) => of(name),
            Self::Apply(function, a, b) => {
                let (a, b) = (a.value(of)?, b.value(of)?);
                match function {
                    Function::Add => a.checked_add(b),
                    Function::Sub => a.checked_sub(b),
                    Function::Mul => a.checked_mul(b),
                    Function::Div => (b != 0).then(|| a.checked_div_euclid(b)).flatten(),
                    Function::Cdiv => {
                        (b > 0).then(|| a.checked_add(b - 1).map(|s| s.div_euclid(b))).flatten()
                    }
                    Function::Min => Some(a.min(b)),
                    Function::Max => Some(a.max(b)),
                }
            }
        }
    }
}

impl Expr {
    /// The names in it.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Number(_) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Apply(_, a, b) => [a.names(), b.names()].concat(),
        }
    }
}

impl std::fmt::Display for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::Apply(function, a, b) => match function {
                Function::Add => write!(f, "({a} + {b})"),
                Function::Sub => write!(f, "({a} - {b})"),
                Function::Mul => write!(f, "({a} * {b})"),
                Function::Div => write!(f, "({a} // {b})"),
                Function::Cdiv => write!(f, "cdiv({a}, {b})"),
                Function::Min => write!(f, "min({a}, {b})"),
                Function::Max => write!(f, "max({a}, {b})"),
            },
        }
    }
}

impl Bindings {
    /// Adds `NAME=VALUE`; the value may be an expression of numbers, as in `2**31` written `2147483648` or `70000*2`.
    ///
    /// # Errors
    /// Of kind `Usage` when the text is no assignment of an integer.
    pub fn set(&mut self, text: &str) -> Result<()> {
        let (name, value) = assignment(text)?;
        self.values.insert(name, value);
        Ok(())
    }

    /// Adds `NAME=MULTIPLE`.
    ///
    /// # Errors
    /// Of kind `Usage` when the text is no assignment of a positive integer.
    pub fn set_lattice(&mut self, text: &str) -> Result<()> {
        let (name, value) = assignment(text)?;
        let multiple = u64::try_from(value).ok().filter(|&m| m > 0).ok_or_else(|| {
            Error::new(ErrorKind::Usage, format!("`{text}`: a lattice is a positive number, as in M=16"))
        })?;
        self.lattice.insert(name, multiple);
        Ok(())
    }

    /// Sets the grid from one to three expressions with commas between, or `1833x72`.
    ///
    /// # Errors
    /// Of kind `Usage` when the text is none.
    pub fn set_grid(&mut self, text: &str) -> Result<()> {
        let list = |text: &str| {
            let many = separated_list1(char::<_, nom::error::Error<&str>>(','), |i| sum(i, 0));
            all_consuming(many).parse(text).ok().map(|(_, list)| list)
        };
        let sizes: Option<Vec<Expr>> =
            text.trim().split('x').map(|n| n.trim().parse().ok().map(Expr::Number)).collect();
        let parsed = sizes
            .or_else(|| list(text.trim()))
            .or_else(|| list(strip_parentheses(text)))
            .ok_or_else(|| {
                Error::new(ErrorKind::Usage, format!("`{text}` is no grid"))
                    .hint("write one to three expressions with commas between, as in cdiv(M,128),cdiv(N,128)")
            })?;
        if parsed.len() > 3 {
            return Err(Error::new(ErrorKind::Usage, format!("`{text}`: a grid has at most three axes")));
        }
        self.grid = [None, None, None];
        for (slot, expr) in self.grid.iter_mut().zip(parsed) {
            *slot = Some(expr);
        }
        // Axes that are not named have one program.
        for slot in &mut self.grid {
            slot.get_or_insert(Expr::Number(1));
        }
        Ok(())
    }

    /// Sets the threads of a block: `256` or `32,8`.
    ///
    /// # Errors
    /// Of kind `Usage` when the text is no list of one to three sizes from 1 to 1024.
    pub fn set_block(&mut self, text: &str) -> Result<()> {
        let sizes: Option<Vec<u32>> = text
            .split([',', 'x'])
            .map(|n| n.trim().parse().ok().filter(|n| (1..=1024).contains(n)))
            .collect();
        let sizes = sizes.filter(|sizes| sizes.len() <= 3).ok_or_else(|| {
            Error::new(
                ErrorKind::Usage,
                format!("`{text}` is no block: write 256 or 32,8 (1 to 1024 threads)"),
            )
        })?;
        for (axis, slot) in self.block.iter_mut().enumerate() {
            *slot = Some(sizes.get(axis).copied().unwrap_or(1));
        }
        Ok(())
    }
}

fn strip_parentheses(text: &str) -> &str {
    text.trim()
        .strip_prefix('(')
        .and_then(|t| t.strip_suffix(')'))
        .map_or(text, |t| t.trim().trim_end_matches(','))
}

fn assignment(text: &str) -> Result<(String, i128)> {
    let wrong = || {
        Error::new(ErrorKind::Usage, format!("`{text}` is no NAME=VALUE"))
            .hint("write for example --set M=234624")
    };
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let name = name.trim();
    let (negative, digits) = value.trim().strip_prefix('-').map_or((false, value.trim()), |d| (true, d));
    let expr = Expr::parse(&digits.replace(['_', '\''], "")).map_err(|_| wrong())?;
    let value = expr.value(&|_| None).ok_or_else(wrong)?;
    if name.is_empty() {
        return Err(wrong());
    }
    if value.abs() > i128::from(u64::MAX) {
        return Err(Error::new(ErrorKind::Usage, format!("`{text}`: the value is past 2^64-1"))
            .hint("an argument of a kernel has 64 bits at most"));
    }
    Ok((name.trim_start_matches('%').to_owned(), if negative { -value } else { value }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(text: &str) -> Option<i128> {
        Expr::parse(text).unwrap().value(&|name| (name == "M").then_some(234_624))
    }

    #[test]
    fn expressions() {
        assert_eq!(eval("cdiv(M, 128)"), Some(1833));
        assert_eq!(eval("triton.cdiv(M+1, 128) * 2"), Some(3668));
        assert_eq!(eval("M // 0"), None);
        assert_eq!(eval("unknown"), None);
        assert!(Expr::parse("cdiv(M").is_err());
        assert!(Expr::parse(&"(".repeat(100_000)).is_err());
    }

    #[test]
    fn grids_and_assignments() {
        let mut bindings = Bindings::default();
        bindings.set_grid("cdiv(M,128),72").unwrap();
        assert_eq!(bindings.grid[1], Some(Expr::Number(72)));
        assert_eq!(bindings.grid[2], Some(Expr::Number(1)));
        bindings.set_grid("1833x72").unwrap();
        assert_eq!(bindings.grid[0], Some(Expr::Number(1833)));
        bindings.set_grid("(1833,)").unwrap();
        assert_eq!(bindings.grid[0], Some(Expr::Number(1833)));
        assert!(bindings.set_grid("1,2,3,4").is_err());
        bindings.set("%arg0=-5").unwrap();
        bindings.set("M=233_017").unwrap();
        assert_eq!((bindings.values["arg0"], bindings.values["M"]), (-5, 233_017));
        assert!(bindings.set("M").is_err());
        assert!(bindings.set("M=lots").is_err());
        assert!(bindings.set_lattice("M=0").is_err());
    }
}
