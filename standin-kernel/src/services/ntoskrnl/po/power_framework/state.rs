//! The power management framework's state for a device, and the choice of the next callback.

/// An idle state of a component, as described by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// The time that the component needs to leave the state, in units of 100 ns.
    pub latency: u64,
    /// The minimum time that must be spent in the state to make entering it worthwhile.
    pub residency: u64,
}

/// The condition of a component. A driver may access only active components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Active,
    /// The driver was notified that the component is idle, and has not answered.
    Idling,
    Idle,
}

/// A component of a device.
#[derive(Debug)]
pub struct Component {
    /// The idle states. The first state, F0, has full power.
    idle_states: Vec<IdleState>,
    /// The number of activations.
    references: u32,
    condition: Condition,
    /// The current idle state.
    state: usize,
    /// Set if the driver was asked to change the idle state, and has not answered.
    changes_state: bool,
    /// The latency that the driver tolerates, and the residency that it expects.
    latency: u64,
    residency: u64,
}

impl Component {
    /// Creates an active component with full power.
    pub const fn new(idle_states: Vec<IdleState>) -> Self {
        Self {
            idle_states,
            references: 0,
            condition: Condition::Active,
            state: 0,
            changes_state: false,
            latency: u64::MAX,
            residency: u64::MAX,
        }
    }

    /// Returns the deepest idle state that the driver's latency tolerance and expected residency allow.
    fn deepest(&self) -> usize {
        let is_allowed =
            |state: &IdleState| state.latency <= self.latency && state.residency <= self.residency;
        self.idle_states.iter().rposition(is_allowed).unwrap_or(0)
    }

    /// Counts an activation.
    pub const fn activate(&mut self) {
        self.references = self.references.saturating_add(1);
    }

    /// Counts the end of an activation. Returns `false` if no activation remains.
    pub const fn idle(&mut self) -> bool {
        match self.references.checked_sub(1) {
            Some(left) => {
                self.references = left;
                true
            }
            None => false,
        }
    }

    /// Sets the latency that the driver tolerates.
    pub const fn tolerate(&mut self, latency: u64) {
        self.latency = latency;
    }

    /// Sets the residency that the driver expects.
    pub const fn expect(&mut self, residency: u64) {
        self.residency = residency;
    }
}

/// The device's need for power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    Required,
    /// The driver was notified that the device does not need power.
    Releasing,
    NotRequired,
    /// The driver was notified that the device needs power, and has not answered.
    Requesting,
}

/// A callback to call next, and its component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `ComponentActiveConditionCallback`.
    Active(usize),
    /// `ComponentIdleConditionCallback`.
    Idle(usize),
    /// `ComponentIdleStateCallback` with the state.
    State(usize, usize),
    /// `DevicePowerRequiredCallback`.
    PowerRequired,
    /// `DevicePowerNotRequiredCallback`.
    PowerNotRequired,
}

/// A driver's report that it has completed the action that a callback requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completed {
    /// `PoFxCompleteIdleCondition`.
    Idle(usize),
    /// `PoFxCompleteIdleState`.
    State(usize),
    /// `PoFxReportDevicePoweredOn`.
    PoweredOn,
    /// `PoFxCompleteDevicePowerNotRequired`.
    PowerNotRequired,
}

/// The components of a device and its power.
#[derive(Debug)]
pub struct Device {
    components: Vec<Component>,
    power: Power,
    /// Set if the driver was notified that the device does not need power, and has not answered.
    owes_release: bool,
    /// Set once the driver has started power management.
    is_managed: bool,
}

impl Device {
    /// Creates a device with full power, whose components are active.
    pub const fn new(components: Vec<Component>) -> Self {
        Self { components, power: Power::Required, owes_release: false, is_managed: false }
    }

    /// Returns a component.
    pub fn component(&mut self, index: usize) -> Option<&mut Component> {
        self.components.get_mut(index)
    }

    /// Starts power management. Returns `false` if it has already started.
    pub const fn start(&mut self) -> bool {
        !std::mem::replace(&mut self.is_managed, true)
    }

    /// Returns whether a component can be accessed.
    pub fn is_active(&self, index: usize) -> bool {
        let component = self.components.get(index);
        component.is_some_and(|one| one.condition == Condition::Active)
    }

    /// Accepts a driver's answer. Returns `false` if the answer was neither requested nor allowed.
    pub fn answer(&mut self, answer: Completed) -> bool {
        match answer {
            Completed::Idle(index) => self.component(index).is_some_and(|component| {
                let is_due = component.condition == Condition::Idling;
                if is_due {
                    component.condition = Condition::Idle;
                }
                is_due
            }),
            Completed::State(index) => self
                .component(index)
                .is_some_and(|component| std::mem::replace(&mut component.changes_state, false)),
            // The driver also reports unrequested that the device was powered on by the system's
            // return to its working state.
            Completed::PoweredOn => {
                self.power = Power::Required;
                true
            }
            Completed::PowerNotRequired => {
                self.move_power(Power::Releasing, Power::NotRequired);
                std::mem::replace(&mut self.owes_release, false)
            }
        }
    }

    fn move_power(&mut self, from: Power, to: Power) -> bool {
        let is_due = self.power == from;
        if is_due {
            self.power = to;
        }
        is_due
    }

    /// Returns the next callback that is due, and records that it is being called.
    pub fn next_step(&mut self) -> Option<Step> {
        let of_component = (0..self.components.len()).find_map(|index| self.step_of(index));
        of_component.or_else(|| {
            let is_idle = self.components.iter().all(|component| {
                component.condition == Condition::Idle
                    && !component.changes_state
                    && component.references == 0
            });
            let is_due = is_idle && self.is_managed && !self.owes_release;
            (is_due && self.move_power(Power::Required, Power::Releasing)).then(|| {
                self.owes_release = true;
                Step::PowerNotRequired
            })
        })
    }

    fn step_of(&mut self, index: usize) -> Option<Step> {
        let is_managed = self.is_managed;
        let power = self.power;
        let component = self.components.get_mut(index)?;
        if component.changes_state || component.condition == Condition::Idling {
            return None;
        }
        let is_wanted = component.references > 0 || !is_managed;
        match (component.condition, is_wanted) {
            (Condition::Active, true) | (Condition::Idling, _) => None,
            (Condition::Active, false) => {
                component.condition = Condition::Idling;
                Some(Step::Idle(index))
            }
            (Condition::Idle, false) => {
                let deepest = component.deepest();
                if power != Power::Required || component.state == deepest {
                    return None;
                }
                component.state = deepest;
                component.changes_state = true;
                Some(Step::State(index, deepest))
            }
            (Condition::Idle, true) => match power {
                Power::NotRequired => {
                    self.power = Power::Requesting;
                    Some(Step::PowerRequired)
                }
                Power::Releasing | Power::Requesting => None,
                Power::Required if component.state != 0 => {
                    component.state = 0;
                    component.changes_state = true;
                    Some(Step::State(index, 0))
                }
                Power::Required => {
                    component.condition = Condition::Active;
                    Some(Step::Active(index))
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(components: usize) -> Device {
        let states = [0, 10, 100].map(|latency| IdleState { latency, residency: latency * 2 });
        let component = |_| Component::new(states.to_vec());
        Device::new((0..components).map(component).collect())
    }

    fn steps(device: &mut Device) -> Vec<Step> {
        std::iter::from_fn(|| device.next_step()).collect()
    }

    #[test]
    fn a_component_idles_and_becomes_active_again() {
        let mut device = device(1);
        assert_eq!(steps(&mut device), []);
        assert!(device.start());
        assert!(!device.start());
        assert_eq!(steps(&mut device), [Step::Idle(0)]);
        assert!(!device.answer(Completed::State(0)));
        assert!(device.answer(Completed::Idle(0)));
        assert!(!device.answer(Completed::Idle(0)));
        assert_eq!(steps(&mut device), [Step::State(0, 2)]);
        assert!(device.answer(Completed::State(0)));
        assert_eq!(steps(&mut device), [Step::PowerNotRequired]);
        // The activation waits for the answer.
        device.component(0).unwrap().activate();
        assert_eq!(steps(&mut device), []);
        assert!(device.answer(Completed::PowerNotRequired));
        assert_eq!(steps(&mut device), [Step::PowerRequired]);
        assert!(device.answer(Completed::PoweredOn));
        assert_eq!(steps(&mut device), [Step::State(0, 0)]);
        assert!(!device.is_active(0));
        assert!(device.answer(Completed::State(0)));
        assert_eq!(steps(&mut device), [Step::Active(0)]);
        assert!(device.is_active(0));
        assert!(device.component(0).unwrap().idle());
        assert!(!device.component(0).unwrap().idle());
    }

    #[test]
    fn a_driver_reports_a_device_that_the_system_powered_on() {
        let mut device = device(1);
        assert!(device.answer(Completed::PoweredOn));
        assert!(device.start());
        assert_eq!(steps(&mut device), [Step::Idle(0)]);
        assert!(device.answer(Completed::Idle(0)));
        assert_eq!(steps(&mut device), [Step::State(0, 2)]);
        assert!(device.answer(Completed::State(0)));
        assert_eq!(steps(&mut device), [Step::PowerNotRequired]);
        // The system sleeps and resumes before the driver answers. The answer is still required.
        assert!(device.answer(Completed::PoweredOn));
        assert_eq!(steps(&mut device), []);
        assert!(device.answer(Completed::PowerNotRequired));
        assert!(!device.answer(Completed::PowerNotRequired));
        assert_eq!(steps(&mut device), [Step::PowerNotRequired]);
        assert!(device.answer(Completed::PowerNotRequired));
        // The device has power again, but does not need it.
        assert!(device.answer(Completed::PoweredOn));
        assert_eq!(steps(&mut device), [Step::PowerNotRequired]);
        device.component(0).unwrap().activate();
        assert!(device.answer(Completed::PoweredOn));
        assert_eq!(steps(&mut device), [Step::State(0, 0)]);
    }

    #[test]
    fn the_latency_that_a_driver_tolerates_limits_the_state() {
        for (latency, residency, state) in [(10, u64::MAX, 1), (u64::MAX, 20, 1), (99, 199, 1)] {
            let mut device = device(1);
            let component = device.component(0).unwrap();
            component.tolerate(latency);
            component.expect(residency);
            assert!(device.start());
            assert_eq!(steps(&mut device), [Step::Idle(0)]);
            assert!(device.answer(Completed::Idle(0)));
            assert_eq!(steps(&mut device), [Step::State(0, state)]);
        }
        let mut device = device(1);
        device.component(0).unwrap().tolerate(0);
        assert!(device.start());
        assert_eq!(steps(&mut device), [Step::Idle(0)]);
        assert!(device.answer(Completed::Idle(0)));
        // The component stays in F0.
        assert_eq!(steps(&mut device), [Step::PowerNotRequired]);
    }

    #[test]
    fn a_device_keeps_its_power_for_one_active_component() {
        let mut device = device(2);
        device.component(1).unwrap().activate();
        assert!(device.start());
        assert_eq!(steps(&mut device), [Step::Idle(0)]);
        assert!(device.answer(Completed::Idle(0)));
        assert_eq!(steps(&mut device), [Step::State(0, 2)]);
        assert!(device.answer(Completed::State(0)));
        assert_eq!(steps(&mut device), []);
        assert!(device.component(1).unwrap().idle());
        assert_eq!(steps(&mut device), [Step::Idle(1)]);
    }
}
