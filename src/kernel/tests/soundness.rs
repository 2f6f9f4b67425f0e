//! Random programs of eight-bit integers, run on every program id, lane and round.
//!
//! The interpreter here shares nothing with the analysis. `fits` must never be said of a program in which an address is
//! made of a value that left its type, and a witness of `wraps` must be such a point.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::super::analyze::{Kernel, analyze};
use super::super::bind::Bindings;
use super::super::finding::{Analysis, Answer};
use super::super::{cache, ttir};

#[derive(Debug, Clone)]
enum Expr {
    Pid(u8),
    Lane,
    Arg(u8),
    Const(i8),
    Counter,
    Carried,
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Select(&'static str, Box<[Expr; 4]>),
}

#[derive(Debug, Clone)]
struct Program {
    grid: [i64; 2],
    lanes: i64,
    args: [i8; 2],
    /// start, end, step, what is added to the carried value each round
    rounds: Option<(i8, i8, i8, Expr)>,
    carried_start: Expr,
    only_programs_below: Option<i8>,
    mask: (&'static str, Expr, Expr),
    address: Expr,
}

const RING: [&str; 3] = ["addi", "subi", "muli"];
const OTHER: [&str; 8] = ["divsi", "remsi", "minsi", "maxsi", "andi", "ori", "xori", "shrsi"];
const COMPARE: [&str; 8] = ["slt", "sle", "sgt", "sge", "eq", "ne", "ult", "uge"];

fn leaf(in_loop: bool) -> BoxedStrategy<Expr> {
    let plain = prop_oneof![
        (0u8..2).prop_map(Expr::Pid),
        Just(Expr::Lane),
        (0u8..2).prop_map(Expr::Arg),
        (-9i8..40).prop_map(Expr::Const),
    ];
    if in_loop {
        prop_oneof![3 => plain, 1 => Just(Expr::Counter), 1 => Just(Expr::Carried)].boxed()
    } else {
        plain.boxed()
    }
}

fn expr(in_loop: bool) -> BoxedStrategy<Expr> {
    leaf(in_loop)
        .prop_recursive(4, 24, 2, |inner| {
            prop_oneof![
                4 => (prop::sample::select(&RING[..]), inner.clone(), inner.clone())
                    .prop_map(|(op, a, b)| Expr::Binary(op, Box::new(a), Box::new(b))),
                2 => (prop::sample::select(&OTHER[..]), inner.clone(), inner.clone())
                    .prop_map(|(op, a, b)| Expr::Binary(op, Box::new(a), Box::new(b))),
                1 => (prop::sample::select(&COMPARE[..]), inner.clone(), inner.clone(), inner.clone(), inner)
                    .prop_map(|(p, a, b, c, d)| Expr::Select(p, Box::new([a, b, c, d]))),
            ]
        })
        .boxed()
}

fn program() -> impl Strategy<Value = Program> {
    let rounds = prop::option::of((-5i8..20, 0i8..60, 1i8..9, leaf(false)));
    let mask = (prop::sample::select(&COMPARE[..]), expr(true), expr(true));
    let shape = (1i64..7, 1i64..4, prop::sample::select(&[1i64, 4, 8][..]), any::<[i8; 2]>());
    (shape, rounds, leaf(false), prop::option::of(0i8..6), mask, expr(true)).prop_map(
        |((x, y, lanes, args), rounds, carried_start, only_programs_below, mask, address)| Program {
            grid: [x, y],
            lanes,
            args,
            rounds,
            carried_start,
            only_programs_below,
            mask,
            address,
        },
    )
}

// ---- the program as TTIR ----

struct Writer {
    out: String,
    next: usize,
    lanes: i64,
}

impl Writer {
    fn line(&mut self, op: &str) -> String {
        let name = format!("%v{}", self.next);
        self.next += 1;
        self.out.push_str(&format!("    {name} = {op}\n"));
        name
    }

    fn expr(&mut self, expr: &Expr) -> String {
        let ty = format!("tensor<{}xi8>", self.lanes);
        match expr {
            Expr::Pid(axis) => {
                let pid = self.line(&format!("tt.get_program_id {} : i32", ["x", "y"][usize::from(*axis)]));
                let small = self.line(&format!("arith.trunci {pid} : i32 to i8"));
                self.line(&format!("tt.splat {small} : i8 -> {ty}"))
            }
            Expr::Lane => {
                let range = format!("tensor<{}xi32>", self.lanes);
                let lane = self.line(&format!(
                    "tt.make_range {{end = {} : i32, start = 0 : i32}} : {range}",
                    self.lanes
                ));
                self.line(&format!("arith.trunci {lane} : {range} to {ty}"))
            }
            Expr::Arg(nth) => self.line(&format!("tt.splat %a{nth} : i8 -> {ty}")),
            Expr::Const(value) => self.line(&format!("arith.constant dense<{value}> : {ty}")),
            Expr::Counter => {
                let small = self.line("arith.trunci %k : i32 to i8");
                self.line(&format!("tt.splat {small} : i8 -> {ty}"))
            }
            Expr::Carried => "%carried".into(),
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                self.line(&format!("arith.{op} {a}, {b} : {ty}"))
            }
            Expr::Select(pred, parts) => {
                let [a, b, c, d] = parts.as_ref();
                let (a, b, c, d) = (self.expr(a), self.expr(b), self.expr(c), self.expr(d));
                let cond = self.line(&format!("arith.cmpi {pred}, {a}, {b} : {ty}"));
                self.line(&format!("arith.select {cond}, {c}, {d} : tensor<{}xi1>, {ty}", self.lanes))
            }
        }
    }

    fn store(&mut self, program: &Program) {
        let (pred, a, b) = &program.mask;
        let (a, b) = (self.expr(a), self.expr(b));
        let (ty, pointers) =
            (format!("tensor<{}xi8>", self.lanes), format!("tensor<{}x!tt.ptr<i8>>", self.lanes));
        let mask = self.line(&format!("arith.cmpi {pred}, {a}, {b} : {ty}"));
        let address = self.expr(&program.address);
        let base = self.line(&format!("tt.splat %p : !tt.ptr<i8> -> {pointers}"));
        let at = self.line(&format!("tt.addptr {base}, {address} : {pointers}, {ty}"));
        let value = self.line(&format!("arith.constant dense<1> : {ty}"));
        self.out.push_str(&format!("    tt.store {at}, {value}, {mask} : {pointers}\n"));
    }
}

fn text(program: &Program) -> String {
    let mut writer = Writer { out: String::new(), next: 0, lanes: program.lanes };
    let ty = format!("tensor<{}xi8>", program.lanes);
    writer.out.push_str(
        "module {\n  tt.func public @k(%p: !tt.ptr<i8>, %a0: i8 loc(\"a0\"), %a1: i8 loc(\"a1\")) {\n",
    );
    let start = writer.expr(&program.carried_start);
    if let Some(limit) = program.only_programs_below {
        writer.out.push_str("    %px = tt.get_program_id x : i32\n");
        writer.out.push_str(&format!("    %lim = arith.constant {limit} : i32\n    %go = arith.cmpi slt, %px, %lim : i32\n    scf.if %go {{\n"));
    }
    let (from, to, step, more) = program.rounds.clone().unwrap_or((0, 1, 1, Expr::Const(0)));
    writer.out.push_str(&format!("    %lo = arith.constant {from} : i32\n    %hi = arith.constant {to} : i32\n    %st = arith.constant {step} : i32\n"));
    writer.out.push_str(&format!(
        "    %end = scf.for %k = %lo to %hi step %st iter_args(%carried = {start}) -> ({ty})  : i32 {{\n"
    ));
    writer.store(program);
    let more = writer.expr(&more);
    writer.out.push_str(&format!(
        "    %next = arith.addi %carried, {more} : {ty}\n    scf.yield %next : {ty}\n    }}\n"
    ));
    if program.only_programs_below.is_some() {
        writer.out.push_str("    }\n");
    }
    writer.out.push_str("    tt.return\n  }\n}\n");
    writer.out
}

// ---- the program, run ----

struct Machine<'p> {
    program: &'p Program,
    pid: [i128; 2],
    lane: i128,
    counter: i128,
    carried: i128,
}

/// What an expression may be read as, and whether an operation on the way read a value that had left its type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Value {
    /// The integers that the machine's bits may stand for, all equal modulo 256, the bits' own number among them. There are
    /// several where a bit operation kept a value that had left its type: `x | 0` may be read as `x` itself or as the
    /// number that its bits spell.
    readings: BTreeSet<i128>,
    surely: bool,
    maybe: bool,
}

/// Readings of one value that are followed.
const READINGS: usize = 64;

impl Value {
    fn of(value: i128) -> Self {
        Self { readings: BTreeSet::from([value]), surely: false, maybe: false }
    }

    fn bits(&self) -> i128 {
        self.readings.first().map_or(0, |value| wrap(*value))
    }

    /// Whether it left its type however it is read, and whether it did in some reading.
    fn left(&self) -> (bool, bool) {
        let left = |value: &i128| wrap(*value) != *value;
        (self.readings.iter().all(left), self.readings.iter().any(left))
    }

    /// A ring operation: every reading of one side with every reading of the other.
    fn ring(a: &Self, b: &Self, op: impl Fn(i128, i128) -> i128) -> Self {
        let readings: BTreeSet<i128> = a
            .readings
            .iter()
            .flat_map(|a| b.readings.iter().map(|b| op(*a, *b)).collect::<Vec<_>>())
            .collect();
        Self { readings, surely: a.surely || b.surely, maybe: a.maybe || b.maybe }
    }

    /// An operation that reads bits: harm where an operand had left its type.
    fn read(a: &Self, b: &Self, value: i128) -> Self {
        let (surely, maybe) = (a.left().0 || b.left().0, a.left().1 || b.left().1);
        Self {
            readings: BTreeSet::from([value]),
            surely: a.surely || b.surely || surely,
            maybe: a.maybe || b.maybe || maybe,
        }
    }
}

fn wrap(value: i128) -> i128 {
    (value + 128).rem_euclid(256) - 128
}

impl Machine<'_> {
    /// The value and what is to be said of it; `None` for a division by zero, or more readings than are followed.
    fn run(&self, expr: &Expr) -> Option<Value> {
        let value = match expr {
            Expr::Pid(axis) => Value::of(self.pid[usize::from(*axis)]),
            Expr::Lane => Value::of(self.lane),
            Expr::Arg(nth) => Value::of(i128::from(self.program.args[usize::from(*nth)])),
            Expr::Const(value) => Value::of(i128::from(*value)),
            Expr::Counter => Value::of(self.counter),
            Expr::Carried => Value::of(self.carried),
            Expr::Binary(op, a, b) => binary(op, &self.run(a)?, &self.run(b)?)?,
            Expr::Select(pred, parts) => {
                let [a, b, c, d] = parts.as_ref();
                // Both sides are computed, whichever is chosen.
                let (c, d) = (self.run(c)?, self.run(d)?);
                if compare(pred, self.run(a)?.bits(), self.run(b)?.bits()) { c } else { d }
            }
        };
        (value.readings.len() <= READINGS).then_some(value)
    }

    /// Whether the store happens, and whether its address is surely or maybe harmed.
    fn store(&self) -> Option<(bool, bool, bool)> {
        let (pred, a, b) = &self.program.mask;
        let active = compare(pred, self.run(a)?.bits(), self.run(b)?.bits());
        let runs = self.program.only_programs_below.is_none_or(|limit| self.pid[0] < i128::from(limit));
        let address = self.run(&self.program.address)?;
        let (surely, maybe) = address.left();
        Some((active && runs, address.surely || surely, address.maybe || maybe))
    }
}

fn binary(op: &str, a: &Value, b: &Value) -> Option<Value> {
    let (sa, sb) = (a.bits(), b.bits());
    Some(match op {
        "addi" => Value::ring(a, b, |a, b| a + b),
        "subi" => Value::ring(a, b, |a, b| a - b),
        "muli" => {
            let product = Value::ring(a, b, |a, b| a * b);
            // Nothing of a factor reaches a product with zero.
            let zero = a.readings.contains(&0) || b.readings.contains(&0);
            Value { surely: product.surely && !zero, ..product }
        }
        "divsi" => Value::read(a, b, sa.checked_div(sb)?),
        "remsi" => Value::read(a, b, sa.checked_rem(sb)?),
        "minsi" => Value::read(a, b, sa.min(sb)),
        "maxsi" => Value::read(a, b, sa.max(sb)),
        // The amount of a shift is taken as it is.
        "shrsi" => {
            let shifted = Value::read(a, &Value::of(sb), sa >> sb.rem_euclid(256).min(127));
            Value { surely: shifted.surely || b.surely, maybe: shifted.maybe || b.maybe, ..shifted }
        }
        // What a bit operation keeps of a wrapped value may or may not be the index that was meant.
        _ => {
            let kept = match op {
                "andi" if sa & sb == sa => a.readings.clone(),
                "andi" if sa & sb == sb => b.readings.clone(),
                "andi" => BTreeSet::new(),
                // Without a common bit, both are sums.
                _ if sa & sb == 0 => Value::ring(a, b, |a, b| a + b).readings,
                _ => BTreeSet::new(),
            };
            let bits = match op {
                "andi" => sa & sb,
                "ori" => sa | sb,
                "xori" => sa ^ sb,
                _ => unreachable!("not generated"),
            };
            let mut readings = kept;
            readings.insert(bits);
            let left = a.left().1 || b.left().1;
            Value { readings, surely: a.surely || b.surely, maybe: a.maybe || b.maybe || left }
        }
    })
}

fn compare(pred: &str, a: i128, b: i128) -> bool {
    let (sa, sb, ua, ub) = (wrap(a), wrap(b), a.rem_euclid(256), b.rem_euclid(256));
    match pred {
        "slt" => sa < sb,
        "sle" => sa <= sb,
        "sgt" => sa > sb,
        "sge" => sa >= sb,
        "eq" => ua == ub,
        "ne" => ua != ub,
        "ult" => ua < ub,
        "uge" => ua >= ub,
        _ => unreachable!("not generated"),
    }
}

/// The state of a program, lane and round.
fn at(program: &Program, pid: [i128; 2], lane: i128, round: i128) -> Option<Machine<'_>> {
    let (from, to, step, more) = program.rounds.clone().unwrap_or((0, 1, 1, Expr::Const(0)));
    let counter = i128::from(from) + round * i128::from(step);
    if round < 0 || counter >= i128::from(to) {
        return None;
    }
    let mut machine = Machine { program, pid, lane, counter, carried: 0 };
    // Both are leaves: they have one reading.
    let exact = |value: Value| value.readings.first().copied();
    let (start, more) = (exact(machine.run(&program.carried_start)?)?, exact(machine.run(&more)?)?);
    machine.carried = start + round * more;
    Some(machine)
}

fn analysis(program: &Program) -> (Kernel, Analysis) {
    let module = ttir::parse(&text(program));
    assert!(module.complaints.is_empty(), "{:?}\n{}", module.complaints, text(program));
    let kernel = cache::from_ttir(&text(program)).remove(0);
    let mut bindings = Bindings::default();
    bindings.set_grid(&format!("{},{}", program.grid[0], program.grid[1])).unwrap();
    for (name, value) in ["a0", "a1"].iter().zip(program.args) {
        bindings.values.insert((*name).to_owned(), i128::from(value));
    }
    let found = analyze(&kernel, &bindings);
    (kernel, found)
}

fn check(program: &Program) -> Result<Answer, TestCaseError> {
    let (_, found) = analysis(program);
    match found.answer {
        Answer::Fits => {
            for x in 0..i128::from(program.grid[0]) {
                for y in 0..i128::from(program.grid[1]) {
                    for lane in 0..i128::from(program.lanes) {
                        let mut round = 0;
                        while let Some(machine) = at(program, [x, y], lane, round) {
                            let stored = machine.store();
                            let harmed = stored.is_some_and(|(active, surely, _)| active && surely);
                            prop_assert!(!harmed, "{}: {:?} {} {}", text(program), [x, y], lane, round);
                            round += 1;
                        }
                    }
                }
            }
        }
        Answer::Wraps => {
            let witness = found.findings[0].witness.clone().unwrap();
            let lane = witness.lanes.iter().find(|(name, _)| name == "lane0").map_or(0, |(_, v)| *v);
            let round = witness.iterations.first().copied().unwrap_or(0);
            let machine = at(program, [witness.program[0], witness.program[1]], lane, round);
            let Some(machine) = machine else {
                return Err(TestCaseError::fail(format!("{}: no such point {witness:?}", text(program))));
            };
            // A division by zero in an operand that the result doesn't depend on has no value here and is harmless there.
            if let Some((active, _, maybe)) = machine.store() {
                prop_assert!(active && maybe, "{}: {:?}", text(program), witness);
            }
        }
        Answer::Unknown => {}
    }
    Ok(found.answer)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(300), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_answer_is_contradicted(program in program()) {
        check(&program)?;
    }
}

/// Programs of that shape are mostly decided: a test that only sees `unknown` shows nothing.
#[test]
fn most_programs_are_decided() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut counts = [0usize; 3];
    for _ in 0..300 {
        let program = program().new_tree(&mut runner).unwrap().current();
        counts[match check(&program).unwrap() {
            Answer::Fits => 0,
            Answer::Wraps => 1,
            Answer::Unknown => 2,
        }] += 1;
    }
    assert!(counts[0] > 100 && counts[1] > 25 && counts[2] < 30, "fits, wraps, unknown: {counts:?}");
}
