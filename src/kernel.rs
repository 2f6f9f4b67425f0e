//! What was compiled.
pub mod analyze;
pub mod bind;
pub mod carry;
pub mod check;
pub mod interval;
pub mod launch;
pub mod location;
pub mod model;
pub mod ptx;
pub mod solve;
pub mod sweep;
pub mod sym;
pub mod ttir;
mod unmasked;

#[cfg(test)]
mod tests {
    use super::analyze::*;
    use super::bind::Bindings;
    use super::*;
    #[test]
    fn try_all() {
        let Ok(list) = std::env::var("TTIR") else { return };
        let set = std::env::var("SET").unwrap_or_default();
        for path in list.split(',') {
            let text = std::fs::read_to_string(path).unwrap();
            let t = std::time::Instant::now();
            let models: Vec<_> = if path.ends_with(".ptx") {
                let module = ptx::parse(&text);
                println!("parsed {:?}", t.elapsed());
                module.entries.iter().map(|e| ptx::lower(&module, e)).collect()
            } else {
                let module = ttir::parse(&text);
                module.functions.iter().map(|f| ttir::lower(&module, f)).collect()
            };
            for m in models {
                println!("lowered {:?}", t.elapsed());
                let k = Kernel::new(m);
                let mut b = Bindings::default();
                for s in set.split(' ').filter(|s| !s.is_empty()) { b.set(s).unwrap(); }
                if let Ok(l) = std::env::var("LATTICE") { b.set_lattice(&l).unwrap(); }
                if let Ok(g) = std::env::var("GRID") { b.set_grid(&g).unwrap(); }
                let a = analyze(&k, &b);
                println!("{path} {} {:?} accesses {} undecided {} nodes {} {:?}", a.entry, a.answer, a.accesses, a.undecided, k.model.dag.len(), t.elapsed());
                for s in &a.stated { println!("   stated {s}"); }
                for u in &a.unknown { println!("   unknown {} {:?}", u.what, u.location.as_ref().map(|l| l.to_string())); }
                for f in &a.findings {
                    println!("   {:?} {} | {} at {:?} max {:?} w {:?} n{}", f.kind, f.expression, f.reaches, f.location.as_ref().map(|l| l.to_string()), f.max_value, f.witness, f.accesses.len());
                    if let Ok(n) = std::env::var("SWEEP") { let t = std::time::Instant::now(); println!("     sweep {:?} {:?}", sweep::sweep(&k, &b, &n, &f.accesses, 1<<26), t.elapsed()); }
                }
                if let Ok(n) = std::env::var("LIMIT") { println!("     limit {:?}", sweep::machine_limit(&k, &b, &n)); }
                for c in &a.complaints { println!("   complaint {} {}", c.line, c.message); }
            }
        }
    }
}
