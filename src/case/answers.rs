//! What the engineer says: shapes, sizes, settings, a model.
//!
//! In: answers, from flags or from the UI. Out: evidence with the provenance *answer*, and the shapes that named sizes make
//! together. An answer is believed as given and never rounded into more: what follows from it by arithmetic is evidence of
//! its own, derived.

use crate::arith::{DType, Shape};
use crate::read::environment;
use crate::read::event::{
    Data, EnvironmentFact, Event, ModelFacts, NamedValue, Origin, ShapeForm, ShapeMention, Span,
};
use crate::read::{model_config, shapes};
use crate::text::number::grouped;

use super::{Case, EvidenceId, Fact, InputId, Provenance};

/// One answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A shape of the failing launch.
    Shape(ShapeMention),
    /// A size, a setting or a version by name.
    Value(NamedValue),
    /// The model that ran.
    Model {
        /// Name of its file.
        path: String,
        /// What the file says.
        facts: Box<ModelFacts>,
    },
}

impl Answer {
    /// A shape as a person gives it.
    #[must_use]
    pub fn shape(shape: &Shape, dtype: Option<DType>) -> Self {
        let named = !shape.names().is_empty() && shape.names().iter().all(Option::is_some);
        let names = if named { shape.names().iter().flatten().cloned().collect() } else { Vec::new() };
        Self::Shape(ShapeMention {
            dims: shape.dims().to_vec(),
            names,
            dtype: dtype.map(|dtype| dtype.name().to_owned()),
            form: ShapeForm::Shape,
            ..ShapeMention::default()
        })
    }

    /// A value by its name.
    #[must_use]
    pub fn value(name: &str, value: &str) -> Self {
        Self::Value(NamedValue { name: name.to_owned(), value: value.to_owned() })
    }

    fn text(&self) -> String {
        match self {
            Self::Shape(mention) => words(mention),
            Self::Value(value) => format!("{}={}", value.name, value.value),
            Self::Model { path, facts } => format!("{path}: {}", model_config::sentence(facts)),
        }
    }
}

/// `M 234,624 × N 9,216 of bfloat16`
fn words(mention: &ShapeMention) -> String {
    let parts: Vec<String> = mention
        .dims
        .iter()
        .enumerate()
        .map(|(at, dim)| match mention.names.get(at) {
            Some(name) => format!("{name} {}", grouped(u128::from(*dim))),
            None => grouped(u128::from(*dim)),
        })
        .collect();
    let dtype = mention.dtype.as_deref().map(|dtype| format!(" of {dtype}")).unwrap_or_default();
    format!("{}{dtype}", parts.join(" × "))
}

impl Case {
    /// Takes answers as evidence; the same answer given twice counts once. Settings hold for the only input where there is
    /// just one, so that they speak about its run.
    pub fn take_answers(&mut self, answers: Vec<Answer>) {
        for answer in answers {
            let text = answer.text();
            let data = match answer {
                Answer::Shape(mention) => Data::Shape(mention),
                Answer::Value(value) if environment::is_fact(&value.name) => {
                    Data::Environment(EnvironmentFact { name: value.name, value: value.value })
                }
                Answer::Value(value) => Data::Value(value),
                Answer::Model { facts, .. } => Data::Model(facts),
            };
            if !self.answers().any(|(_, known)| known.data == data) {
                self.add_answer(stated(self.only_input(), data, text));
            }
        }
        self.shapes_of_named_sizes();
    }

    /// Answers, with their ids.
    pub fn answers(&self) -> impl Iterator<Item = (EvidenceId, &Event)> {
        self.evidence().iter().filter_map(|evidence| match (&evidence.provenance, &evidence.fact) {
            (Provenance::Answer, Fact::Event(event)) => Some((evidence.id, &**event)),
            _ => None,
        })
    }

    /// The element type that the engineer gives for what has none of its own.
    #[must_use]
    pub fn answered_dtype(&self) -> Option<DType> {
        self.answers()
            .filter_map(|(_, event)| match &event.data {
                Data::Value(value) if value.name == "dtype" => DType::find(&value.value),
                _ => None,
            })
            .last()
    }

    /// Named sizes of the answers, with their ids.
    fn named_sizes(&self) -> Vec<(EvidenceId, String, u64)> {
        self.answers()
            .filter_map(|(id, event)| match &event.data {
                Data::Value(value) => Some((id, value.name.clone(), value.size()?)),
                _ => None,
            })
            .collect()
    }

    /// `--set M=234624 --set N=9216` is a shape, as it would be on a line of a log.
    fn shapes_of_named_sizes(&mut self) {
        let sizes = self.named_sizes();
        let line: Vec<String> = sizes.iter().map(|(_, name, size)| format!("{name}={size}")).collect();
        for mut mention in shapes::of_named_sizes(&line.join(" ")) {
            let of = |name: &String| sizes.iter().find(|(_, known, _)| known == name).map(|(id, _, _)| *id);
            let from: Vec<EvidenceId> = mention.names.iter().filter_map(of).collect();
            mention.dtype = self.answered_dtype().map(|dtype| dtype.name().to_owned());
            let text = words(&mention);
            self.derive_shape(from, mention, text);
        }
    }

    /// A shape that follows from other evidence; the same one from the same evidence counts once.
    pub(super) fn derive_shape(&mut self, from: Vec<EvidenceId>, mention: ShapeMention, text: String) {
        let data = Data::Shape(mention);
        let known = self.evidence().iter().any(|evidence| {
            matches!(&evidence.provenance, Provenance::Derived(known) if *known == from)
                && matches!(&evidence.fact, Fact::Event(event) if event.data == data)
        });
        if !known && !from.is_empty() {
            let event = stated(InputId(u32::MAX), data, text);
            self.push(Provenance::Derived(from), Fact::Event(Box::new(event)));
        }
    }

    fn only_input(&self) -> InputId {
        InputId(if self.inputs().len() == 1 { 0 } else { u32::MAX })
    }
}

/// An event that stands on no line.
fn stated(input: InputId, data: Data, text: String) -> Event {
    Event { span: Span { input, line: 0, byte: 0, lines: 0 }, origin: Origin::default(), data, text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arith::parse::parse_shape;

    fn shapes_of(case: &Case) -> Vec<(String, Provenance)> {
        case.evidence()
            .iter()
            .filter_map(|evidence| match &evidence.fact {
                Fact::Event(event) if matches!(event.data, Data::Shape(_)) => {
                    Some((event.text.clone(), evidence.provenance.clone()))
                }
                _ => None,
            })
            .collect()
    }

    #[test]
    fn an_answer_is_evidence_once() {
        let mut case = Case::default();
        let shape = parse_shape("M=234624,N=9216").unwrap().shape;
        for _ in 0..2 {
            case.take_answers(vec![Answer::shape(&shape, Some(DType::BFloat16))]);
        }
        assert_eq!(shapes_of(&case), [("M 234,624 × N 9,216 of bfloat16".to_owned(), Provenance::Answer)]);
    }

    #[test]
    fn named_sizes_make_a_shape_that_names_where_it_comes_from() {
        let mut case = Case::default();
        case.take_answers(vec![Answer::value("rows", "70000"), Answer::value("dtype", "float32")]);
        assert_eq!(shapes_of(&case), []);
        case.take_answers(vec![Answer::value("cols", "32_768")]);
        let want = Provenance::Derived(vec![EvidenceId(1), EvidenceId(3)]);
        assert_eq!(shapes_of(&case), [("rows 70,000 × cols 32,768 of float32".to_owned(), want)]);
    }

    #[test]
    fn settings_and_versions_are_facts_and_other_names_are_values() {
        let mut case = Case::default();
        case.take_answers(vec![
            Answer::value("CUDA_LAUNCH_BLOCKING", "1"),
            Answer::value("torch", "2.8.0"),
            Answer::value("BLOCK_M", "128"),
        ]);
        let facts = case.answers().filter(|(_, event)| matches!(event.data, Data::Environment(_))).count();
        let values = case.answers().filter(|(_, event)| matches!(event.data, Data::Value(_))).count();
        assert_eq!((facts, values), (2, 1));
    }
}
