//! Hostile names and texts: they stay data in every program, README and table.

use super::*;

/// Every program with hostile text wherever a text can be.
fn hostile() -> Vec<Plan> {
    let text = || HOSTILE.to_owned();
    let arguments = vec![
        Argument {
            name: text(),
            value: ArgumentValue::Buffer { bytes: 4, dtype: Some(text()), fill: Fill::Zero },
        },
        Argument { name: text(), value: ArgumentValue::Number { hex: "00".into(), shown: text() } },
    ];
    let launch = Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0, arguments };
    let launches = BTreeMap::from([(text(), launch)]);
    let collective = |fault| {
        Program::Collective(Collective { operation: text(), dtype: text(), fault, odd_rank: 1, timeout_s: 1 })
    };
    let operator = |operator| Program::Operator { operator, bad_index: -1, position: 0 };
    let programs = vec![
        Program::TritonReplay(TritonReplay {
            entry: text(),
            sweep: text(),
            images: vec![text()],
            launches: launches.clone(),
            backward: vec![Replayed { entry: text(), images: vec![text()], launches: launches.clone() }],
        }),
        Program::TritonSource(TritonSource {
            entry: text(),
            sweep: text(),
            source: text(),
            constants: BTreeMap::from([(text(), 1)]),
            warps: 4,
            launches: launches.clone(),
            backward: vec![Compiled {
                entry: text(),
                constants: BTreeMap::from([(text(), 1)]),
                warps: 4,
                launches,
            }],
        }),
        Program::SegfaultCall { function: text(), address: 0 },
        Program::SegfaultScript {
            script: text(),
            fail_arguments: vec![text()],
            pass_arguments: vec![text()],
        },
        operator(Operator::Embedding),
        operator(Operator::Index),
        operator(Operator::Gather),
        operator(Operator::CrossEntropy),
        Program::CudaRows { kernel: text(), columns: 8, element_bytes: 4 },
        Program::CudaGather { kernel: text(), threads: 32, position: 3, bad_index: 1 << 30 },
        Program::Graph,
        collective(CollectiveFault::Size),
        collective(CollectiveFault::Missing),
        Program::Symmetric { fault: WindowFault::Size, odd_rank: 1 },
        Program::Symmetric { fault: WindowFault::Outside, odd_rank: 1 },
    ];
    programs.into_iter().map(|program| Plan { recipe: dressed(program), assets: Vec::new() }).collect()
}

fn dressed(program: Program) -> Recipe {
    let text = || HOSTILE.to_owned();
    let expect = Expect {
        class: "illegal_address".into(),
        code: Some(text()),
        kernel: Some(text()),
        collective: Some(text()),
        text: vec![text()],
    };
    let mut recipe = Recipe::two_sided(text(), expect, program, [text(), text()]);
    for row in &mut recipe.rows {
        row.key = format!("{}{HOSTILE}", row.key);
    }
    recipe.rows.push(Row { key: text(), label: text(), expect: None });
    recipe.numbers = Some(text());
    recipe.sides = Sides { pass: recipe.rows[0].key.clone(), fail: recipe.rows[1].key.clone() };
    recipe.environment.insert(text(), text());
    recipe.versions.insert(text(), text());
    recipe.values.push(Value::new(text(), text(), Origin::Assumed, text()));
    recipe.notes.push(text());
    recipe.tried.push(text());
    recipe.sizes.insert("blocks".into(), Size { value: 2, least: 1 });
    recipe.sizes.insert(text(), Size { value: 2, least: 1 });
    recipe
}

fn written(plan: &Plan) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files(plan).unwrap() {
        std::fs::write(folder.path().join(&file.path), &file.bytes).unwrap();
    }
    folder
}

/// Whether a program is there; where not, the test says what it leaves out.
fn there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|out| out.status.success());
    if !found {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("no {program}: not checked\n").as_bytes(),
        );
    }
    found
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> (bool, String) {
    let out = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned())
}

/// A C++ text without its comments and literals; an error where one of them, or a bracket, has no end.
fn code_of_cpp(source: &str) -> Result<String, String> {
    let mut code = String::new();
    let mut open = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let (skipped, kept) = match c {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            '/' if rest.starts_with("/*") => (rest.find("*/").ok_or("a comment without an end")? + 2, false),
            '"' | '\'' => {
                (literal_end(rest, c).ok_or_else(|| format!("a literal without an end: {rest:.40}"))?, false)
            }
            _ => (c.len_utf8(), true),
        };
        if kept {
            code.push(c);
            match c {
                '(' | '[' | '{' => open.push(c),
                ')' | ']' | '}' => {
                    let pair = [('(', ')'), ('[', ']'), ('{', '}')];
                    let from = open.pop().ok_or("a bracket that nothing opened")?;
                    if !pair.contains(&(from, c)) {
                        return Err(format!("{from} ends with {c}"));
                    }
                }
                _ => {}
            }
        }
        rest = &rest[skipped..];
    }
    if open.is_empty() { Ok(code) } else { Err(format!("{open:?} stay open")) }
}

fn literal_end(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[test]
fn a_broken_cpp_text_is_told_from_a_whole_one() {
    assert_eq!(code_of_cpp("f(\"*/ }\"); // {\n/* ' */ '\\''").as_deref(), Ok("f(); \n "));
    for broken in ["f(\"a\n\")", "/* a", "f(}", "{", "'a"] {
        assert!(code_of_cpp(broken).is_err(), "{broken}");
    }
    let literal = literal::cpp(HOSTILE);
    assert_eq!(code_of_cpp(&format!("f({literal});")).as_deref(), Ok("f();"));
}

/// Cells of a Markdown table's row: bars that no backslash escapes.
fn bars(row: &str) -> usize {
    let mut escaped = false;
    row.chars()
        .filter(|&c| {
            let counts = c == '|' && !escaped;
            escaped = c == '\\' && !escaped;
            counts
        })
        .count()
}

#[test]
fn hostile_names_stay_data() {
    let (python, bash) = (there("python3"), there("bash"));
    let compile = ["-m", "py_compile", "repro.py"];
    let parse = ["-c", "import json; json.load(open('case.json'))"];
    for plan in hostile() {
        let kind = plan.recipe.kind().name();
        let folder = written(&plan);
        let at = folder.path();
        if python && at.join("repro.py").exists() {
            for arguments in [&compile[..], &parse[..]] {
                let (done, said) = run("python3", arguments, at);
                assert!(done, "{kind}: {said}");
            }
        }
        if bash {
            let (parsed, said) = run("bash", &["-n", "run.sh"], at);
            assert!(parsed, "{kind}: {said}");
            // Up to the usage line everything is assigned and nothing may run.
            let (_, said) = run("bash", &["run.sh", "nothing"], at);
            assert!(said.contains("usage") || said.contains("nvcc"), "{kind}: {said}");
        }
        assert!(!at.join("pwned").exists(), "{kind}");
        if let Ok(source) = std::fs::read_to_string(at.join("repro.cu")) {
            assert!(!source.contains("pwned"), "{source}");
            code_of_cpp(&source).unwrap();
        }
        let readme = std::fs::read_to_string(at.join("README.md")).unwrap();
        assert!(!readme.contains(['\u{1b}', '\0']), "{readme}");
        for row in readme.lines().filter(|line| line.starts_with('|')) {
            assert!([3, 4].contains(&bars(row)), "{row}");
        }
        let case = std::fs::read(at.join(CASE_FILE)).unwrap();
        assert_eq!(Recipe::read(&case).unwrap(), plan.recipe);
    }
}

#[test]
fn a_hostile_log_ends_in_the_same_place() {
    let log = std::fs::read_to_string("samples/cuda-int32-wrap-memcheck/run.log").unwrap();
    let log = log.replace("fill_rows(float *, int, int, int)", "f*/\"`touch pwned`'{{x}}(float *)");
    let plan = planned(
        &session(&[InputSpec::Text { name: "$(touch pwned)`x`|.log".into(), bytes: log.into_bytes() }]),
        &[("rows", "70000"), ("columns", "32768")],
        None,
    )
    .unwrap();
    let folder = written(&plan);
    let source = std::fs::read_to_string(folder.path().join("repro.cu")).unwrap();
    assert!(source.contains("__global__ void fill(") && !source.contains("pwned"), "{source}");
    if there("bash") {
        let (parsed, said) = run("bash", &["-n", "run.sh"], folder.path());
        assert!(parsed, "{said}");
    }
}
