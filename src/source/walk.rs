//! The files of a folder.
//!
//! In: a folder. Out: its files in the order of their names (numbers by value), and what was passed over. It leaves
//! opening them to `open`.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::open::why;

/// Folders inside folders that are followed.
const DEPTH: usize = 48;

/// What a folder holds.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<PathBuf>,
    /// Folders and entries that can't be read, with the reason.
    pub(super) failed: Vec<(PathBuf, String)>,
    /// Names that begin with a dot.
    pub(super) hidden: usize,
    /// Pipes, sockets and devices.
    pub(super) special: usize,
    /// True where the bound on files was reached.
    pub(super) cut: bool,
}

/// Walks `root`, following links, each folder once, and takes at most `limit` files. One folder is open at a time.
pub(super) fn walk(root: &Path, limit: usize) -> Found {
    let mut found = Found::default();
    let mut seen = HashSet::new();
    let mut open = vec![(root.to_path_buf(), 0)];
    while let Some((path, depth)) = open.pop() {
        let metadata = match path.metadata() {
            Ok(metadata) => metadata,
            Err(error) => {
                found.failed.push((path, link_or(&error)));
                continue;
            }
        };
        if metadata.is_dir() {
            if depth <= DEPTH && seen.insert(identity(&metadata)) {
                match entries(&path, &mut found.hidden) {
                    // The stack gives back the last one first.
                    Ok(names) => {
                        open.extend(names.into_iter().rev().map(|name| (path.join(name), depth + 1)))
                    }
                    Err(error) => found.failed.push((path, why(&error))),
                }
            }
        } else if !metadata.is_file() {
            found.special += 1;
        } else if found.files.len() >= limit {
            found.cut = true;
            break;
        } else if seen.insert(identity(&metadata)) {
            found.files.push(path);
        }
    }
    found
}

/// Device and inode: the same for every path to one file.
pub(super) fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn link_or(error: &std::io::Error) -> String {
    let is_loop = error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error());
    match error.kind() {
        _ if is_loop => "is a link to itself".to_owned(),
        std::io::ErrorKind::NotFound => "is a link to nothing".to_owned(),
        _ => why(error),
    }
}

fn entries(folder: &Path, hidden: &mut usize) -> std::io::Result<Vec<std::ffi::OsString>> {
    let mut names = Vec::new();
    for entry in folder.read_dir()?.flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            *hidden += 1;
        } else if !is_documentation(name.as_encoded_bytes()) {
            names.push(name);
        }
    }
    names.sort_by(|a, b| by_name(a.as_encoded_bytes(), b.as_encoded_bytes()));
    Ok(names)
}

/// Notes about an incident quote its logs; read as logs they would count as a second witness. Named on their own they
/// are read.
fn is_documentation(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with(b".md") || lower.starts_with(b"readme")
}

/// Orders names so that `rank_2` stands before `rank_10`; names that differ in leading zeros only, by their bytes.
pub(super) fn by_name(a: &[u8], b: &[u8]) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (number_a, rest_a) = digits(left);
        let (number_b, rest_b) = digits(right);
        if !number_a.is_empty() && !number_b.is_empty() {
            let order = number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b));
            if order != Ordering::Equal {
                return order;
            }
            (left, right) = (rest_a, rest_b);
            continue;
        }
        match (left.split_first(), right.split_first()) {
            (Some((x, rest_a)), Some((y, rest_b))) if x == y => (left, right) = (rest_a, rest_b),
            (Some((x, _)), Some((y, _))) => return x.cmp(y),
            (None, None) => return a.cmp(b),
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
        }
    }
}

/// A number at the start, without its leading zeros, and what follows it. Zero is one zero.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let len = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(len);
    let zeros = number.iter().take(len.saturating_sub(1)).take_while(|&&byte| byte == b'0').count();
    (number.get(zeros..).unwrap_or_default(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn numbers_order_by_value() {
        let mut names = ["rank_10", "rank_2", "rank_02", "rank_1.log", "a", "rank", "rank_1"];
        names.sort_by(|a, b| by_name(a.as_bytes(), b.as_bytes()));
        assert_eq!(names, ["a", "rank", "rank_1", "rank_1.log", "rank_02", "rank_2", "rank_10"]);
    }

    #[test]
    fn links_in_a_circle_end_and_one_file_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("run/0")).unwrap();
        fs::write(root.join("run/0/a.log"), "a").unwrap();
        fs::write(root.join(".hidden"), "h").unwrap();
        symlink(root, root.join("run/up")).unwrap();
        symlink("itself", root.join("itself")).unwrap();
        symlink(root.join("nowhere"), root.join("broken")).unwrap();
        symlink(root.join("run/0/a.log"), root.join("zz.log")).unwrap();
        let found = walk(root, 100);
        assert_eq!(found.files, [root.join("run/0/a.log")]);
        assert_eq!((found.hidden, found.cut), (1, false));
        assert_eq!(
            found.failed,
            [
                (root.join("broken"), "is a link to nothing".to_owned()),
                (root.join("itself"), "is a link to itself".to_owned())
            ]
        );
    }

    #[test]
    fn the_bound_on_files_holds() {
        let folder = tempfile::tempdir().unwrap();
        for n in 0..5 {
            fs::write(folder.path().join(format!("{n}.log")), "x").unwrap();
        }
        let found = walk(folder.path(), 3);
        assert_eq!((found.files.len(), found.cut), (3, true));
    }
}
