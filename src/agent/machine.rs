//! The agent loop as a state machine (B27, B28): what happened goes in, what to do next comes
//! out. Pure: no clock, disk or network; `runner` carries the effects out.

/// How many empty answers in a row are asked again, and how many cut ones.
const SECOND_CHANCES: u32 = 2;

/// How often the plan is put before the model: every so many turns, the first included (B52).
const PLAN_EVERY: u32 = 10;

/// What differs between runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Turns: calls of the model.
    pub turns: u32,
    /// What the last turn is for.
    pub last_turn: LastTurn,
    /// Who carries tool calls out.
    pub tools: Tools,
}

/// What the last turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastTurn {
    /// As any other.
    Ordinary,
    /// Tools are withheld and the answer is asked for (A20).
    AnswerOnly,
}

/// Who carries tool calls out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tools {
    /// The run itself.
    Run,
    /// The caller, who goes on with their results (`auto_execute_tools = false`).
    HandOver,
}

/// What a model answered, as far as the loop cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// How many tools it calls.
    pub calls: usize,
    /// Whether it says anything.
    pub has_text: bool,
    /// Whether it was cut off by a length limit.
    pub cut: bool,
    /// Whether a person's message waits for it.
    pub message_waits: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The run begins.
    Begin,
    /// The model answered.
    Answered(Answered),
    /// All calls of the answer have a result.
    Executed {
        /// Whether the agent repeats itself beyond hope (B31).
        in_a_loop: bool,
    },
    /// The run has to end for a reason outside the loop.
    Interrupt(Ending),
}

/// What to do, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Put the plan into the history, if there is one.
    InjectPlan,
    /// Say that no tools are left and the answer is due.
    SayLastTurn,
    /// Say that the last answer was empty.
    SayEmpty,
    /// Say that the last answer was cut off.
    SayCut,
    /// Call the model.
    Call {
        /// Whether it may call tools.
        allow_tools: bool,
    },
    /// Store the answer.
    Record,
    /// Give every call of the answer a result by running it.
    Execute,
    /// Give every call of the answer a result that says there are no more tools.
    RefuseCalls,
    /// End.
    Finish(Ending),
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a text.
    Completed,
    /// Out of turns.
    TurnLimit,
    /// Repeating itself.
    DoomLoop,
    /// With nothing said, several times.
    EmptyAnswers,
    /// The caller carries the calls out.
    HandedOver,
    /// Stopped by a person.
    Stopped,
    /// The provider failed for good.
    Provider,
    /// A budget is used up.
    Budget,
    /// Nobody could answer a question.
    NeedsHuman,
}

/// The loop.
#[derive(Clone, Debug)]
pub struct Machine {
    limits: Limits,
    turn: u32,
    tools_allowed: bool,
    poor_answers: u32,
    ended: bool,
}

impl Machine {
    /// A loop that has not begun.
    pub fn new(limits: Limits) -> Self {
        Self { limits, turn: 0, tools_allowed: true, poor_answers: 0, ended: false }
    }

    /// Turns begun.
    pub fn turns(&self) -> u32 {
        self.turn
    }

    /// Whether it has ended.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Takes what happened, returns what to do.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        if self.ended {
            return Vec::new();
        }
        match input {
            Input::Begin => self.next_turn(Vec::new()),
            Input::Answered(answer) => self.answered(answer),
            Input::Executed { in_a_loop: true } => self.finish(Vec::new(), Ending::DoomLoop),
            Input::Executed { in_a_loop: false } => self.next_turn(Vec::new()),
            Input::Interrupt(ending) => self.finish(Vec::new(), ending),
        }
    }

    fn answered(&mut self, answer: Answered) -> Vec<Effect> {
        match answer {
            Answered { calls: 0, has_text: false, .. } => self.poor(Vec::new(), Effect::SayEmpty, Ending::EmptyAnswers),
            Answered { calls: 0, cut: true, .. } => self.poor(vec![Effect::Record], Effect::SayCut, Ending::Completed),
            Answered { calls: 0, message_waits: true, .. } => self.next_turn(vec![Effect::Record]),
            Answered { calls: 0, .. } => self.finish(vec![Effect::Record], Ending::Completed),
            Answered { .. } if !self.tools_allowed => {
                self.finish(vec![Effect::Record, Effect::RefuseCalls], Ending::TurnLimit)
            }
            Answered { .. } => {
                self.poor_answers = 0;
                match self.limits.tools {
                    Tools::Run => vec![Effect::Record, Effect::Execute],
                    Tools::HandOver => self.finish(vec![Effect::Record], Ending::HandedOver),
                }
            }
        }
    }

    fn poor(&mut self, mut effects: Vec<Effect>, say: Effect, ending: Ending) -> Vec<Effect> {
        self.poor_answers += 1;
        if self.poor_answers > SECOND_CHANCES {
            return self.finish(effects, ending);
        }
        if self.turn < self.limits.turns {
            effects.push(say);
        }
        self.next_turn(effects)
    }

    fn next_turn(&mut self, mut effects: Vec<Effect>) -> Vec<Effect> {
        if self.turn >= self.limits.turns {
            return self.finish(effects, Ending::TurnLimit);
        }
        if self.turn.is_multiple_of(PLAN_EVERY) {
            effects.push(Effect::InjectPlan);
        }
        self.turn += 1;
        self.tools_allowed = !(self.limits.last_turn == LastTurn::AnswerOnly && self.turn == self.limits.turns);
        if !self.tools_allowed {
            effects.push(Effect::SayLastTurn);
        }
        effects.push(Effect::Call { allow_tools: self.tools_allowed });
        effects
    }

    fn finish(&mut self, mut effects: Vec<Effect>, ending: Ending) -> Vec<Effect> {
        self.ended = true;
        effects.push(Effect::Finish(ending));
        effects
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    const PLAIN: Limits = Limits { turns: 200, last_turn: LastTurn::Ordinary, tools: Tools::Run };

    fn calls(n: usize) -> Input {
        Input::Answered(Answered { calls: n, has_text: true, cut: false, message_waits: false })
    }

    fn says(has_text: bool, cut: bool, message_waits: bool) -> Input {
        Input::Answered(Answered { calls: 0, has_text, cut, message_waits })
    }

    const DONE: Input = Input::Executed { in_a_loop: false };

    #[track_caller]
    fn check(limits: Limits, steps: &[(Input, &[Effect])]) {
        let mut machine = Machine::new(limits);
        for (i, (input, expected)) in steps.iter().enumerate() {
            assert_eq!(machine.step(*input), *expected, "step {i}");
        }
    }

    #[test]
    fn tools_run_until_the_model_only_talks() {
        use Effect::{Call, Execute, Finish, InjectPlan, Record};
        check(
            PLAIN,
            &[
                (Input::Begin, &[InjectPlan, Call { allow_tools: true }]),
                (calls(2), &[Record, Execute]),
                (DONE, &[Call { allow_tools: true }]),
                (says(true, false, true), &[Record, Call { allow_tools: true }]),
                (says(true, false, false), &[Record, Finish(Ending::Completed)]),
                (DONE, &[]),
            ],
        );
    }

    #[test]
    fn the_last_turn_of_a_checker_has_no_tools() {
        use Effect::{Call, Execute, Finish, InjectPlan, Record, RefuseCalls, SayLastTurn};
        check(
            Limits { turns: 2, last_turn: LastTurn::AnswerOnly, ..PLAIN },
            &[
                (Input::Begin, &[InjectPlan, Call { allow_tools: true }]),
                (calls(1), &[Record, Execute]),
                (DONE, &[SayLastTurn, Call { allow_tools: false }]),
                (calls(1), &[Record, RefuseCalls, Finish(Ending::TurnLimit)]),
            ],
        );
    }

    #[test]
    fn empty_and_cut_answers_get_a_second_chance_and_then_an_end() {
        use Effect::{Call, Finish, InjectPlan, Record, SayCut, SayEmpty};
        let call = Call { allow_tools: true };
        check(
            PLAIN,
            &[
                (Input::Begin, &[InjectPlan, call]),
                (says(false, false, false), &[SayEmpty, call]),
                (says(true, true, false), &[Record, SayCut, call]),
                (says(false, false, false), &[Finish(Ending::EmptyAnswers)]),
            ],
        );
    }

    #[test]
    fn a_loop_a_limit_and_a_stop_end_the_run() {
        use Effect::{Call, Execute, Finish, InjectPlan, Record};
        check(
            Limits { turns: 1, ..PLAIN },
            &[
                (Input::Begin, &[InjectPlan, Call { allow_tools: true }]),
                (calls(1), &[Record, Execute]),
                (DONE, &[Finish(Ending::TurnLimit)]),
            ],
        );
        check(
            PLAIN,
            &[
                (Input::Begin, &[InjectPlan, Call { allow_tools: true }]),
                (calls(1), &[Record, Execute]),
                (Input::Executed { in_a_loop: true }, &[Finish(Ending::DoomLoop)]),
            ],
        );
        check(PLAIN, &[(Input::Interrupt(Ending::Stopped), &[Finish(Ending::Stopped)])]);
        check(
            Limits { tools: Tools::HandOver, ..PLAIN },
            &[
                (Input::Begin, &[InjectPlan, Call { allow_tools: true }]),
                (calls(1), &[Record, Finish(Ending::HandedOver)]),
            ],
        );
    }

    fn inputs() -> impl Strategy<Value = Input> {
        prop_oneof![
            (0_usize..3, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
                |(calls, has_text, cut, message_waits)| {
                    Input::Answered(Answered { calls, has_text, cut, message_waits })
                }
            ),
            any::<bool>().prop_map(|in_a_loop| Input::Executed { in_a_loop }),
        ]
    }

    proptest! {
        #[test]
        fn no_recorded_call_is_left_without_a_result(turns in 1_u32..30, silent in any::<bool>(), steps in prop::collection::vec(inputs(), 0..80)) {
            let last_turn = if silent { LastTurn::AnswerOnly } else { LastTurn::Ordinary };
            let mut machine = Machine::new(Limits { turns, last_turn, tools: Tools::Run });
            machine.step(Input::Begin);
            for input in steps {
                let effects = machine.step(input);
                if let Input::Answered(Answered { calls: 1.., .. }) = input
                    && effects.contains(&Effect::Record) {
                    prop_assert!(effects.contains(&Effect::Execute) || effects.contains(&Effect::RefuseCalls));
                }
                prop_assert!(machine.turns() <= turns);
                prop_assert_eq!(effects.iter().any(|e| matches!(e, Effect::Finish(_))), machine.ended() && !effects.is_empty());
            }
        }
    }
}
