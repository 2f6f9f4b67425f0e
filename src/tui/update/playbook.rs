//! What the engine wants after something was done in the walk.
//!
//! In: effects of the engine. Out: the model changed. A playbook that is walked in its pane sends its steps as
//! [`Cmd::Apply`](crate::tui::msg::Cmd::Apply) and gets its questions and runs here.

use crate::session::Effect;
use crate::tui::model::Model;

/// Takes effects in; those of an incident that was left are dropped.
pub fn effects(model: &mut Model, generation: u64, effects: Vec<Effect>) {
    if generation != model.generation {
        return;
    }
    for effect in effects {
        if let Effect::Refuse(why) = effect {
            model.say(crate::text::escape(&why).to_string());
        }
    }
}
