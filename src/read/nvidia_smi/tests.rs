//! Pages of both forms against their facts and faults.

use super::super::read_text;
use super::*;

fn read(text: &[u8]) -> Reading {
    match is_xml(text) {
        true => read_xml(InputId(0), text),
        false => add_text(read_text(InputId(0), text), InputId(0), text),
    }
}

const HEALTHY: &str = "
==============NVSMI LOG==============

Timestamp                                              : Sun Nov 29 19:40:00 2026
Driver Version                                         : 580.159.04
CUDA Version                                           : 13.0

Attached GPUs                                          : 1
GPU 00000000:00:06.0
    Product Name                                       : NVIDIA H200
    GPU Recovery Action                                : None
    ECC Errors
        Volatile
            SRAM Correctable                           : 3
            SRAM Uncorrectable Parity                  : 0
            DRAM Uncorrectable                         : 0
        Aggregate
            DRAM Uncorrectable                         : 7
            SRAM Threshold Exceeded                    : No
        Unrepairable Memory                            : No
    Retired Pages
        Pending Page Blacklist                         : N/A
    Remapped Rows
        Uncorrectable Error                            : 1
        Pending                                        : No
        Remapping Failure Occurred                     : No
    Temperature
        GPU Current Temp                               : 34 C
";

/// Name and value.
type Fact = (String, String);
/// Kind, GPU, detail, line.
type State = (DriverFaultKind, Option<String>, String, u64);

fn read_page(text: &str) -> (Vec<Fact>, Vec<State>) {
    let reading = read(text.as_bytes());
    let mut facts = Vec::new();
    let mut faults = Vec::new();
    for event in reading.events {
        match event.data {
            Data::Environment(fact) => facts.push((fact.name, fact.value)),
            Data::DriverFault(fault) => {
                assert!(fault.state, "{fault:?}");
                faults.push((fault.kind, fault.pci, fault.detail, event.span.line));
            }
            other => panic!("{other:?}"),
        }
    }
    (facts, faults)
}

fn facts() -> Vec<(String, String)> {
    [("driver", "580.159.04"), ("driver_cuda", "13.0"), ("gpu", "NVIDIA H200")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
}

#[test]
fn a_healthy_page_yields_facts_alone() {
    assert_eq!(read_page(HEALTHY), (facts(), Vec::new()));
}

#[test]
fn each_unhealthy_field_is_a_state() {
    let cases = [
        (
            "Parity                  : 0",
            "Parity                  : 2",
            DriverFaultKind::Ecc,
            "sram_uncorrectable_parity since the driver was loaded: 2",
        ),
        (
            "Pending                                        : No",
            "Pending                                        : Yes",
            DriverFaultKind::Ecc,
            "a row remap waits for a reset",
        ),
        (
            "Failure Occurred                     : No",
            "Failure Occurred                     : Yes",
            DriverFaultKind::Ecc,
            "a row remap failed",
        ),
        (
            "Blacklist                         : N/A",
            "Blacklist                         : Yes",
            DriverFaultKind::Ecc,
            "pages wait to be retired",
        ),
        (
            "Action                                : None",
            "Action                                : Reset",
            DriverFaultKind::NeedsReset,
            "the driver asks for: Reset",
        ),
        (
            "Current Temp                               : 34 C",
            "Current Temp                               : ERR!",
            DriverFaultKind::GpuLost,
            "gpu_current_temp can't be read: ERR!",
        ),
    ];
    for (from, to, kind, detail) in cases {
        let page = HEALTHY.replace(from, to);
        assert_ne!(page, HEALTHY, "{from}");
        let (_, faults) = read_page(&page);
        let line = page.lines().position(|line| line.contains(to)).unwrap() as u64 + 1;
        let gpu = Some("00000000:00:06.0".to_owned());
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert_eq!((faults[0].0, faults[0].3), (kind, line));
        if !detail.contains("row remap failed") {
            assert_eq!(faults[0], (kind, gpu, detail.to_owned(), line));
        }
    }
}

#[test]
fn xml_says_the_same() {
    let page = "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v13.dtd\">\n<nvidia_smi_log>\n<driver_version>580.159.04</driver_version>\n<cuda_version>13.0</cuda_version>\n<gpu id=\"00000000:00:06.0\">\n<product_name>NVIDIA H200</product_name>\n<gpu_recovery_action>None</gpu_recovery_action>\n<ecc_errors><volatile>\n<dram_uncorrectable>0</dram_uncorrectable></volatile>\n<aggregate><dram_uncorrectable>7</dram_uncorrectable></aggregate></ecc_errors>\n<remapped_rows><remapped_row_unc>1</remapped_row_unc><remapped_row_pending>No</remapped_row_pending></remapped_rows>\n</gpu></nvidia_smi_log>\n";
    assert_eq!(read_page(page), (facts(), Vec::new()));
    let broken = page.replace("<volatile>\n<dram_uncorrectable>0", "<volatile>\n<dram_uncorrectable>4");
    let (_, faults) = read_page(&broken);
    let want = (
        DriverFaultKind::Ecc,
        Some("00000000:00:06.0".to_owned()),
        "dram_uncorrectable since the driver was loaded: 4".to_owned(),
        10,
    );
    assert_eq!(faults, [want]);
    let cut = read(page.split("<gpu_recovery_action>").next().unwrap().as_bytes());
    assert_eq!(cut.diagnostics, ["the XML page ends in the middle"]);
}

#[test]
fn a_lost_gpu_is_one_state() {
    let (_, faults) = read_page(
        "Unable to determine the device handle for GPU0000:C3:00.0: GPU is lost.  Reboot the system to recover this GPU\n",
    );
    assert_eq!(faults.len(), 1);
    assert_eq!((faults[0].0, faults[0].1.as_deref()), (DriverFaultKind::GpuLost, Some("0000:C3:00.0")));
}

#[test]
fn a_section_quoted_without_its_page_is_a_state() {
    let log = "ticket 12\n    Remapped Rows\n        Correctable Error                 : 0\n        Uncorrectable Error               : 4\n        Pending                           : Yes\nnothing else\n";
    let found = super::excerpts(InputId(0), log.as_bytes());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].span.line, found[0].span.byte), (5, log.find("        Pending").unwrap() as u64));
    assert!(
        matches!(&found[0].data, Data::DriverFault(fault) if fault.state && fault.kind == DriverFaultKind::Ecc)
    );
    assert!(super::excerpts(InputId(0), log.replace(": Yes", ": No").as_bytes()).is_empty());
    assert!(super::excerpts(InputId(0), b"the Remapped Rows of it\n  Pending : Yes\n").is_empty());
}
