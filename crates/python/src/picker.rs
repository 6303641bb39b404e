//! Path pickers written in Python: an adapter between the engine's trait and a class of the user.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pathweave_policy::picker::{MakePicker, PathPicker, PathSet, PickerConfig, PickerFactory, ProgramPicker};
use pathweave_policy::{
    Feedback, PathView, PolicyConfig, PolicyCx, PolicyEnv, QueuePairId, SendRequest, Sent,
};
use pathweave_sim::{NamedScheme, SimSpec};
use pathweave_units::{PathId, Rng, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::signals::{self, Half, Packet, QueuePair};

/// First exception that a picker of a run has raised. After it pickers are no longer called, and the run ends.
#[derive(Debug, Default)]
pub(crate) struct FirstException {
    raised: Mutex<Option<PyErr>>,
    is_any: AtomicBool,
}

impl FirstException {
    /// Stores the exception if it is the first one.
    pub(crate) fn store_first(&self, error: PyErr) {
        self.raised.lock().expect("nobody panics while holding it").get_or_insert(error);
        self.is_any.store(true, Ordering::Release);
    }
    /// Stores the exception if it is the first one, with a note that names its source and the simulated time.
    pub(crate) fn store_first_at(&self, error: PyErr, source: &str, now: Time) {
        Python::attach(|py| {
            let when =
                format!("raised by {source} after {:.3} us of simulated time", now.as_ps() as f64 / 1e6);
            // If the exception does not accept a note, it is reported without one.
            let _ = error.value(py).call_method1("add_note", (when,));
        });
        self.store_first(error);
    }
    /// Returns true if an exception was raised.
    pub(crate) fn is_set(&self) -> bool {
        self.is_any.load(Ordering::Acquire)
    }
    /// Takes the exception. Pickers are still not called afterwards.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.raised.lock().expect("nobody panics while holding it").take()
    }
}

/// Returns the name of a class or function. A `functools.partial` has the name of the function it wraps.
pub(crate) fn name_of_factory(make: &Bound<'_, PyAny>) -> Option<String> {
    let named = make.getattr("func").unwrap_or_else(|_| make.clone());
    named.getattr("__name__").and_then(|name| name.extract()).ok()
}

/// Returns the method of `object`, or `None` if it is inherited from `base`.
pub(crate) fn overridden(
    object: &Bound<'_, PyAny>,
    base: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<Option<Py<PyAny>>> {
    let method = object.getattr(name)?;
    let inherited = object.get_type().getattr(name)?.is(&base.getattr(name)?);
    Ok((!inherited).then(|| method.unbind()))
}

/// Converts the result of `on_sent` to a memo.
pub(crate) fn memo_of(returned: &Bound<'_, PyAny>) -> PyResult<u32> {
    if returned.is_none() {
        return Ok(0);
    }
    returned.extract().map_err(|_| {
        let most = u32::MAX;
        PyValueError::new_err(format!(
            "on_sent returned {returned}; expected None or an integer from 0 to {most}"
        ))
    })
}

/// Replaces the path pickers of all schemes in a run. Returns a note for the user.
///
/// # Errors
/// If a scheme decides about rate and path together.
pub(crate) fn replace_pickers(spec: &mut SimSpec, pickers: PythonPickers) -> PyResult<String> {
    let words = Replaced {
        argument: "picker",
        part: "picker",
        example: "rps-nocc",
        done: "paths were picked",
        by: &pickers.name.clone(),
    };
    let supplied = PickerConfig::Supplied(PickerFactory::new(Arc::new(pickers)));
    words.replace(spec, &supplied, PolicyConfig::picker_mut)
}

/// Words about a part of policies that a class of the user replaces.
pub(crate) struct Replaced<'a> {
    /// Argument of the user.
    pub(crate) argument: &'static str,
    /// Name of the part.
    pub(crate) part: &'static str,
    /// Scheme that has the part, beside "rps" and "swift-rps".
    pub(crate) example: &'static str,
    /// Work of the part in the run.
    pub(crate) done: &'static str,
    /// Name of the class.
    pub(crate) by: &'a str,
}

impl Replaced<'_> {
    /// Replaces the part of all schemes in a run. Returns a note for the user.
    ///
    /// # Errors
    /// If a scheme decides about rate and path together.
    pub(crate) fn replace<T: Clone>(
        &self,
        spec: &mut SimSpec,
        supplied: &T,
        part_of: fn(&mut PolicyConfig) -> Option<&mut T>,
    ) -> PyResult<String> {
        let Replaced { argument, part, example, done, by } = self;
        for NamedScheme { name, scheme } in &mut spec.schemes {
            *part_of(&mut scheme.policy).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "{argument}: scheme {name:?} decides rate and path together and has no {part}; expected a scheme of a \
                     congestion control and a picker, such as \"rps\", \"swift-rps\" or \"{example}\""
                ))
            })? = supplied.clone();
            *name = format!("{name}+{by}");
        }
        let note = format!("{done} by {by}, written in Python, in place of the {part} of the scheme");
        spec.scenario_toml.insert_str(0, &format!("# {note}: this file alone does not repeat the run.\n"));
        Ok(note)
    }
}

/// Factory that calls the user's class for each queue pair.
#[derive(Debug)]
pub(crate) struct PythonPickers {
    name: String,
    make: Py<PyAny>,
    trouble: Arc<FirstException>,
}

impl PythonPickers {
    /// Creates a factory. `make` is a class or another callable that returns pickers. Their exceptions go to
    /// `trouble`.
    pub(crate) fn new(make: &Bound<'_, PyAny>, trouble: Arc<FirstException>) -> PyResult<Self> {
        if !make.is_callable() {
            let kind = make.get_type().name()?;
            let why = format!(
                "picker is of type {kind}; expected a subclass of pathweave.Picker, or a callable that \
                 returns an instance"
            );
            return Err(PyTypeError::new_err(why));
        }
        let name = name_of_factory(make).unwrap_or_else(|| "picker".to_owned());
        Ok(PythonPickers { name, make: make.clone().unbind(), trouble })
    }

    fn try_make(&self, env: &PolicyEnv, seed: u64) -> PyResult<Callable> {
        Python::attach(|py| {
            let picker = self.make.bind(py).call1((QueuePair::new(env, seed),))?;
            Callable::new(picker)
        })
    }
}

impl MakePicker for PythonPickers {
    fn name(&self) -> &str {
        &self.name
    }
    fn make(&self, env: &PolicyEnv, rng: &mut Rng) -> Box<dyn ProgramPicker> {
        let seed = rng.next_u64();
        // After an exception no pickers are created, because the run is about to end.
        let made = if self.trouble.is_set() { Ok(None) } else { self.try_make(env, seed).map(Some) };
        let callable = made.unwrap_or_else(|error| {
            self.trouble.store_first(error);
            None
        });
        Box::new(PythonPicker {
            callable,
            paths: PathSet::all(env.paths),
            usable: Python::attach(|py| tuple(py, &PathSet::all(env.paths))),
            picked: Cell::new(None),
            trouble: Arc::clone(&self.trouble),
        })
    }
}

/// Methods of a picker, bound to it. Methods inherited from `Picker` are not called.
#[derive(Debug)]
struct Callable {
    /// Picker object.
    object: Py<PyAny>,
    pick: Py<PyAny>,
    on_sent: Option<Py<PyAny>>,
    on_feedback: Option<Py<PyAny>>,
    on_paths: Option<Py<PyAny>>,
}

impl Callable {
    fn new(picker: Bound<'_, PyAny>) -> PyResult<Self> {
        let base = picker.py().import("pathweave")?.getattr("Picker")?;
        if !picker.is_instance(&base)? {
            let kind = picker.get_type().name()?;
            let why = format!(
                "the picker is of type {kind}; expected an instance of a subclass of pathweave.Picker"
            );
            return Err(PyTypeError::new_err(why));
        }
        let own = |name: &str| overridden(&picker, &base, name);
        let (on_sent, on_feedback, on_paths) = (own("on_sent")?, own("on_feedback")?, own("on_paths")?);
        let pick = picker.getattr("pick")?.unbind();
        Ok(Callable { pick, on_sent, on_feedback, on_paths, object: picker.unbind() })
    }
}

/// Picker of one queue pair.
#[derive(Debug)]
struct PythonPicker {
    /// Methods of the picker. `None` if it could not be created.
    callable: Option<Callable>,
    paths: PathSet,
    /// Usable paths as a Python tuple, which is created once.
    usable: Py<PyTuple>,
    /// PSN and path of the packet that waits for its port. Python is called once per packet, because a picker may
    /// change its state when it picks.
    picked: Cell<Option<(u64, PathId)>>,
    trouble: Arc<FirstException>,
}

fn tuple(py: Python<'_>, paths: &PathSet) -> Py<PyTuple> {
    let all = (0..paths.len()).map(|n| paths.get(n).0);
    PyTuple::new(py, all.collect::<Vec<_>>()).expect("a tuple of numbers can be made").unbind()
}

impl PythonPicker {
    /// Calls Python, unless an exception was raised before. A new exception ends the run, and `fallback` is returned.
    fn call_python<T>(
        &self,
        now: Time,
        fallback: T,
        call: impl FnOnce(Python<'_>, &Callable) -> PyResult<T>,
    ) -> T {
        let Some(callable) = self.callable.as_ref().filter(|_| !self.trouble.is_set()) else {
            return fallback;
        };
        Python::attach(|py| {
            call(py, callable).unwrap_or_else(|error| {
                self.trouble.store_first_at(error, "a picker", now);
                fallback
            })
        })
    }

    /// Converts the result of `pick` to a usable path.
    fn path(&self, returned: &Bound<'_, PyAny>) -> PyResult<PathId> {
        let all = || match self.paths.dense_len() {
            Some(count) => format!("a path from 0 to {}", count - 1),
            None => format!("one of the usable paths, {}", self.usable),
        };
        let number: i64 = returned.extract().map_err(|_| {
            let shown = returned.repr().map_or_else(|_| "something else".to_owned(), |text| text.to_string());
            PyTypeError::new_err(format!("pick returned {shown}; expected {}", all()))
        })?;
        let path = u16::try_from(number).ok().map(PathId).filter(|path| self.paths.contains(*path));
        path.ok_or_else(|| PyValueError::new_err(format!("pick returned {number}; expected {}", all())))
    }
}

impl PathPicker for PythonPicker {
    fn on_open(&mut self, _now: Time, _member: &QueuePairId, _cx: &mut PolicyCx<'_>) {}
    fn on_close(&mut self, _cx: &mut PolicyCx<'_>) {}

    fn pick(&self, now: Time, want: &SendRequest, _cx: &mut PolicyCx<'_>) -> PathId {
        if let Some((psn, path)) = self.picked.get()
            && psn == want.psn
        {
            return path;
        }
        let path = self.call_python(now, self.paths.get(0), |py, callable| {
            let packet = Packet::wanted(want);
            let returned = callable.pick.bind(py).call1((now.as_ps(), self.usable.bind(py), packet))?;
            self.path(&returned)
        });
        self.picked.set(Some((want.psn, path)));
        path
    }

    fn on_sent(&mut self, now: Time, sent: &Sent, _cx: &mut PolicyCx<'_>) -> u32 {
        self.picked.set(None);
        self.call_python(now, 0, |py, callable| {
            let Some(on_sent) = &callable.on_sent else { return Ok(0) };
            memo_of(&on_sent.bind(py).call1((now.as_ps(), sent.path.0, Packet::sent(sent)))?)
        })
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback, _cx: &mut PolicyCx<'_>) {
        self.call_python(now, (), |py, callable| {
            let Some(on_feedback) = &callable.on_feedback else { return Ok(()) };
            on_feedback
                .bind(py)
                .call1((now.as_ps(), signals::Feedback::new(feedback, Half::Picker)))
                .map(drop)
        });
    }

    fn on_paths(&mut self, now: Time, paths: &[PathView], _cx: &mut PolicyCx<'_>) {
        self.paths = PathSet::usable(paths);
        self.picked.set(None);
        self.usable = Python::attach(|py| tuple(py, &self.paths));
        self.call_python(now, (), |py, callable| {
            let Some(on_paths) = &callable.on_paths else { return Ok(()) };
            let known = paths.iter().map(|path| signals::Path::new(path, self.paths.contains(path.id)));
            let known = known.map(|path| Py::new(py, path)).collect::<PyResult<Vec<_>>>()?;
            on_paths.bind(py).call1((now.as_ps(), PyList::new(py, known)?)).map(drop)
        });
    }
}

impl Clone for PythonPicker {
    /// Makes a deep copy of the user's object.
    fn clone(&self) -> Self {
        let copy = self.call_python(Time::ZERO, None, |py, callable| {
            let object = py.import("copy")?.call_method1("deepcopy", (&callable.object,))?;
            Callable::new(object).map(Some)
        });
        PythonPicker {
            callable: copy,
            paths: self.paths.clone(),
            usable: Python::attach(|py| self.usable.clone_ref(py)),
            picked: self.picked.clone(),
            trouble: Arc::clone(&self.trouble),
        }
    }
}
