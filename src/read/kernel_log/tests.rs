//! Kernel lines against their fields.

use super::super::event::{Data, DriverFault, DriverFaultKind, Event, InputId, KernelSegfault, OomKill, Xid};
use super::super::read_text;

fn events(text: &str) -> Vec<Event> {
    read_text(InputId(0), text.as_bytes()).events
}

fn xids(text: &str) -> Vec<Xid> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::Xid(xid) = event.data { Some(xid) } else { None })
        .collect()
}

fn faults(text: &str) -> Vec<DriverFault> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::DriverFault(fault) = event.data { Some(fault) } else { None })
        .collect()
}

fn kills(text: &str) -> Vec<OomKill> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::OomKill(kill) = event.data { Some(kill) } else { None })
        .collect()
}

fn segfaults(text: &str) -> Vec<KernelSegfault> {
    events(text)
        .into_iter()
        .filter_map(|event| if let Data::KernelSegfault(fault) = event.data { Some(fault) } else { None })
        .collect()
}

#[test]
fn page_faults() {
    let text = "[  152.789234] NVRM: Xid (PCI:0000:00:06): 31, pid=1714, name=python3, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC5 GPCCLIENT_T1_6 faulted @ 0x7fe0_b8009000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE\n";
    let wanted = Xid {
        xid: 31,
        pci: Some("0000:00:06".to_owned()),
        pid: Some(1714),
        process: Some("python3".to_owned()),
        detail: "channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC5 GPCCLIENT_T1_6 faulted @ 0x7fe0_b8009000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE".to_owned(),
        address: Some(0x7fe0_b800_9000),
        fault_type: Some("FAULT_PDE".to_owned()),
        access: Some("write".to_owned()),
        engine: Some("GRAPHICS".to_owned()),
        unit: Some("GPC5 GPCCLIENT_T1_6".to_owned()),
        count: 1,
        ..Xid::default()
    };
    assert_eq!(xids(text), [wanted]);
    let machine = "NVRM: Xid (PCI:0000:00:06): 31, pid=1377, name=crash, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1 UNRECOGNIZED_CLIENT faulted @ 0x1827ee_0003fc88. Fault is of type UNRECOGNIZED_FAULT UNRECOGNIZED_ACCESS_TYPE\n";
    let found = &xids(machine)[0];
    assert_eq!((found.address, found.access.as_deref()), (None, None));
}

#[test]
fn engine_exceptions() {
    let text = "[  118.078209] NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Warp Exception on (GPC 1, TPC 7, SM 0): MMU Fault\n[  118.079695] NVRM: Xid (PCI:0000:00:06): 13, Graphics Exception: ESR 0x51c730=0x8000017 0x51c734=0x20 0x51c728=0x1f81fb60 0x51c72c=0x1174\n";
    let found = xids(text);
    assert_eq!(
        (found[0].unit.as_deref(), found[0].sm_reason.as_deref()),
        (Some("GPC 1, TPC 7, SM 0"), Some("MMU Fault"))
    );
    assert_eq!((found[1].esr, found[1].pid), (Some(0x17), None));
}

#[test]
fn repeats_fold_and_old_forms_read() {
    let text = "NVRM: Xid (0000:03:00): 43, Ch 00000010\nNVRM: Xid (0000:03:00): 43, Ch 00000010\nNVRM: Xid (0000:03:00): 43, Ch 00000010\n";
    let found = events(text);
    assert_eq!((found.len(), found[0].span.lines), (1, 3));
    assert!(
        matches!(&found[0].data, Data::Xid(xid) if xid.count == 3 && xid.pci.as_deref() == Some("0000:03:00"))
    );
    let quoted = &xids(
        "NVRM: Xid (PCI:0000:c3:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
    )[0];
    assert_eq!(
        (quoted.pid, &quoted.process, quoted.detail.as_str()),
        (None, &None, "GPU has fallen off the bus.")
    );
    assert_eq!(
        xids("NVRM: Xid (PCI:...): 45, pid=12, name=python3, Ch 00000008, caused by previous Xid 31\n")[0]
            .caused_by,
        Some(31)
    );
    assert_eq!(xids("NVRM: Xid (PCI:0000:18:00): 154, pid=7, name=python3, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)\n")[0].xid, 154);
}

#[test]
fn reprints_count_and_network_cards_do_not() {
    let plugin = &xids(
        "I0101 00:00:00.000000 1 health.go:1] XidCriticalError: Xid=69 on Device=GPU-1f2e, the device will go unhealthy.\n",
    )[0];
    assert_eq!((plugin.xid, plugin.pci.as_deref()), (69, None));
    assert!(xids("r8169 0000:03:00.0 eth0: RTL8168h/8111h, 00:11:22:33:44:55, XID 641, IRQ 51\n").is_empty());
    assert!(xids("r8169 0000:03:00.0 eth0: RTL8125B, XID 641 near GPU\n").is_empty());
}

#[test]
fn driver_faults() {
    let kinds =
        |text: &str| faults(text).into_iter().map(|fault| (fault.kind, fault.pci)).collect::<Vec<_>>();
    let lost = "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\nNVRM: fallen off the bus and is not responding to commands.\n";
    assert_eq!(kinds(lost), [(DriverFaultKind::GpuLost, Some("0000:b3:00.0".to_owned()))]);
    assert_eq!(
        kinds("[ 3.1] NVRM: GPU 0000:1b:00.0: RmInitAdapter failed! (0x62:0xffff:2477)\n"),
        [(DriverFaultKind::Init, Some("0000:1b:00.0".to_owned()))]
    );
    assert_eq!(
        kinds("Failed to initialize NVML: Driver/library version mismatch\n"),
        [(DriverFaultKind::VersionMismatch, None)]
    );
    assert_eq!(
        kinds("NVRM: API mismatch: the client has the version 535.54.03, but\n"),
        [(DriverFaultKind::VersionMismatch, None)]
    );
    assert_eq!(
        kinds("Unable to determine the device handle for GPU0000:C3:00.0: Unknown Error\n"),
        [(DriverFaultKind::GpuLost, Some("0000:C3:00.0".to_owned()))]
    );
    assert_eq!(
        kinds("RuntimeError: Found no NVIDIA driver on your system. Please check\n"),
        [(DriverFaultKind::NoDevice, None)]
    );
    assert_eq!(
        kinds("NVRM: _kgspIsHeartbeatTimedOut: GSP RM heartbeat timed out\n"),
        [(DriverFaultKind::Gsp, None)]
    );
    assert!(
        kinds("pcieport 0000:16:01.0: AER: Corrected error message received from 0000:17:00.0\n").is_empty()
    );
    assert_eq!(
        kinds("nvidia-nvswitch0: SXid (PCI:0000:07:00.0): 12028, Non-fatal, Link 32 egress\n"),
        [(DriverFaultKind::Nvlink, Some("0000:07:00.0".to_owned()))]
    );
    assert!(
        kinds("[   38.532655] NVRM: GPU at PCI:0000:00:07: GPU-00000000-1111-2222-3333-444444444444\n")
            .is_empty()
    );
}

#[test]
fn segmentation_faults() {
    let text = "[  278.542900] python3[2431]: segfault at 0 ip 00007f6bbab9bc5c sp 00007ffc9f314098 error 4 in libc.so.6[19bc5c,7f6bbaa28000+189000] likely on CPU 15 (core 15, socket 0)\n";
    let wanted = KernelSegfault {
        comm: "python3".to_owned(),
        pid: Some(2431),
        address: Some(0),
        ip: Some(0x7f6b_bab9_bc5c),
        error: Some(4),
        library: Some("libc.so.6".to_owned()),
        offset: Some(0x19_bc5c),
        cpu: Some(15),
        general_protection: false,
    };
    assert_eq!(segfaults(text), [wanted]);
    let old = "Jan  2 15:04:05 h kernel: pt_main_thread[77]: segfault at 7f10 ip 00007f0000001234 sp 00007ffc error 14 in libcuda.so.1[7f0000000000+189000]\n";
    let found = &segfaults(old)[0];
    assert_eq!(
        (found.offset, found.error, found.library.as_deref()),
        (Some(0x1234), Some(0x14), Some("libcuda.so.1"))
    );
    let protection = "traps: python[99] general protection fault ip:7f0000000010 sp:7ffd error:0 in libtorch.so[7f0000000000+99]\n";
    let found = &segfaults(protection)[0];
    assert_eq!((found.general_protection, found.offset, found.comm.as_str()), (true, Some(0x10), "python"));
    let text = &segfaults(
        "a[1]: segfault at 6f6c6c6548 ip 00007f0000001234 sp 00007ffc error 4 in a[7f0000000000+1000]\n",
    )[0];
    assert_eq!(text.address, Some(0x6f_6c6c_6548));
    let opcode = events("traps: python3[5] trap invalid opcode ip:55 sp:7f error:0 in python3[5+1]\n");
    assert!(matches!(&opcode[0].data, Data::Signal(signal) if signal.signal == 4 && signal.pid == Some(5)));
}

#[test]
fn memory_kills() {
    let text = "[1234.5] Out of memory: Killed process 4321 (python3) total-vm:99kB, anon-rss:1024kB, file-rss:0kB\n";
    let wanted = OomKill {
        pid: Some(4321),
        process: Some("python3".to_owned()),
        anon_rss_bytes: Some(1_048_576),
        cgroup: false,
    };
    assert_eq!(kills(text), [wanted]);
    let cgroup = &kills(
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,task_memcg=/x,task=pt_data,pid=7,uid=0\n",
    )[0];
    assert_eq!((cgroup.pid, cgroup.process.as_deref(), cgroup.cgroup), (Some(7), Some("pt_data"), true));
    assert!(kills("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=12.batch cgroup. Some of your processes may have been killed\n")[0].cgroup);
    assert!(kills("    Reason:       OOMKilled\n")[0].cgroup);
    assert!(kills("\"OOMKilled\": false,\n").is_empty());
}

#[test]
fn a_call_of_the_killer_counts_where_no_kill_follows() {
    let asked =
        "[1.5] python3 invoked oom-killer: gfp_mask=0x1, order=0, oom_score_adj=0\n[1.6] Call Trace:\n";
    assert_eq!(kills(asked), [OomKill::default()]);
    let both = format!("{asked}[1.9] Out of memory: Killed process 4321 (python3) total-vm:99kB\n");
    assert_eq!(kills(&both).len(), 1);
    assert_eq!(kills(&both)[0].pid, Some(4321));
}

#[test]
fn rays_memory_monitor_tells_of_kills_and_of_none() {
    let task = "Memory on the node (IP: 10.0.0.1, ID: ab) where the task (actor ID: cd, name=W.__init__, pid=308, memory used=11.15GB) was running was 12.49GB / 13.15GB (0.950003), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: ef) because it was the most recently scheduled task.\n";
    assert_eq!(kills(task), [OomKill { pid: Some(308), ..OomKill::default() }]);
    let count = |killed: u32| {
        format!(
            "(raylet) node_manager.cc:3069: {killed} Workers (tasks / actors) killed due to memory pressure (OOM), 2 Workers crashed due to other reasons at node (ID: ab, IP: 10.0.0.1)\n"
        )
    };
    assert_eq!(kills(&count(1)).len(), 1);
    assert!(kills(&count(0)).is_empty());
}

#[test]
fn tegras_driver_prints_its_page_faults_in_other_words() {
    let text = "nvgpu: 17000000.gpu      gv11b_fb_mmu_fault_info_dump:294  [ERR]  [MMU FAULT] mmu engine id:  18, ch id:  479, fault addr: 0x0, fault addr aperture: 0, fault type: invalid pde, access type: virt read,\nnvgpu: 17000000.gpu      gv11b_fb_mmu_fault_info_dump:307  [ERR]  [MMU FAULT] protected mode: 0, client type: hub\n";
    let found: Vec<Xid> = events(text)
        .into_iter()
        .filter_map(|event| if let Data::Xid(xid) = event.data { Some(xid) } else { None })
        .collect();
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].xid, found[0].address, found[0].fault_type.as_deref(), found[0].access.as_deref()),
        (31, Some(0), Some("invalid pde"), Some("read"))
    );
}

#[test]
fn the_history_of_firmware_calls_tells_of_a_failed_one() {
    let found = events("[   84.738339] NVRM: GPU6 RPC event history (CPU <- GSP):\n");
    assert!(matches!(&found[0].data, Data::DriverFault(fault) if fault.kind == DriverFaultKind::Gsp));
}
