//! Every kind of fault, with its line and key.

use super::*;

fn faults(text: &str) -> Vec<(u32, String, String)> {
    let library = Library::shipped();
    file("my.toml", text, &library).into_iter().map(|fault| (fault.line, fault.key, fault.message)).collect()
}

#[track_caller]
fn has(text: &str, line: u32, key: &str, message: &str) {
    let found = faults(text);
    assert!(
        found.iter().any(|(l, k, m)| *l == line && k == key && m.contains(message)),
        "expected {line} {key} {message:?} in {found:#?}"
    );
}

const HEAD: &str =
    "schema = 1\n[playbook]\nid = \"mine\"\ntitle = \"Mine\"\nclasses = [\"illegal_address\"]\n";

fn with(rest: &str) -> String {
    format!("{HEAD}{rest}")
}

fn step(id: &str, rest: &str) -> String {
    format!("[[step]]\nid = \"{id}\"\nkind = \"look\"\ntitle = \"t\"\nwhy = \"w\"\ncost = \"none\"\n{rest}")
}

#[test]
fn a_good_playbook_has_none() {
    let text = with(&step("one", "[[step.outcome]]\nwhen = \"verdict.failed\"\nreading = \"It failed.\"\n"));
    assert_eq!(faults(&text), []);
}

#[test]
fn unknown_keys_are_named_with_those_that_are_known() {
    has(
        &with(&step("one", "colour = \"red\"\n")),
        12,
        "step.colour",
        "unknown key; known here: answered, cost",
    );
    has(&format!("nonsense = 1\n{HEAD}"), 1, "nonsense", "unknown key");
    has(
        &with(&step("one", "[[step.outcome]]\nreading = \"r\"\ngo = \"end\"\n")),
        14,
        "step.outcome.go",
        "unknown key",
    );
}

#[test]
fn missing_and_mistyped_keys() {
    has(&with("[[step]]\nid = \"one\"\nkind = \"look\"\n"), 6, "step.title", "is missing");
    has(&with(&step("one", "").replace("\"look\"", "\"watch\"")), 8, "step.kind", "`watch` is no kind");
    has(&with(&step("one", "when = 5\n")), 12, "step.when", "expected a text");
    has(&HEAD.replace("illegal_address", "illegal"), 5, "playbook.classes", "`illegal` is no failure class");
    has(&HEAD.replace("schema = 1", "schema = 2"), 1, "schema", "this build reads 1");
    has("schema = 1\n[playbook\n", 2, "", "is no TOML here");
    has(&HEAD.replace("\"mine\"", "\"My Own\""), 3, "playbook.id", "is no id");
    has(HEAD, 2, "step", "there is none");
}

#[test]
fn branches_to_nowhere() {
    let text =
        with(&step("one", "[[step.outcome]]\nwhen = \"verdict.failed\"\nreading = \"r\"\ngoto = \"two\"\n"));
    has(&text, 15, "step.outcome.goto", "`two` is no step of this playbook");
    let to_playbook = text.replace("\"two\"", "\"index-overflow\"");
    assert_eq!(faults(&to_playbook), []);
}

#[test]
fn steps_that_no_outcome_reaches() {
    let text = with(&format!(
        "{}{}",
        step("one", "[[step.outcome]]\nreading = \"r\"\ngoto = \"end\"\n"),
        step("two", "shows = \"x\"\n")
    ));
    has(&text, 15, "step.id", "`two` is reached by no outcome");
}

#[test]
fn circles_without_an_exit() {
    let back = "[[step.outcome]]\nwhen = \"verdict.failed\"\nreading = \"r\"\ngoto = \"one\"\n[[step.outcome]]\nreading = \"r\"\ngoto = \"two\"\n";
    let text = with(&format!("{}{}", step("one", "shows = \"x\"\n"), step("two", back)));
    has(&text, 13, "step.outcome.goto", "goes round in a circle");
    let with_exit = text.replacen("goto = \"two\"", "goto = \"end\"", 1);
    assert_eq!(faults(&with_exit), []);
}

#[test]
fn conditions_that_cannot_be_evaluated() {
    let when = |condition: &str| {
        with(&step("one", &format!("[[step.outcome]]\nwhen = {condition:?}\nreading = \"r\"\n")))
    };
    has(&when("verdict.class =="), 13, "step.outcome.when", "can't be evaluated");
    has(&when("verdict.clas == 'nccl'"), 13, "step.outcome.when", "did you mean `verdict.class`?");
    has(&when("verdict.failed or verdict.code"), 13, "step.outcome.when", "no yes-or-no question");
    has(&when("verdict.failed or verdict.class | shout == 'X'"), 13, "step.outcome.when", "unknown filter");
    has(&when("verdict.cause is defined"), 13, "step.outcome.when", "ask known('name')");
    has(&when("answers.phase == 'x'"), 13, "step.outcome.when", "no ask step has the id `phase`");
    has(&when("outcomes.two == 'x'"), 13, "step.outcome.when", "no step has the id `two`");
    has(&when("this.failed"), 13, "step.outcome.when", "only the outcomes of a run or probe step");
    assert_eq!(faults(&when("not known('verdict.cause')")), []);
    has(&when("known('verdict.caus')"), 13, "step.outcome.when", "did you mean `verdict.cause`?");
}

#[test]
fn sentences_that_cannot_be_filled_in() {
    let reading = |text: &str| with(&step("one", &format!("[[step.outcome]]\nreading = {text:?}\n")));
    has(&reading("{{ shapes.first.safe | nn }}"), 13, "step.outcome.reading", "can't be filled in");
    has(
        &reading("{{ shapes.first.safes }}"),
        13,
        "step.outcome.reading",
        "did you mean `shapes.first.safe`?",
    );
    has(&reading("{{ unclosed"), 13, "step.outcome.reading", "can't be filled in");
}

#[test]
fn outcomes_after_the_last_one() {
    let text = with(&step(
        "one",
        "[[step.outcome]]\nreading = \"r\"\n[[step.outcome]]\nwhen = \"verdict.failed\"\nreading = \"r\"\n",
    ));
    has(&text, 12, "step.outcome.when", "only the last outcome may leave it out");
}

#[test]
fn twice_the_same_id() {
    let text = with(&format!("{}{}", step("one", "shows = \"x\"\n"), step("one", "shows = \"x\"\n")));
    has(&text, 13, "step.id", "`one` stands twice");
}

#[test]
fn signatures_that_do_not_do_what_their_samples_say() {
    let signature = |pattern: &str, yes: &str, no: &str| {
        with(&format!(
            "[[signature]]\nid = \"site\"\npattern = '{pattern}'\nclass = \"nccl\"\nmatch = ['{yes}']\nno_match = ['{no}']\n"
        ))
    };
    assert_eq!(faults(&signature("^ACME (?<code>\\d+)", "ACME 7", "acme 7")), []);
    has(&signature("(", "a", "b"), 8, "signature.pattern", "unclosed group");
    has(&signature("ACME \\d+", "ACME x", "b"), 10, "signature.match", "doesn't match `ACME x`");
    has(&signature("ACME", "ACME", "an ACME"), 11, "signature.no_match", "matches `an ACME`");
    has(&signature("x*", "x", ""), 8, "signature.pattern", "matches every line");
    has(&signature("x", "x", "y").replace("\"nccl\"", "\"nckl\""), 9, "signature.class", "no failure class");
}

#[test]
fn questions_runs_and_advice_have_keys_of_their_own() {
    let of = |kind: &str, rest: &str| with(&step("one", rest).replace("\"look\"", &format!("\"{kind}\"")));
    has(&of("ask", "question = \"q\"\nanswer = \"choice\"\n"), 6, "step.choices", "at least two");
    has(&of("ask", "question = \"q\"\nanswer = \"colour\"\n"), 13, "step.answer", "no kind of answer");
    has(&of("run", ""), 6, "step.environment", "a run changes something");
    has(&of("run", "environment = { \"A B\" = \"1\" }\n"), 12, "step.environment", "no variable's name");
    has(&of("run", "before = [\"x\"]\ncommand = [\"y\"]\n"), 6, "step.before", "with command there is none");
    has(&of("run", "before = [\"x\"]\ndeadline_s = 0\n"), 13, "step.deadline_s", "whole number of 1 or more");
    has(&of("apply", "text = \"t\"\nscope = \"hope\"\n"), 13, "step.scope", "no scope");
    has(&of("look", "question = \"q\"\n"), 12, "step.question", "unknown key");
}

#[test]
fn any_text_ends_in_faults_and_never_in_a_panic() {
    for text in [
        "",
        "schema",
        "[[step]]",
        "[[[[",
        "schema = 99999999999999999999",
        "playbook = 1\nstep = [1]\nsignature = {}",
    ] {
        assert!(!faults(text).is_empty(), "{text:?}");
    }
    let deep = format!("a = {}", "[".repeat(100_000));
    assert!(!faults(&deep).is_empty());
}
