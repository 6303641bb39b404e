//! Congestion controls written in Python: an adapter between the engine's trait and a class of the user.

use std::sync::Arc;

use pathweave_policy::cc::{CcConfig, CcFactory, CongestionControl, MakeCc, Permit, ProgramCc};
use pathweave_policy::{Feedback, PolicyConfig, PolicyCx, PolicyEnv, SendRequest, Sent};
use pathweave_sim::SimSpec;
use pathweave_units::{Bytes, Rate, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::picker::{FirstException, Replaced, memo_of, name_of_factory, overridden};
use crate::signals::{self, Half, Packet, QueuePair};

/// Replaces the congestion controls of all schemes in a run. Returns a note for the user.
///
/// # Errors
/// If a scheme decides about rate and path together.
pub(crate) fn replace_controls(spec: &mut SimSpec, controls: PythonControls) -> PyResult<String> {
    let words = Replaced {
        argument: "control",
        part: "congestion control",
        example: "ecmp",
        done: "rates were controlled",
        by: &controls.name.clone(),
    };
    let supplied = CcConfig::Supplied(CcFactory::new(Arc::new(controls)));
    words.replace(spec, &supplied, PolicyConfig::cc_mut)
}

/// Factory that calls the user's class for each queue pair.
#[derive(Debug)]
pub(crate) struct PythonControls {
    name: String,
    make: Py<PyAny>,
    trouble: Arc<FirstException>,
}

impl PythonControls {
    /// Creates a factory. `make` is a class or another callable that returns congestion controls. Their exceptions
    /// go to `trouble`.
    pub(crate) fn new(make: &Bound<'_, PyAny>, trouble: Arc<FirstException>) -> PyResult<Self> {
        if !make.is_callable() {
            let kind = make.get_type().name()?;
            let why = format!(
                "control is of type {kind}; expected a subclass of pathweave.CongestionControl, or a \
                 callable that returns an instance"
            );
            return Err(PyTypeError::new_err(why));
        }
        let name = name_of_factory(make).unwrap_or_else(|| "control".to_owned());
        Ok(PythonControls { name, make: make.clone().unbind(), trouble })
    }

    fn try_make(&self, env: &PolicyEnv) -> PyResult<(Callable, Limits)> {
        Python::attach(|py| {
            // A congestion control has no random stream when it is created: its seed is 0.
            let control = self.make.bind(py).call1((QueuePair::new(env, 0),))?;
            let callable = Callable::new(control)?;
            let limits = Limits::read(callable.object.bind(py))?;
            Ok((callable, limits))
        })
    }
}

impl MakeCc for PythonControls {
    fn name(&self) -> &str {
        &self.name
    }
    fn make(&self, env: &PolicyEnv) -> Box<dyn ProgramCc> {
        // After an exception nothing is created, because the run is about to end.
        let made = if self.trouble.is_set() { Ok(None) } else { self.try_make(env).map(Some) };
        let made = made.unwrap_or_else(|error| {
            self.trouble.store_first(error);
            None
        });
        let (callable, limits) =
            made.map_or((None, Limits::NONE), |(callable, limits)| (Some(callable), limits));
        Box::new(PythonControl {
            callable,
            limits,
            next_send: Time::ZERO,
            trouble: Arc::clone(&self.trouble),
        })
    }
}

/// Methods of a congestion control, bound to it. Inherited methods are not called.
#[derive(Debug)]
struct Callable {
    object: Py<PyAny>,
    on_sent: Option<Py<PyAny>>,
    on_feedback: Option<Py<PyAny>>,
}

impl Callable {
    fn new(control: Bound<'_, PyAny>) -> PyResult<Self> {
        let base = control.py().import("pathweave")?.getattr("CongestionControl")?;
        if !control.is_instance(&base)? {
            let kind = control.get_type().name()?;
            let why = format!(
                "the control is of type {kind}; expected an instance of a subclass of pathweave.CongestionControl"
            );
            return Err(PyTypeError::new_err(why));
        }
        let (on_sent, on_feedback) =
            (overridden(&control, &base, "on_sent")?, overridden(&control, &base, "on_feedback")?);
        Ok(Callable { on_sent, on_feedback, object: control.unbind() })
    }
}

/// Limits that the user's object sets, read after each of its calls.
#[derive(Clone, Copy, Debug)]
struct Limits {
    window: Option<Bytes>,
    rate: Option<Rate>,
}

impl Limits {
    const NONE: Limits = Limits { window: None, rate: None };

    fn read(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let window: Option<f64> = Self::number(object, "window_bytes")?;
        let rate: Option<f64> = Self::number(object, "rate_bps")?;
        Ok(Limits {
            window: window.map(|bytes| Bytes::new(bytes as u64)),
            rate: rate.map(|bps| Rate::from_bps((bps as u64).max(1))),
        })
    }

    fn number(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<f64>> {
        let value = object.getattr(name)?;
        if value.is_none() {
            return Ok(None);
        }
        let wrong = |value: &Bound<'_, PyAny>| {
            let shown = value.repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string());
            PyValueError::new_err(format!("{name} is {shown}; expected None or a number from 1 to 1e18"))
        };
        let number: f64 = value.extract().map_err(|_| wrong(&value))?;
        if (1.0..=1e18).contains(&number) { Ok(Some(number)) } else { Err(wrong(&value)) }
    }
}

/// Congestion control of one queue pair. It enforces the window and paces packets at the rate.
#[derive(Debug)]
struct PythonControl {
    /// Methods of the control. `None` if it could not be created.
    callable: Option<Callable>,
    limits: Limits,
    /// Instant before which the rate permits no packet.
    next_send: Time,
    trouble: Arc<FirstException>,
}

impl PythonControl {
    /// Calls a method and reads the limits, unless the class leaves the method out or an exception was raised before.
    /// A new exception ends the run. `fallback` is returned if there is no result.
    fn call_python<T>(
        &mut self,
        now: Time,
        fallback: T,
        method: impl FnOnce(&Callable) -> Option<&Py<PyAny>>,
        call: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>,
    ) -> T {
        let Some(callable) = self.callable.as_ref().filter(|_| !self.trouble.is_set()) else {
            return fallback;
        };
        // The interpreter's lock is not taken for nothing.
        let Some(method) = method(callable) else { return fallback };
        let called = Python::attach(|py| {
            let result = call(method.bind(py))?;
            Ok((result, Limits::read(callable.object.bind(py))?))
        });
        match called {
            Ok((result, limits)) => {
                self.limits = limits;
                result
            }
            Err(error) => {
                self.trouble.store_first_at(error, "a congestion control", now);
                fallback
            }
        }
    }
}

impl CongestionControl for PythonControl {
    pathweave_policy::ignores!(on_open, on_close, on_timer, window);

    fn permit(&mut self, now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> Permit {
        if !self.limits.window.is_none_or(|window| want.fits(window.get())) {
            return Permit::Blocked;
        }
        if self.limits.rate.is_some() && now < self.next_send {
            return Permit::At(self.next_send);
        }
        Permit::Now
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        if let Some(rate) = self.limits.rate {
            self.next_send = now.max(self.next_send) + rate.time_for(u64::from(sent.wire_bytes));
        }
        self.call_python(
            now,
            0,
            |callable| callable.on_sent.as_ref(),
            |on_sent| memo_of(&on_sent.call1((now.as_ps(), sent.path.0, Packet::sent(sent)))?),
        )
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        self.call_python(
            now,
            (),
            |callable| callable.on_feedback.as_ref(),
            |on_feedback| {
                on_feedback.call1((now.as_ps(), signals::Feedback::new(feedback, Half::Cc))).map(drop)
            },
        );
    }

    fn rate(&self, _now: Time) -> Option<Rate> {
        self.limits.rate
    }
}

impl Clone for PythonControl {
    /// Makes a deep copy of the user's object.
    fn clone(&self) -> Self {
        let copied = self.callable.as_ref().filter(|_| !self.trouble.is_set()).map(|callable| {
            Python::attach(|py| {
                let object = py.import("copy")?.call_method1("deepcopy", (&callable.object,))?;
                Callable::new(object)
            })
        });
        let callable = copied.and_then(|copied| copied.map_err(|error| self.trouble.store_first(error)).ok());
        PythonControl { callable, trouble: Arc::clone(&self.trouble), ..*self }
    }
}
