//! What the rounds of a loop read from memory: a new value each time, though the text has one name for it.

use super::super::solve::{Fuel, Goal, Outcome};
use super::super::sym::VarKind;
use super::super::{Answer, Bindings, analyze, cache, launch};

fn on_grid(programs: &str) -> Bindings {
    let mut bindings = Bindings::default();
    bindings.set_grid(programs).unwrap();
    bindings
}

/// `done` is a sum of a hundred loaded numbers, not a hundred times the last of them.
#[test]
fn a_sum_of_loaded_numbers_is_no_multiple_of_the_last() {
    let text = r"module {
  tt.func public @k(%p: !tt.ptr<i8>, %n_ptr: !tt.ptr<i32>) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %rounds = arith.constant 100 : i32
    %far = arith.constant 20000000 : i32
    %value = arith.constant 1 : i8
    %pid = tt.get_program_id x : i32
    %end = scf.for %k = %zero to %rounds step %one iter_args(%done = %zero) -> (i32)  : i32 {
      %at = tt.addptr %n_ptr, %k : !tt.ptr<i32>, i32
      %n = tt.load %at : !tt.ptr<i32>
      %is_one = arith.cmpi eq, %n, %one : i32
      %below = arith.cmpi slt, %pid, %done : i32
      %mask = arith.andi %is_one, %below : i1
      %offset = arith.muli %pid, %far : i32
      %to = tt.addptr %p, %offset : !tt.ptr<i8>, i32
      tt.store %to, %value, %mask : !tt.ptr<i8>
      %next = arith.addi %done, %n : i32
      scf.yield %next : i32
    }
    tt.return
  }
}
";
    let found = analyze(&cache::from_ttir(text)[0], &on_grid("1000"));
    assert_eq!((found.answer, found.accesses, found.undecided), (Answer::Unknown, 2, 1));
}

/// The number that the loop's end was tested with is not the one that guards the next round's store.
#[test]
fn a_test_of_the_last_round_says_nothing_of_what_this_round_reads() {
    let text = "\
.version 8.0
.target sm_90
.visible .entry k(.param .u64 .ptr .global .align 1 k_param_0, .param .u64 .ptr .global .align 1 k_param_1)
{
ld.param.u64 %rd1, [k_param_0];
ld.param.u64 %rd2, [k_param_1];
mov.u32 %r1, %ctaid.x;
mul.lo.s32 %r2, %r1, 20000000;
mul.wide.s32 %rd3, %r2, 1;
add.s64 %rd4, %rd1, %rd3;
mov.u32 %r3, 0;
$L1:
mul.wide.s32 %rd5, %r3, 4;
add.s64 %rd6, %rd2, %rd5;
ld.global.u32 %r4, [%rd6];
setp.lt.s32 %p1, %r1, %r4;
setp.gt.s32 %p3, %r3, 0;
and.pred %p4, %p1, %p3;
@%p4 st.global.u8 [%rd4], %r1;
add.s32 %r3, %r3, 1;
setp.lt.s32 %p2, %r4, 100;
@%p2 bra $L1;
ret;
}
";
    let found = analyze(&cache::from_ptx(text)[0], &on_grid("1000"));
    assert_eq!((found.answer, found.accesses, found.undecided), (Answer::Unknown, 2, 2));
}

/// Two ways lead back to the loop's head; the counter is asked for from there first, by the condition of the way back.
#[test]
fn a_counter_that_two_ways_lead_back_with_is_followed() {
    let text = "\
.version 8.0
.target sm_90
.visible .entry k(.param .u64 .ptr .global .align 1 k_param_0)
{
ld.param.u64 %rd1, [k_param_0];
mov.u32 %r1, %tid.x;
mov.b32 %r3, 0;
bra.uni $L2;
$L9:
add.s32 %r3, %r3, 1;
setp.ne.b32 %p1, %r3, 1000;
@!%p1 bra $L10;
$L2:
mul.lo.s32 %r4, %r3, 2000000;
mul.wide.s32 %rd2, %r4, 1;
add.s64 %rd3, %rd1, %rd2;
st.global.u8 [%rd3], %r1;
setp.lt.s32 %p2, %r1, 7;
@%p2 bra $L9;
st.global.u8 [%rd3+8], %r1;
bra.uni $L9;
$L10:
ret;
}
";
    let fits = analyze(&cache::from_ptx(text)[0], &Bindings::default());
    assert_eq!((fits.answer, fits.accesses, fits.undecided), (Answer::Fits, 2, 0));
    let wraps = analyze(&cache::from_ptx(&text.replace("1000;", "1100;"))[0], &Bindings::default());
    assert_eq!(wraps.answer, Answer::Wraps);
    assert_eq!(wraps.findings[0].max_value, Some(1_099 * 2_000_000));
}

/// No box is split for a value that no choice of the others makes known.
#[test]
fn an_unset_argument_costs_no_search() {
    let text = r#"module {
  tt.func public @k(%p: !tt.ptr<i8>, %stride: i32 loc("stride")) {
    %value = arith.constant 1 : i8
    %pid = tt.get_program_id x : i32
    %offset = arith.muli %pid, %stride : i32
    %to = tt.addptr %p, %offset : !tt.ptr<i8>, i32
    tt.store %to, %value : !tt.ptr<i8>
    tt.return
  }
}
"#;
    let kernel = &cache::from_ttir(text)[0];
    let access = &kernel.model.accesses[0];
    let env = launch::environment(&kernel.model, &on_grid("64"), &[].into(), &[access.meant]);
    let mut fuel = Fuel::default();
    let goal = Goal { node: access.meant, upward: true, limit: i128::from(i32::MAX) };
    let Outcome::Open { bound, pointless } = env.search(goal, &[], &mut fuel) else { panic!("not open") };
    assert_eq!((bound, pointless, fuel.total), (63 * i128::from(i32::MAX), true, Fuel::default().total));
    assert!(kernel.model.dag.vars().iter().any(|var| var.kind == VarKind::Arg(1)));
}
