use super::*;
use crate::repro::recipe::{Program, Sides, Size};

fn recipe() -> Recipe {
    let expect = Expect {
        class: "illegal_address".into(),
        code: Some("cuda:700".into()),
        kernel: Some("fill".into()),
        collective: None,
        text: Vec::new(),
    };
    Recipe::two_sided("x".into(), expect, Program::Graph, Default::default())
}

fn failing() -> Reading {
    Reading {
        class: Some(FailureClass::IllegalAddress),
        code: Some("cuda:700".into()),
        signature: Some("s".into()),
        exit: Some(1),
        ..Reading::default()
    }
}

fn passing() -> Reading {
    Reading { class: Some(FailureClass::None), exit: Some(0), ..Reading::default() }
}

fn conclude(fail: Reading, pass: Reading) -> Conclusion {
    let mut run = |_: &Recipe, side: Side| Ok(if side == Side::Fail { fail.clone() } else { pass.clone() });
    verify(&recipe(), &mut run).unwrap().conclusion
}

#[test]
fn both_sides_have_to_come_out() {
    assert_eq!(conclude(failing(), passing()), Conclusion::Accepted);
    assert_eq!(
        conclude(passing(), passing()),
        Conclusion::NotAccepted("the side that must fail passed".into())
    );
    let both = conclude(failing(), failing());
    assert!(
        matches!(&both, Conclusion::NotAccepted(why) if why.starts_with("the side that must pass did not")),
        "{both:?}"
    );
}

#[test]
fn another_class_status_or_kernel_is_another_failure() {
    let class = Reading { class: Some(FailureClass::DeviceAssert), ..failing() };
    let code = Reading { code: Some("cuda:719".into()), ..failing() };
    let kernel = Reading { kernel: Some("other".into()), ..failing() };
    let nothing = Reading { class: Some(FailureClass::None), exit: Some(1), ..Reading::default() };
    for (reading, word) in [(class, "class"), (code, "status"), (kernel, "kernel"), (nothing, "class")] {
        let said = conclude(reading, passing());
        assert!(matches!(&said, Conclusion::NotAccepted(why) if why.contains(word)), "{said:?}");
    }
    let namespaced = Reading { kernel: Some("repro::fill".into()), ..failing() };
    assert_eq!(conclude(namespaced, passing()), Conclusion::Accepted);
    let silent = Reading { code: None, ..failing() };
    assert_eq!(conclude(silent, passing()), Conclusion::Accepted);
}

#[test]
fn what_cannot_run_is_neither() {
    let cannot = Reading { cannot: Some("no GPU".into()), exit: Some(3), ..Reading::default() };
    assert_eq!(conclude(cannot.clone(), passing()), Conclusion::CouldNot("no GPU".into()));
    assert_eq!(conclude(failing(), cannot), Conclusion::CouldNot("no GPU".into()));
}

/// Fails from 100 elements on; passes always on the other side.
#[test]
fn sizes_shrink_while_it_stays_true() {
    let mut start = recipe();
    start.sizes.insert("elements".into(), Size { value: 1000, least: 1 });
    let mut runs = 0;
    let mut run = |recipe: &Recipe, side: Side| {
        runs += 1;
        let large = recipe.size("elements") >= Some(100);
        Ok(if side == Side::Fail && large { failing() } else { passing() })
    };
    let found = verify(&start, &mut run).unwrap();
    assert_eq!(found.conclusion, Conclusion::Accepted);
    assert_eq!(found.recipe.size("elements"), Some(250));
    assert_eq!(found.tried.len(), 5, "{:?}", found.tried);
    assert!(found.tried[2].starts_with("elements 1 in place of 1,000: dropped"), "{:?}", found.tried);
    assert_eq!(runs, 7);
}

#[test]
fn a_smaller_one_with_another_signature_is_dropped() {
    let mut start = recipe();
    start.sizes.insert("ranks".into(), Size { value: 4, least: 2 });
    start.closer = Some(Sides { pass: "near".into(), fail: "past".into() });
    let mut run = |recipe: &Recipe, side: Side| {
        let other = recipe.size("ranks") < Some(4) || recipe.sides.fail == "past";
        let signature = Some(if other { "other" } else { "s" }.to_owned());
        Ok(if side == Side::Fail { Reading { signature, ..failing() } } else { passing() })
    };
    let found = verify(&start, &mut run).unwrap();
    assert_eq!((found.recipe.size("ranks"), found.recipe.sides.fail.as_str()), (Some(4), "fail"));
    assert_eq!(found.conclusion, Conclusion::Accepted);
}

#[test]
fn shrinking_stays_within_its_budget() {
    let mut start = recipe();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        start.sizes.insert(name.into(), Size { value: 1 << 40, least: 1 });
    }
    let mut runs = 0;
    let mut run = |recipe: &Recipe, side: Side| {
        runs += 1;
        let original = recipe.sizes.values().all(|size| size.value == 1 << 40);
        Ok(if side == Side::Fail && original { failing() } else { passing() })
    };
    verify(&start, &mut run).unwrap();
    assert!(runs <= SHRINK_RUNS + 2, "{runs}");
}
