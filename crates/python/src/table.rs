//! Records as Arrow data: columns made once from the engine's records, handed over without copying.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, Field, Schema};
use pathweave_results::{Column, Get, RunResult};
use pyo3::exceptions::{PyImportError, PyModuleNotFoundError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyCapsule};

/// A table of a run's records.
///
/// Anything that reads the Arrow C stream interface takes it as it is: `polars.DataFrame(table)`,
/// `pyarrow.table(table)`. The package's wrapper has `to_polars`, `to_pandas` and `to_arrow`.
#[pyclass(frozen, module = "pathweave._pathweave")]
pub(crate) struct Table {
    batch: RecordBatch,
    columns: Vec<(&'static str, &'static str, &'static str)>,
}

impl Table {
    pub(crate) fn from_records<R>(
        run: &RunResult,
        columns: &[Column<R>],
        rows: &[R],
    ) -> Result<Self, ArrowError> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for column in columns {
            let array = array(run, column, rows)?;
            let described = [("unit", column.unit), ("meaning", column.meaning)];
            let described = described.map(|(key, text)| (key.to_owned(), text.to_owned()));
            let field = Field::new(column.name, array.data_type().clone(), column.nullable);
            fields.push(field.with_metadata(HashMap::from(described)));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?;
        let columns = columns.iter().map(|column| (column.name, column.unit, column.meaning)).collect();
        Ok(Table { batch, columns })
    }
}

fn array<R>(run: &RunResult, column: &Column<R>, rows: &[R]) -> Result<ArrayRef, ArrowError> {
    Ok(match column.get {
        Get::U32(get) => Arc::new(rows.iter().map(|row| get(run, row)).collect::<UInt32Array>()),
        Get::U64(get) => Arc::new(rows.iter().map(|row| get(run, row)).collect::<UInt64Array>()),
        Get::F64(get) => Arc::new(rows.iter().map(|row| get(run, row)).collect::<Float64Array>()),
        Get::Label(labels, get) => {
            let labels = labels(run);
            let mut texts = StringDictionaryBuilder::<UInt32Type>::new();
            for row in rows {
                match get(row).and_then(|index| labels.get(index)) {
                    Some(label) => {
                        texts.append(label)?;
                    }
                    None => texts.append_null(),
                }
            }
            Arc::new(texts.finish())
        }
    })
}

#[pymethods]
impl Table {
    /// Rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns, with units last in them.
    #[getter]
    fn columns(&self) -> Vec<&'static str> {
        self.columns.iter().map(|(name, ..)| *name).collect()
    }

    /// Of each column: name, unit ("" where there is none) and meaning.
    #[getter]
    fn description(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        self.columns.clone()
    }

    fn __repr__(&self) -> String {
        format!("<Table of {} rows: {}>", self.batch.num_rows(), self.columns().join(", "))
    }

    /// As a `pyarrow.Table`.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pyarrow")?.call_method1("table", (slf,))
    }

    /// As a `polars.DataFrame`.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "polars")?.call_method1("DataFrame", (slf,))
    }

    /// As a `pandas.DataFrame`; needs `pyarrow`, too. Columns of numbers in which none is missing are not copied.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        library(slf.py(), "pandas")?;
        // Without that, columns of one type are copied into one block.
        let as_they_are = [("split_blocks", true)].into_py_dict(slf.py())?;
        Table::to_arrow(slf)?.call_method("to_pandas", (), Some(&as_they_are))
    }

    /// The Arrow PyCapsule protocol: a stream of one batch. The schema is always that of the records.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Who asks for another schema may cast afterwards: the protocol allows to ignore the wish.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// A library that only some need.
fn library<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyModule>> {
    py.import(name).map_err(|error| {
        let missing = error.is_instance_of::<PyModuleNotFoundError>(py);
        if missing { PyImportError::new_err(format!("this needs {name}: pip install {name}")) } else { error }
    })
}

/// An Arrow error in what the engine itself made is a bug.
pub(crate) fn bug(error: &ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
