//! Which PTX instructions are known.
//!
//! In: an opcode. Out: whether it computes, touches memory in a way that the analysis follows, does neither, or may do
//! anything. Source: PTX ISA 9.0, list of instructions.

/// What an instruction does to memory, as far as an index analysis cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// None, or only memory that no 32-bit index of ours addresses.
    None,
    /// Reads global memory at its address operand.
    Load,
    /// Writes it.
    Store,
    /// Both.
    Atomic,
    /// Copies from global memory into shared memory; the second operand is the source.
    AsyncCopy,
    /// Addresses global memory in a way that isn't followed.
    Lost,
    /// Not a PTX instruction that is known here.
    Foreign,
}

const HARMLESS: &[&str] = &[
    "abs",
    "activemask",
    "add",
    "addc",
    "alloca",
    "and",
    "applypriority",
    "bar",
    "barrier",
    "bfe",
    "bfi",
    "bfind",
    "bmsk",
    "bra",
    "brev",
    "brkpt",
    "clusterlaunchcontrol",
    "clz",
    "cnot",
    "copysign",
    "cos",
    "createpolicy",
    "cvt",
    "cvta",
    "discard",
    "div",
    "dp2a",
    "dp4a",
    "elect",
    "ex2",
    "exit",
    "fence",
    "fma",
    "fns",
    "getctarank",
    "griddepcontrol",
    "isspacep",
    "istypep",
    "ldmatrix",
    "lg2",
    "lop3",
    "mad",
    "mad24",
    "madc",
    "mapa",
    "match",
    "max",
    "mbarrier",
    "membar",
    "min",
    "mma",
    "mov",
    "movmatrix",
    "mul",
    "mul24",
    "nanosleep",
    "neg",
    "not",
    "or",
    "pmevent",
    "popc",
    "prefetch",
    "prefetchu",
    "prmt",
    "rcp",
    "redux",
    "rem",
    "ret",
    "rsqrt",
    "sad",
    "selp",
    "set",
    "setmaxnreg",
    "setp",
    "shf",
    "shfl",
    "shl",
    "shr",
    "sin",
    "slct",
    "sqrt",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "sub",
    "subc",
    "suld",
    "suq",
    "sured",
    "sust",
    "szext",
    "tanh",
    "tcgen05",
    "tensormap",
    "testp",
    "tex",
    "tld4",
    "trap",
    "txq",
    "vote",
    "wgmma",
    "xor",
    "vabsdiff",
    "vadd",
    "vmad",
    "vmax",
    "vmin",
    "vset",
    "vshl",
    "vshr",
    "vsub",
    "vabsdiff2",
    "vadd2",
    "vavrg2",
    "vmax2",
    "vmin2",
    "vset2",
    "vsub2",
    "vabsdiff4",
    "vadd4",
    "vavrg4",
    "vmax4",
    "vmin4",
    "vset4",
    "vsub4",
    "brx",
];

/// What an instruction does.
pub(super) fn effect(opcode: &str) -> Effect {
    let mut parts = opcode.split('.');
    let base = parts.next().unwrap_or("");
    let has =
        |word: &str| opcode.split('.').any(|part| part == word || part.split("::").next() == Some(word));
    let elsewhere = (has("shared") || has("local") || has("const") || has("param")) && !has("global");
    match base {
        "cp" if opcode.starts_with("cp.async.bulk") || opcode.starts_with("cp.reduce") => {
            let waits = has("commit_group") || has("wait_group") || has("prefetch");
            if waits || !has("global") && !has("tensor") { Effect::None } else { Effect::Lost }
        }
        "cp" if has("global") => Effect::AsyncCopy,
        "cp" => Effect::None,
        "ld" | "ldu" if elsewhere => Effect::None,
        "ld" | "ldu" => Effect::Load,
        "st" if elsewhere || has("async") => Effect::None,
        "st" => Effect::Store,
        "atom" | "red" if elsewhere || has("async") => Effect::None,
        "atom" | "red" => Effect::Atomic,
        "wmma" if has("mma") => Effect::None,
        "wmma" if elsewhere => Effect::None,
        "wmma" | "multimem" | "call" => Effect::Lost,
        _ if HARMLESS.contains(&base) => Effect::None,
        _ => Effect::Foreign,
    }
}

/// Functions of the CUDA runtime that touch none of the caller's arrays.
pub(super) fn harmless_call(name: &str) -> bool {
    ["__assertfail", "__assert_fail", "vprintf", "printf", "malloc", "free"].contains(&name)
        || name.starts_with("__nv_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects() {
        assert_eq!(effect("ld.global.nc.v4.f32"), Effect::Load);
        assert_eq!(effect("ld.shared.u32"), Effect::None);
        assert_eq!(effect("ld.param.u64"), Effect::None);
        assert_eq!(effect("st.u32"), Effect::Store);
        assert_eq!(effect("cp.async.cg.shared.global"), Effect::AsyncCopy);
        assert_eq!(
            effect("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"),
            Effect::Lost
        );
        assert_eq!(effect("cp.async.commit_group"), Effect::None);
        assert_eq!(effect("atom.shared.cas.b32"), Effect::None);
        assert_eq!(effect("red.global.add.f32"), Effect::Atomic);
        assert_eq!(effect("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"), Effect::None);
        assert_eq!(effect("frobnicate.s32"), Effect::Foreign);
        assert_eq!(effect("?junk"), Effect::Foreign);
    }
}
