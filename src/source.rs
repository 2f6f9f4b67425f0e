//! stub until the room lands
/// kind
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// log
    Log,
    /// k
    KernelLog,
}
