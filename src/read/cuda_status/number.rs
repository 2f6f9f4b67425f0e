//! CUDA status numbers inside messages: `code=700(`, `error=77`, `err 700 != CUDA_SUCCESS`, `cudaError_enum(0x000002bc)`.
//!
//! In: a message. Out: the number as printed. It leaves to the table what the number means.

use crate::read::pattern::Pattern;

static HEX: Pattern = Pattern::new(r"cudaError_enum\(0x0*([0-9a-fA-F]{1,4})\)");

/// Forms in which a number stands by itself, most telling first; group 1 is the number.
static FORMS: [Pattern; 14] = [
    Pattern::new(r"cudaError_enum\((\d{1,3})\)"),
    Pattern::new(r"(?i)\berr(?:or)?\s*=?\s*(\d{1,3}) != CUDA_SUCCESS"),
    Pattern::new(r"\((\d{1,3}) vs\.? 0\)|(?:^|[^-\d])(\d{1,3}) vs\.? 0\b"),
    Pattern::new(r"\b(?:cuda|cu|hip)[A-Z]\w+\(.*\)(?: returned)?:? (?:error )?(\d{1,3})\b"),
    Pattern::new(r"(?i)cuda.*\bfailed with error (\d{1,3})\b"),
    Pattern::new(r"cudaGetDeviceCount.*\bError (\d{1,3}):"),
    Pattern::new(r"(?i)cuda driver library init failure: (\d{1,3})\b"),
    Pattern::new(r"\[(\d{1,3})\] Call to \w+ results in"),
    Pattern::new(r"= (\d{1,3}) \(CUDA_ERROR"),
    Pattern::new(
        r"(?i)\b(?:cuda|hip)[\w:]*(?: driver| runtime| api| kernel)? ?(?:error|failure|status)\s*(?:code)?\s*[:#=]?\s*\(?(\d{1,3})(?:\b[^\w.]|at )",
    ),
    Pattern::new(r"(?i)\bcode\s*[=:]?\s*\(?(\d{1,3})\b"),
    Pattern::new(r"(?i)\berror\s*=\s*(\d{1,3})\b"),
    Pattern::new(r"(?i)\(error:? (\d{1,3})\b"),
    Pattern::new(r"(?i)\b(?:status|returned|result)\s*[:=]?\s*(\d{1,3})\b"),
];

static BRACKETED: Pattern = Pattern::new(r"\((\d{1,3})\)");

/// The status number that `text` prints; 0 (success) is none.
#[must_use]
pub fn number_in(text: &str) -> Option<u32> {
    if let Some(digits) = HEX.group(text, 1) {
        return u32::from_str_radix(digits, 16).ok().filter(|&number| number != 0);
    }
    // The forms end in a character that is no digit, so that a number at the end needs one.
    let padded = format!("{text} ");
    FORMS.iter().find_map(|form| {
        let found = form.captures(&padded)?;
        let digits = found.get(1).or_else(|| found.get(2))?;
        digits.as_str().parse().ok().filter(|&number: &u32| number != 0)
    })
}

/// A number in brackets, `misaligned address (716)`: it counts only where a text or name says the same.
#[must_use]
pub fn bracketed(text: &str) -> Option<u32> {
    BRACKETED.number(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_every_form() {
        let table = [
            ("CUDA error at ./k.cu:596 code=700(cudaErrorIllegalAddress) \"x()\"", 700),
            ("THCudaCheck FAIL file=a.cpp line=70 error=77 : an illegal", 77),
            ("cuda runtime error (77) : an illegal at a.cu:70", 77),
            ("failed with message: err 700 != CUDA_SUCCESS :: shimCuLaunchKernelEx(a)", 700),
            ("Check failed: error == cudaSuccess (77 vs. 0)  x", 77),
            ("77 vs 0. Error at: a.cc:3", 77),
            ("OSError: (External) CUDA error(719), unspecified launch failure.", 719),
            ("CUDA.CuError(code=CUDA.cudaError_enum(0x000002bc), meta=nothing)", 700),
            ("ERROR: CUDA error: an x (code 700, ERROR_ILLEGAL_ADDRESS)", 700),
            ("CUDA_ERROR_UNKNOWN (code: 700)", 700),
            ("NCCL WARN Cuda failure 700 'an x'", 700),
            ("CUDA failure 700: x ; GPU=0", 700),
            ("CUDA error 716 [/x/util_device.cuh, 351]: misaligned", 716),
            ("Failed to cudaFree pointer 0x7f (error 700 an x)", 700),
            ("CU: cuEventSynchronize(e) = 700 (CUDA_ERROR_ILLEGAL_ADDRESS): x", 700),
            (
                "numba.cuda.cudadrv.driver.CudaAPIError: [719] Call to cuMemcpyDtoH results in UNKNOWN_CUDA_ERROR",
                719,
            ),
            ("cudaDeviceSynchronize returned error code 719 after launching addKernel!", 719),
            ("cuMemCreate failed with status: 2", 2),
            ("CUDA error 700", 700),
            ("CUDA error #700 (cudaErrorIllegalAddress): x", 700),
            ("cuStreamSynchronize(): 700", 700),
            ("cuda execution failed with error 2", 2),
            ("cuda driver library init failure: 999. see", 999),
        ];
        for (text, number) in table {
            assert_eq!(number_in(text), Some(number), "{text}");
        }
    }

    #[test]
    fn other_numbers_are_left_alone() {
        for text in [
            "CUDA error: an illegal memory access",
            "code=0(cudaSuccess)",
            "CUDA 12.4 on 8 GPUs",
            "exit code: 0",
        ] {
            assert_eq!(number_in(text), None, "{text}");
        }
    }
}
