//! Traces against their launches.

use super::*;
use crate::read::event::{Data, InputId, ShapeForm};

const COMPILATION: &str = r##"{"event_type":"compilation","pid":435,"stack":[],"payload":{"metadata":{"hash":"3e10","target":{"backend":"cuda","arch":90},"triton_version":"3.6.0","name":"fused"},"file_path":{},"file_content":{"fused.ttir":"#loc = loc(\"a.py\":7:0)\nmodule {}","fused.ptx":".version 8.7"},"python_source":{"file_path":"a.py","start_line":6,"end_line":18,"code":"x"}}}"##;
const LAUNCH: &str = r#"{"event_type":"launch","pid":435,"name":"fused","function":2255,"stream":7,"grid":[1833,72],"compilation_metadata":{"hash":"3e10","name":"fused"},"extracted_args":{"y_ptr":{"type":"tensor","shape":[234624,9216],"dtype":"torch.bfloat16","device":"cuda:3","stride":[18432,1],"numel":2162294784,"is_contiguous":false,"element_size":2,"storage_offset":128,"data_ptr":"0x7f48c0000000"},"M":{"type":"int","value":234624},"alpha":{"type":"float","value":NaN},"act":{"type":"str","value":"silu"},"on":{"type":"bool","value":true}},"extracted_inductor_args":{},"stack":[{"line":49,"name":"xw","filename":"a.py","loc":"k[grid](x)"},{"line":744,"name":"run","filename":"/v/lib/python3.12/site-packages/triton/runtime/jit.py","loc":"launch"}],"timestamp":"2026-11-30T01:17:41.%fZ"}"#;

#[test]
fn the_last_launch_with_its_arguments() {
    let text = format!("{COMPILATION}\n{LAUNCH}\n");
    let trace = read(text.as_bytes());
    assert_eq!((trace.lines, trace.launch_records, trace.diagnostics.len()), (2, 1, 0));
    let launch = &trace.launches[0];
    assert_eq!((launch.kernel.as_str(), launch.grid, launch.stream), ("fused", Some([1833, 72, 1]), Some(7)));
    assert_eq!((launch.pid, launch.device, launch.line), (Some(435), Some(3), 2));
    assert_eq!(launch.integers().collect::<Vec<_>>(), [("M", 234_624), ("on", 1)]);
    let (name, tensor) = launch.tensors().next().unwrap();
    assert_eq!(
        (name, tensor.strides.as_slice(), tensor.storage_offset),
        ("y_ptr", &[18_432_i64, 1][..], Some(128))
    );
    assert_eq!((tensor.data_ptr, tensor.dtype.as_deref()), (Some(0x7f48_c000_0000), Some("bfloat16")));
    let from = launch.launched_from.as_ref().unwrap();
    assert_eq!((from.file.as_str(), from.line), ("a.py", Some(49)));
    let compilation = &trace.compilations[0];
    assert_eq!((compilation.target.as_deref(), compilation.hash.as_deref()), (Some("sm_90"), Some("3e10")));
    assert!(compilation.ttir.as_deref().unwrap().ends_with("module {}"));
    assert_eq!(compilation.place.as_ref().and_then(|place| place.line), Some(6));
}

#[test]
fn its_arguments_are_shapes_and_values_by_name() {
    let trace = read(format!("{COMPILATION}\n{LAUNCH}\n").as_bytes());
    let found = events(&trace, InputId(0));
    let Data::LaunchMention(mention) = &found[0].data else { panic!("{:?}", found[0]) };
    assert!(mention.last_of_trace);
    assert_eq!(
        mention.place.as_ref().map(|place| (place.file.as_str(), place.line)),
        Some(("a.py", Some(6)))
    );
    let shape = found.iter().find_map(|event| match &event.data {
        Data::Shape(shape) => Some(shape),
        _ => None,
    });
    let shape = shape.unwrap();
    assert_eq!((shape.label.as_deref(), shape.form), (Some("y_ptr"), ShapeForm::Argument));
    assert_eq!(
        (shape.dims.as_slice(), shape.strides.as_slice()),
        (&[234_624_u64, 9_216][..], &[18_432_i64, 1][..])
    );
    let values: Vec<String> = found
        .iter()
        .filter_map(|event| match &event.data {
            Data::Value(value) => Some(format!("{}={}", value.name, value.value)),
            _ => None,
        })
        .collect();
    assert_eq!(values, ["M=234624", "on=1"]);
    assert!(!found.iter().any(|event| matches!(event.data, Data::FaultingLaunch(_))));
}

#[test]
fn a_cut_last_line_is_kept_apart() {
    let text = format!("{COMPILATION}\n{LAUNCH}\n{}", &LAUNCH.replace("fused", "later")[..300]);
    let trace = read(text.as_bytes());
    assert_eq!(trace.launches.len(), 1);
    assert_eq!(trace.launches[0].kernel, "fused");
    assert_eq!(
        trace.diagnostics,
        [
            "its last line (3) is cut after 300 bytes: the record of a launch of later that was being written; it is not used"
        ]
    );
}

#[test]
fn repeated_launches_count_once_and_the_newest_stands_first() {
    let other = LAUNCH.replace("\"value\":234624", "\"value\":512");
    let text = format!("{COMPILATION}\n{}\n{}{other}\n", LAUNCH, format!("{LAUNCH}\n").repeat(50));
    let trace = read(text.as_bytes());
    assert_eq!((trace.launches.len(), trace.launch_records), (2, 52));
    assert_eq!(trace.launches[0].integers().next(), Some(("M", 512)));
}

#[test]
fn lines_that_are_no_records_do_no_harm() {
    for text in
        ["", "\n\n", "{}\n", "{\"event_type\":\"launch\"}\n", "{\"event_type\":\"launch\",[}\n", "\0\0"]
    {
        assert!(read(text.as_bytes()).launches.is_empty(), "{text:?}");
    }
}

/// Another program may have sorted the keys, and a text may quote a record.
#[test]
fn the_kind_may_stand_anywhere_in_its_record() {
    let long = format!("{:0>300}", 1);
    let sorted = LAUNCH.replace(
        "{\"event_type\":\"launch\",",
        &format!("{{\"attachment\":\"{long}\",\"event_type\": \"launch\","),
    );
    assert_eq!(read(sorted.as_bytes()).launch_records, 1);
    let quoted = format!("{{\"note\":\"{long} \\\"event_type\\\":\\\"launch\\\"\"}}\n");
    assert_eq!(read(quoted.as_bytes()).launch_records, 0);
}

#[test]
fn a_folder_called_triton_is_no_library() {
    let own = LAUNCH.replace("\"filename\":\"a.py\"", "\"filename\":\"/home/u/triton/a.py\"");
    let checkout = "/src/triton/python/triton/runtime/jit.py";
    let own = own.replace("/v/lib/python3.12/site-packages/triton/runtime/jit.py", checkout);
    let place = read(own.as_bytes()).launches[0].launched_from.clone().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("/home/u/triton/a.py", Some(49)));
}
