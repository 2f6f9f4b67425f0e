//! The shipped playbooks hold together.

use crate::playbook::{Library, check};

#[test]
fn every_shipped_playbook_passes_check() {
    let library = Library::shipped();
    let mut faults = library.faults().to_vec();
    for playbook in library.playbooks() {
        faults.extend(check::check(playbook, &library));
    }
    let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(text, Vec::<String>::new());
    assert_eq!(library.playbooks().len(), 13);
}

#[test]
fn playbooks_leave_out_of_a_dump_what_every_other_command_leaves_out() {
    let mut seen = 0;
    for (name, text) in crate::playbook::library::SHIPPED {
        for rest in text.split("CUDA_COREDUMP_GENERATION_FLAGS = \"").skip(1) {
            seen += 1;
            assert_eq!(rest.split('"').next(), Some(crate::tables::dump_flags::SMALL), "{name}");
        }
    }
    assert!(seen > 0);
}

#[test]
fn the_list_of_shipped_files_is_the_folder() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("playbooks");
    let mut there: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    there.sort();
    let mut listed: Vec<&str> = crate::playbook::library::SHIPPED.iter().map(|(name, _)| *name).collect();
    listed.sort_unstable();
    assert_eq!(listed, there);
}
